"""What only the Cohere adapter does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bakeoff_providers.base import Role
from bakeoff_providers.cohere import Cohere

from tests.wire import PROXIES, WireServer


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in (*PROXIES, "CO_API_KEY", "CO_API_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COHERE_API_KEY", "co-0123456789")
    with WireServer() as server:
        yield server


@pytest.mark.parametrize(("truncate", "sent"), [(None, "END"), (True, "END"), (False, "NONE")])
def test_the_body_is_the_apis(wire: WireServer, truncate: bool | None, sent: str) -> None:
    Cohere(base_url=wire.url, dimensions=512, truncate=truncate).embed(["a"], Role.QUERY)
    assert wire.requests[0].body == {
        "model": "embed-v4.0",
        "texts": ["a"],
        "input_type": "search_query",
        "embedding_types": ["float"],
        "output_dimension": 512,
        "truncate": sent,
    }


def test_another_server_may_stand_in_the_environment(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_API_URL", wire.url)
    Cohere().embed(["a"], Role.DOCUMENT)
    assert wire.requests[0].headers["authorization"] == "Bearer co-0123456789"
