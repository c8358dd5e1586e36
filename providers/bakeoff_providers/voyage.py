"""Voyage AI, through its own SDK."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bakeoff_providers.answers import HEADERS, Expected, IndexedRows, guard_requests, in_order
from bakeoff_providers.base import ModelCard, Price, Role
from bakeoff_providers.cards import price
from bakeoff_providers.hosted import Hosted, open_card

PRICES = "https://docs.voyageai.com/docs/pricing"
FLEXIBLE = (256, 512, 1024, 2048)


def _card(
    name: str, price: Price | None, batch_tokens: int, *, outputs: tuple[int, ...] = FLEXIBLE, context: int = 32_000
) -> ModelCard:
    return ModelCard(
        name=name,
        dimensions=1024,
        output_dimensions=outputs,
        context=context,
        batch_items=1000,
        batch_tokens=batch_tokens,
        price=price,
    )


class Voyage(Hosted):
    """Voyage AI's hosted models; default: voyage-4.

    Documents and queries are distinguished by `input_type`.
    """

    name = "voyage"
    default_model = "voyage-4"
    extra = "voyage"
    modules = ("voyageai",)
    keys = ("VOYAGE_API_KEY",)
    own_url = "https://api.voyageai.com/v1"
    url_variable = "VOYAGE_BASE_URL"
    tasks = ("document", "query")
    cuts = True
    cards = (
        _card("voyage-4", price(0.06, "2026-11", PRICES), 320_000),
        _card("voyage-4-lite", price(0.02, "2026-11", PRICES), 1_000_000),
        _card("voyage-4-large", price(0.12, "2026-11", PRICES), 120_000),
        _card("voyage-3.5", price(0.06, "2026-11", PRICES), 320_000),
        _card("voyage-3.5-lite", price(0.02, "2026-11", PRICES), 1_000_000),
        _card("voyage-3-large", price(0.18, "2026-11", PRICES), 120_000),
        _card("voyage-code-3", None, 120_000),
        _card("voyage-finance-2", None, 120_000, outputs=(1024,)),
        _card("voyage-law-2", None, 120_000, outputs=(1024,), context=16_000),
    )
    open_card = open_card(batch_items=1000, batch_tokens=120_000)
    embeds_nothing = "rerank-"
    shape = IndexedRows

    def _connect(self, key: str) -> Any:
        voyageai: Any = import_module("voyageai")
        if voyageai.requestssession is None:
            voyageai.requestssession = _session
        # Without an address, the SDK picks the server by the key: MongoDB's keys use another one.
        where = {"base_url": self.base_url} if self.foreign else {}
        return voyageai.Client(api_key=key, timeout=self._timeout, max_retries=0, **where)

    def _call(self, sdk: Any, inputs: list[str], role: Role) -> tuple[Any, Any]:
        answer = sdk.embed(
            inputs,
            model=self.card.name,
            input_type=self.task(role),
            truncation=self._truncate,
            output_dimension=self._asked,
        )
        return answer.embeddings, answer.total_tokens

    def _rows(self, answer: tuple[Any, Any], expected: Expected) -> tuple[Any, Any]:
        """The SDK drops the indices and keeps the order of arrival."""
        rows, tokens = answer
        return in_order(rows, expected.require().places), tokens

    def _disconnect(self, sdk: Any) -> None:
        """Nothing: the SDK's sessions are per thread and out of reach."""


def _session() -> Any:
    """The SDK retries connections itself and fails on a 529. This session does neither."""
    import requests

    def refuse(response: requests.Response, **_: Any) -> None:
        if response.status_code >= 500:
            response.raise_for_status()

    session = requests.Session()
    session.headers.update(HEADERS)
    session.hooks["response"] += [guard_requests, refuse]
    return session
