"""What only the Voyage adapter does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bakeoff_providers.base import Role
from bakeoff_providers.errors import CallFailed, InputError
from bakeoff_providers.voyage import Voyage

from tests.errors import refuses
from tests.wire import PROXIES, Fault, WireServer


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in (*PROXIES, "VOYAGE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-0123456789")
    with WireServer() as server:
        yield server


def test_the_body_is_the_apis(wire: WireServer) -> None:
    Voyage(base_url=wire.base("voyage"), dimensions=512, truncate=False).embed(["a"], Role.QUERY)
    body = wire.requests[0].body
    assert {name: value for name, value in body.items() if value is not None} == {
        "model": "voyage-4",
        "input": ["a"],
        "input_type": "query",
        "truncation": False,
        "output_dimension": 512,
        "encoding_format": "base64",
    }


def test_a_task_may_be_left_out(wire: WireServer) -> None:
    Voyage(base_url=wire.base("voyage"), query_task="").embed(["a"], Role.QUERY)
    assert wire.requests[0].task is None


def test_more_than_the_default_dimensions(wire: WireServer) -> None:
    assert Voyage(base_url=wire.base("voyage"), dimensions=2048).embed(["a"], Role.QUERY).vectors.shape == (1, 2048)
    with refuses(InputError, "300"):
        Voyage(dimensions=300)


def test_a_529_is_no_attribute_error(wire: WireServer) -> None:
    wire.faults.append(Fault(status=529, headers={"Retry-After": "4"}))
    with pytest.raises(CallFailed) as caught:
        Voyage(base_url=wire.base("voyage")).embed(["a"], Role.DOCUMENT)
    assert (caught.value.status, caught.value.retryable, caught.value.retry_after) == (529, True, 4.0)


@pytest.mark.parametrize("model", ["voyage-4-large", "voyage-4", "voyage-4-lite"])
def test_the_cards_token_limit_is_the_services(wire: WireServer, model: str) -> None:
    provider = Voyage(base_url=wire.base("voyage"), model=model)
    assert provider.card.batch_tokens is not None
    tokens = provider.card.batch_tokens // 4
    assert provider.embed(["abcd" * tokens] * 4, Role.DOCUMENT).tokens == provider.card.batch_tokens
    with refuses(CallFailed, "tokens"):
        provider.embed(["abcd" * tokens] * 4 + ["e"], Role.DOCUMENT)
