"""OpenAI, and with `base_url` any server with its API: vLLM, TEI, LM Studio, llama.cpp, Mistral."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from bakeoff_providers.answers import Expected, IndexedRows, httpx_options, in_order
from bakeoff_providers.base import ModelCard, Price, Role
from bakeoff_providers.cards import price
from bakeoff_providers.connection import Connection
from bakeoff_providers.errors import CallFailed, Unavailable, lack
from bakeoff_providers.hosted import Hosted, open_card
from bakeoff_providers.needs import Needs

PRICES = "https://openai.com/api/pricing"


def _card(name: str, dimensions: int, price: Price | None, fixed: bool = False) -> ModelCard:
    return ModelCard(
        name=name,
        dimensions=dimensions,
        output_dimensions=(dimensions,) if fixed else (),
        context=8192,
        batch_items=2048,
        batch_tokens=300_000,
        price=price,
    )


class OpenAIServer(Connection):
    """OpenAI's server, or a compatible one, which seldom needs a key."""

    name = "openai"
    extra: ClassVar[str | None] = "openai"
    modules: ClassVar[tuple[str, ...]] = ("openai",)
    keys = ("OPENAI_API_KEY",)
    own_url = "https://api.openai.com/v1"
    url_variable = "OPENAI_BASE_URL"

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """No key if another server is named."""
        if options.get("key_env") or options.get("base_url"):
            return super().needs(**options)
        return replace(super().needs(**options), keys=cls.keys, server=cls.url_variable)

    @classmethod
    def _keys(cls, key_env: str | None, base_url: str | None) -> tuple[str, ...]:
        """Only OpenAI's own server is known to need a key."""
        if key_env is None and (base_url or os.environ.get(cls.url_variable)):
            return ()
        return super()._keys(key_env, base_url)

    def ready(self) -> None:
        """Checks that a server of your own responds. It may serve models that it does not list."""
        super().ready()
        if not self.foreign:
            return
        sdk = self._get_sdk()
        try:
            self._run_call(sdk.models.list, Expected())
        except Exception as error:
            failed = self._failure(error)
            if isinstance(failed, CallFailed) and (failed.status is None or failed.status in (401, 403)):
                reason = lack("server_silent", url=self.public_url) if failed.status is None else str(failed)
                raise Unavailable(reason, of=self.name) from None

    def _connect(self, key: str) -> Any:
        import openai

        return openai.OpenAI(
            api_key=key,
            base_url=self.base_url,
            timeout=self._timeout,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(**httpx_options()),
        )

    def _hints(self) -> dict[int, str]:
        hints = super()._hints()
        if self.foreign:
            hints[404] += f" And is {self.public_url} the right base_url? Most servers want it to end in /v1"
        return hints


class OpenAI(OpenAIServer, Hosted):
    """OpenAI's hosted models, or any server with this API; default: text-embedding-3-small."""

    default_model = "text-embedding-3-small"
    cards = (
        _card("text-embedding-3-small", 1536, price(0.02, "2026-11", PRICES)),
        _card("text-embedding-3-large", 3072, price(0.13, "2026-11", PRICES)),
        _card("text-embedding-ada-002", 1536, None, fixed=True),
        ModelCard(
            name="mistral-embed",
            dimensions=1024,
            output_dimensions=(1024,),
            context=8192,
            price=price(0.10, "2026-11", "https://mistral.ai/pricing"),
        ),
    )
    open_card = open_card(batch_items=64)
    embeds_nothing = r"(gpt-[345]|chatgpt-|o[1-9](-|$))"
    shape = IndexedRows

    def _call(self, sdk: Any, inputs: list[str], role: Role) -> tuple[Any, Any]:  # noqa: ARG002 - by prompt
        wanted = {} if self._asked is None else {"dimensions": self._asked}
        # Set explicitly, because the SDK's own decoding breaks on a page or a null.
        answer = sdk.embeddings.create(model=self.card.name, input=inputs, encoding_format="base64", **wanted)
        if isinstance(answer, str):
            raise json.JSONDecodeError("a page instead of JSON", answer, 0)
        if getattr(answer, "data", None) is None:
            return None, None
        rows = list(answer.data)
        rows = in_order(rows, [row.index for row in rows])
        return [_decode(row.embedding) for row in rows], getattr(getattr(answer, "usage", None), "prompt_tokens", None)

    def _hints(self) -> dict[int, str]:
        return super()._hints() | {400: "if a text is too long, cut texts with chunking or max_chars"}


def _decode(embedding: Any) -> Any:
    """Base64 if the server supports it, else the numbers it sent."""
    return (
        np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
        if isinstance(embedding, str)
        else embedding
    )
