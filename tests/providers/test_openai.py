"""What only the OpenAI adapter does: servers of one's own, and answers in several forms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bakeoff_providers.base import Role
from bakeoff_providers.errors import CallFailed, Unavailable
from bakeoff_providers.openai import OpenAI

from tests.errors import refuses, says
from tests.wire import PROXIES, Fault, WireServer


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in (*PROXIES, "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with WireServer() as server:
        yield server


def test_the_body_is_the_apis(wire: WireServer) -> None:
    OpenAI(base_url=wire.base("openai"), dimensions=512).embed(["a"], Role.QUERY)
    assert wire.requests[0].body == {
        "model": "text-embedding-3-small",
        "input": ["a"],
        "dimensions": 512,
        "encoding_format": "base64",
    }


def test_the_full_dimensions_need_not_be_asked_for(wire: WireServer) -> None:
    OpenAI(base_url=wire.base("openai"), dimensions=1536).embed(["a"], Role.QUERY)
    assert "dimensions" not in wire.requests[0].body


def test_only_openais_own_server_wants_a_key(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    says(OpenAI.missing() or "", "OPENAI_API_KEY")
    assert OpenAI.missing(base_url=wire.base("openai")) is None
    with refuses(Unavailable, "OPENAI_API_KEY"):
        OpenAI().ready()
    monkeypatch.setenv("OPENAI_BASE_URL", wire.base("openai"))
    assert OpenAI.missing() is None
    OpenAI().embed(["a"], Role.DOCUMENT)
    assert wire.requests[0].headers["authorization"] == "Bearer none"


def test_the_environments_server_is_part_of_the_identity(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    own = OpenAI().identity(Role.QUERY)
    monkeypatch.setenv("OPENAI_BASE_URL", wire.base("openai"))
    assert OpenAI().identity(Role.QUERY) != own


def test_a_server_that_is_there_is_ready(wire: WireServer) -> None:
    OpenAI(base_url=wire.base("openai"), model="served-without-a-list").ready()
    OpenAI(base_url=wire.url).ready()  # answers 404 to the list of models, but it answers
    assert wire.embeddings() == []


def test_a_server_that_is_gone_is_unavailable() -> None:
    with WireServer() as gone:
        url = gone.base("openai")
    with refuses(Unavailable, url):
        OpenAI(base_url=url).ready()


def test_a_wrong_address_says_what_is_wrong(wire: WireServer) -> None:
    with refuses(CallFailed, "1") as caught:
        OpenAI(base_url=wire.url).embed(["a"], Role.DOCUMENT)
    assert (caught.value.status, caught.value.retryable) == (404, False)


def test_no_money_left_is_final(wire: WireServer) -> None:
    wire.faults.append(Fault(status=429, code="insufficient_quota", headers={"Retry-After": "1"}))
    with pytest.raises(CallFailed) as caught:
        OpenAI(base_url=wire.base("openai")).embed(["a"], Role.DOCUMENT)
    assert (caught.value.status, caught.value.retryable) == (429, False)


def test_a_text_beyond_the_context_names_the_remedy(wire: WireServer) -> None:
    provider = OpenAI(base_url=wire.base("openai"))
    with refuses(CallFailed, "max_chars"):
        provider.embed(["word " * 20_000], Role.DOCUMENT)
    short = OpenAI(base_url=wire.base("openai"), max_chars=30_000)
    assert short.embed(["word " * 20_000], Role.DOCUMENT).truncated == 1
