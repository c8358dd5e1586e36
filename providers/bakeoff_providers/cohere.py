"""Cohere's embeddings, through the second version of its API."""

from __future__ import annotations

import builtins
from typing import Any

import msgspec

from bakeoff_providers.answers import Envelope, httpx_options
from bakeoff_providers.base import ModelCard, Price, Role
from bakeoff_providers.cards import price
from bakeoff_providers.hosted import Hosted, open_card

PRICES = "https://cohere.com/pricing"


def _card(name: str, dimensions: int, context: int, price: Price | None, outputs: tuple[int, ...]) -> ModelCard:
    return ModelCard(
        name=name,
        dimensions=dimensions,
        output_dimensions=outputs,
        context=context,
        batch_items=96,
        price=price,
    )


class _Vectors(msgspec.Struct, frozen=True):
    float: list[list[builtins.float]]


class _CohereVectors(Envelope, frozen=True):
    embeddings: _Vectors


class Cohere(Hosted):
    """Cohere's hosted models; default: embed-v4.0.

    Documents and queries are distinguished by `input_type`, which the service requires.
    """

    name = "cohere"
    default_model = "embed-v4.0"
    extra = "cohere"
    modules = ("cohere",)
    keys = ("CO_API_KEY", "COHERE_API_KEY")
    own_url = "https://api.cohere.com"
    url_variable = "CO_API_URL"
    tasks = ("search_document", "search_query")
    cuts = True
    cards = (
        _card("embed-v4.0", 1536, 128_000, price(0.12, "2026-11", PRICES), (256, 512, 1024, 1536)),
        _card("embed-english-v3.0", 1024, 512, None, (1024,)),
        _card("embed-multilingual-v3.0", 1024, 512, None, (1024,)),
        _card("embed-english-light-v3.0", 384, 512, None, (384,)),
        _card("embed-multilingual-light-v3.0", 384, 512, None, (384,)),
    )
    open_card = open_card(batch_items=96)
    embeds_nothing = "(command|rerank-|c4ai-)"
    shape = _CohereVectors

    def _connect(self, key: str) -> Any:
        import cohere
        import httpx

        return cohere.ClientV2(
            api_key=key,
            base_url=self.base_url,
            timeout=self._timeout,
            log_warning_experimental_features=False,
            httpx_client=httpx.Client(timeout=self._timeout, **httpx_options()),
        )

    def _call(self, sdk: Any, inputs: list[str], role: Role) -> tuple[Any, Any]:
        wanted = {} if self._asked is None else {"output_dimension": self._asked}
        answer = sdk.embed(
            model=self.card.name,
            texts=inputs,
            input_type=self.task(role),
            embedding_types=["float"],
            truncate="END" if self._truncate else "NONE",
            request_options={"max_retries": 0},
            **wanted,
        )
        billed = getattr(getattr(answer, "meta", None), "billed_units", None)
        tokens = getattr(billed, "input_tokens", None)
        rows = getattr(getattr(answer, "embeddings", None), "float_", None)
        return rows, tokens

    def _disconnect(self, sdk: Any) -> None:
        sdk.__exit__(None, None, None)
