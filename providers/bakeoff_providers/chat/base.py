"""The chat model interface: one prompt in, one text out, and the usage."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from bakeoff_providers.answers import Expected, read_count
from bakeoff_providers.base import Adapter
from bakeoff_providers.connection import Connection
from bakeoff_providers.errors import AnswerUnusable, EmbeddingFailed, InputError
from bakeoff_providers.options import Transport
from bakeoff_providers.shared_options import BaseUrl, KeyEnv, Timeout

Schema = Mapping[str, Any]
ChatName = Annotated[str | None, "model, given after the provider's name: openai:gpt-5-mini"]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one prompt. Tokens are None if the server did not count."""

    text: str
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


def _is_number(value: object) -> bool:
    """Whether a value, which may be any text from the command line, is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class ChatModel(Connection, Adapter):
    """A model behind a server. An adapter defines how to connect and makes the call.

    Prices are USD per million tokens. The user sets them, since list prices of chat models change too often.
    """

    default_model: ClassVar[str]
    free: ClassVar[bool] = False
    shape: ClassVar[Any] = None  # of the JSON answer; tokens are checked by `read_count`

    def __init__(
        self,
        *,
        model: ChatName = None,
        temperature: Annotated[float | None, "0 = repeatable, higher = more varied; none = the server's default"] = 0.0,
        max_tokens: Annotated[int | None, "maximum tokens of an answer; default: the server's limit"] = None,
        price_in: Annotated[float | None, "US dollars per million prompt tokens", Transport] = None,
        price_out: Annotated[float | None, "US dollars per million answer tokens", Transport] = None,
        base_url: BaseUrl = None,
        timeout: Timeout = 120.0,
        key_env: KeyEnv = None,
    ) -> None:
        super().__init__(base_url=base_url, timeout=timeout, key_env=key_env)
        for option, value in {"price_in": price_in, "price_out": price_out, "temperature": temperature}.items():
            if value is not None and not (_is_number(value) and 0 <= value < float("inf")):
                raise InputError(f"{option} = {value!r} is not a number from 0 up")
        if max_tokens is not None and not (isinstance(max_tokens, int) and max_tokens >= 1):
            raise InputError(f"max_tokens = {max_tokens!r} is not a whole number above 0")
        self._model, self.temperature, self.max_tokens = model or self.default_model, temperature, max_tokens
        self._prices = (price_in, price_out)

    @property
    def model(self) -> str:
        """The model's name, as displayed and in the cache key."""
        return self._model

    @property
    def label(self) -> str:
        """The model's name as an annotator."""
        return f"{self.name}-{self.model}"

    def price(self, prompt_tokens: float, answer_tokens: float) -> float | None:
        """Dollars; None if the user gave no price and the model is not free."""
        given = self._prices
        if given == (None, None):
            return 0.0 if self.free else None
        return (prompt_tokens * (given[0] or 0.0) + answer_tokens * (given[1] or 0.0)) / 1e6

    def identity(self) -> dict[str, str | int | float | bool | None]:
        """Everything but the prompt that changes an answer, for the cache key."""
        identity: dict[str, str | int | float | bool | None] = {
            "chat": self.name,
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        if self.foreign:
            identity["server"] = self.public_url
        return identity

    def ask(self, prompt: str, schema: Schema, seed: int) -> Reply:
        """One request. The caller retries."""
        sdk = self._get_sdk()
        try:
            reply = self._run_call(lambda: self._call(sdk, prompt, schema, seed), Expected(shape=self.shape))
        except EmbeddingFailed as error:  # only this question failed, not the model
            raise AnswerUnusable(str(error)) from None
        if not isinstance(reply.text, str):
            raise AnswerUnusable(f"{self.name} {self.model} returned no text")
        if not reply.text.strip():
            raise AnswerUnusable(f"{self.name} {self.model} returned nothing", retryable=True)
        text = reply.text.encode(errors="replace").decode()  # lone surrogates can't be stored
        return Reply(text, read_count(reply.prompt_tokens), read_count(reply.answer_tokens))

    @abstractmethod
    def _call(self, sdk: Any, prompt: str, schema: Schema, seed: int) -> Reply:
        """The SDK's answer. Any exception may be raised. `schema` is the requested JSON."""
