"""The base of hosted providers: options, prompts, and the request for vectors."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from bakeoff_providers.answers import Expected, most_bytes, read_count
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors, check_batch
from bakeoff_providers.cards import find_card, override_card
from bakeoff_providers.connection import TIMEOUT, Connection
from bakeoff_providers.errors import EmbeddingFailed, InputError
from bakeoff_providers.shared_options import (
    MANY,
    BaseUrl,
    BatchItems,
    BatchTokens,
    Context,
    Dimensions,
    DocumentPrompt,
    KeyEnv,
    Model,
    Price,
    QueryPrompt,
    RequestsPerMinute,
    Timeout,
    TokensPerMinute,
)


class Hosted(Connection, Provider):
    """A provider behind HTTP. An adapter defines its cards, the connection, and the call."""

    cards: ClassVar[tuple[ModelCard, ...]] = ()
    open_card: ClassVar[ModelCard] = ModelCard(name="")
    tasks: ClassVar[tuple[str, str] | None] = None
    cuts: ClassVar[bool] = False
    shape: ClassVar[Any] = None  # of the JSON answer
    embeds_nothing: ClassVar[str] = ""  # pattern of the service's chat models and rerankers

    def __init__(
        self,
        *,
        model: Model = None,
        dimensions: Dimensions = None,
        base_url: BaseUrl = None,
        timeout: Timeout = TIMEOUT,
        key_env: KeyEnv = None,
        document_prompt: DocumentPrompt = None,
        query_prompt: QueryPrompt = None,
        document_task: Annotated[str | None, "task type sent with documents, if supported; empty = none"] = None,
        query_task: Annotated[str | None, "task type sent with queries, if supported; empty = none"] = None,
        truncate: Annotated[bool | None, "whether the server may truncate long texts; default: yes"] = None,
        max_chars: Annotated[int | None, "truncate every text to this many characters", MANY] = None,
        context: Context = None,
        batch_items: BatchItems = None,
        batch_tokens: BatchTokens = None,
        requests_per_minute: RequestsPerMinute = None,
        tokens_per_minute: TokensPerMinute = None,
        price: Price = None,
    ) -> None:
        if model and self.embeds_nothing and re.match(self.embeds_nothing, model):
            remedy = f'for example model = "{self.default_model}"'
            raise InputError(f"{model} is not an embedding model", place="model", remedy=remedy)
        known = find_card(model or self.default_model, self.cards, self.open_card)
        self.card = override_card(
            known,
            dimensions=dimensions,
            context=context,
            document_prompt=document_prompt,
            query_prompt=query_prompt,
            batch_items=batch_items,
            batch_tokens=batch_tokens,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            price=price,
        )
        super().__init__(base_url=base_url, timeout=timeout, key_env=key_env)
        if max_chars is not None and max_chars < 1:
            raise InputError(f"max_chars = {max_chars!r} is not a whole number above 0")
        if truncate is not None and not self.cuts:
            raise InputError(f"{self.name} has no option to cut long texts", remedy="use max_chars")
        if (document_task is not None or query_task is not None) and self.tasks is None:
            raise InputError(f"{self.name} has no task types", remedy="use document_prompt and query_prompt")
        self._known, self._max_chars = known, max_chars
        self._tasks = (document_task, query_task)
        self._truncate = truncate is not False if self.cuts else None
        self._asked = dimensions if dimensions != known.dimensions else None

    @property
    def model(self) -> str:
        """The model's name, also for the connection's messages."""
        return self.card.name

    @property
    def needs_network(self) -> bool:
        """False if a free server runs on this machine."""
        return not (self.free and self.on_loopback)

    def task(self, role: Role) -> str | None:
        """The task type sent for this role. An empty one in the line-up sends none."""
        if self.tasks is None:
            return None
        index = 1 if role is Role.QUERY else 0
        given = self._tasks[index]
        return (self.tasks[index] if given is None else given) or None

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """Adds the task type, truncation, and a foreign server's address (without its password)."""
        identity = super().identity(role)
        extra = {"task": self.task(role), "truncate": self._truncate, "max_chars": self._max_chars}
        identity |= {name: value for name, value in extra.items() if value is not None}
        if self.foreign:
            identity["server"] = self.public_url
        return identity

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """One request. The harness retries."""
        if not texts:
            return EmbeddingBatch(np.zeros((0, self.card.dimensions or 0), dtype=np.float32), tokens=0)
        inputs = [self.card.apply_prompt(text[: self._max_chars], role) for text in texts]
        cut = sum(len(text) > self._max_chars for text in texts) if self._max_chars else 0
        sdk = self._get_sdk()
        expected = Expected(most_bytes(len(inputs), self.card.dimensions), self.shape)
        rows, tokens = self._run_call(lambda: self._rows(self._call(sdk, inputs, role), expected), expected)
        return check_batch(EmbeddingBatch(self._vectors(rows), read_count(tokens), cut), texts, self.card)

    def _rows(self, answer: tuple[Any, Any], expected: Expected) -> tuple[Any, Any]:  # noqa: ARG002 - for adapters
        """The rows in the order of the texts, for protocols that number them."""
        return answer

    @abstractmethod
    def _call(self, sdk: Any, inputs: list[str], role: Role) -> tuple[Any, Any]:
        """The SDK's rows and tokens, unchecked. Any exception may be raised."""

    def _vectors(self, rows: Any) -> Vectors:
        """The SDK's rows as a float32 matrix, or a clear error."""
        if not isinstance(rows, (list, tuple, np.ndarray)) or not all(
            isinstance(row, (list, tuple, np.ndarray)) for row in rows
        ):
            raise EmbeddingFailed(f"{self.name} {self.card.name} returned no vectors")
        try:
            with np.errstate(over="ignore"):
                vectors = np.asarray(list(rows), dtype=np.float32)
        except (TypeError, ValueError):
            raise EmbeddingFailed(
                f"{self.name} {self.card.name} returned vectors of unequal length, or no numbers"
            ) from None
        return vectors


def open_card(**known: Any) -> ModelCard:
    """The card of an unlisted model: the provider's limits, unknown dimensions."""
    return msgspec.convert({"name": "", **known}, ModelCard)
