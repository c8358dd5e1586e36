"""What a server sends is checked before it is believed, through every real SDK."""

from __future__ import annotations

import json

import httpx
import numpy as np
import pytest
from bakeoff_providers import PROVIDERS, stopping
from bakeoff_providers.answers import Expected, IndexedRows, RefusedAnswer, expecting, guard_httpx, read_count
from bakeoff_providers.base import Role
from bakeoff_providers.errors import BakeoffError, CallFailed, EmbeddingFailed
from bakeoff_providers.hosted import Hosted

from tests.dialects import Asked
from tests.errors import refuses, says
from tests.providers.test_hosted import TEXTS, Case, case, make, provider, wire
from tests.services import NUMBERED
from tests.wire import PROXIES, Fault, WireServer

__all__ = ["case", "provider", "wire"]  # fixtures


def refused(provider: Hosted) -> BakeoffError:
    with pytest.raises(EmbeddingFailed) as caught:
        provider.embed(TEXTS, Role.DOCUMENT)
    return caught.value


def test_a_redirect_is_not_followed(wire: WireServer, provider: Hosted) -> None:
    with WireServer() as other:
        for count, status in enumerate((301, 302, 303, 307, 308), start=1):
            wire.faults.append(Fault(status=status, headers={"Location": f"{other.url}/steal?key=k"}))
            with refuses(CallFailed, "redirect") as caught:
                provider.embed(TEXTS, Role.DOCUMENT)
            assert (caught.value.status, caught.value.retryable) == (status, False)
            assert "key=k" not in str(caught.value)
            assert len(wire.requests) == count
        assert other.requests == []


@pytest.mark.parametrize("kind", ["boolean", "text"])
def test_what_is_no_number_is_refused(wire: WireServer, provider: Hosted, kind: str) -> None:
    wire.faults.append(Fault(kind=kind))  # type: ignore[arg-type]
    says(str(refused(provider)))


def test_rows_are_placed_by_their_index(case: Case, wire: WireServer, provider: Hosted) -> None:
    if case.provider not in NUMBERED:
        pytest.skip("this protocol numbers no rows")
    wire.faults += [Fault(kind="reversed"), Fault(kind="duplicate")]
    expected = wire.vectors(Asked(provider.card.name, TEXTS, case.tasks[0]))
    np.testing.assert_allclose(provider.embed(TEXTS, Role.DOCUMENT).vectors, expected, rtol=1e-5)
    assert "indices" in str(refused(provider))


def test_an_answer_larger_than_asked_for_is_not_read(wire: WireServer, provider: Hosted) -> None:
    wire.faults.append(Fault(kind="huge"))
    assert "bytes" in str(refused(provider))


def test_an_answer_that_drips_has_a_deadline(case: Case, wire: WireServer) -> None:
    wire.faults.append(Fault(kind="drip", seconds=0.05))
    with pytest.raises(CallFailed) as caught:
        make(case, wire, timeout=0.4).embed(TEXTS, Role.DOCUMENT)
    assert caught.value.retryable
    assert len(wire.requests) == 1


@pytest.mark.parametrize("kind", ["stray_nan", "bom"])
def test_what_only_a_lenient_parser_reads_is_refused(wire: WireServer, provider: Hosted, kind: str) -> None:
    wire.faults.append(Fault(kind=kind))  # type: ignore[arg-type]
    says(str(refused(provider)), "JSON")
    assert len(wire.requests) == 1


def test_rows_past_their_number_are_refused(case: Case, wire: WireServer, provider: Hosted) -> None:
    wire.faults.append(Fault(kind="twice"))
    refused(provider)
    if case.provider in NUMBERED:
        wire.faults.append(Fault(kind="text_index"))
        says(str(refused(provider)))


@pytest.mark.parametrize("kind", ["text_tokens", "negative_tokens"])
def test_counts_that_are_none_are_not_believed(case: Case, wire: WireServer, provider: Hosted, kind: str) -> None:
    wire.faults.append(Fault(kind=kind))  # type: ignore[arg-type]
    if case.provider == "voyage" and kind == "text_tokens":
        refused(provider)  # the SDK adds them up
        return
    batch = provider.embed(TEXTS, Role.DOCUMENT)
    sent = [case.sent[0] + text for text in TEXTS]
    expected = wire.vectors(Asked(provider.card.name, sent, case.tasks[0]))
    np.testing.assert_allclose(batch.vectors, expected, rtol=1e-5)
    assert batch.tokens in ((None, 12) if kind == "text_tokens" else (None,))  # some SDKs read the number in a text


@pytest.mark.parametrize(
    ("tokens", "count"),
    [(7, 7), (7.0, 7), (0, 0), (7.5, None), (-1, None), (True, None), ("7", None), (10**400, None), (None, None)],
)
def test_what_counts_as_a_number_of_tokens(tokens: object, count: int | None) -> None:
    assert read_count(tokens) == count


def test_an_answer_that_no_check_saw_is_not_believed(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a program that we run in gave Voyage's SDK sessions of its own."""
    import requests

    voyageai = pytest.importorskip("voyageai")
    monkeypatch.setattr(voyageai, "requestssession", requests.Session)
    monkeypatch.setattr(stopping, "_idle", [])  # a thread that has no session yet
    monkeypatch.setenv("VOYAGE_API_KEY", "k" * 20)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    made = PROVIDERS.create("voyage", base_url=wire.base("voyage"))
    assert isinstance(made, Hosted)
    wire.faults.append(Fault(kind="reversed"))
    says(str(refused(made)), "voyage-4")


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b', "data": []}', RefusedAnswer, "nested"),
        ('{"data": []}'.encode("utf-16"), RefusedAnswer, "JSON"),
        (b'{"data": [{"embedding": "\\ud800", "index": 0}]}', RefusedAnswer, "JSON"),
        (b'{"data": [{"embedding": "\xff", "index": 0}]}', json.JSONDecodeError, "JSON"),
        (b'{"data": [', json.JSONDecodeError, "JSON"),
        (b"", json.JSONDecodeError, "JSON"),
    ],
)
def test_what_is_broken_may_pass_and_what_is_odd_may_not(body: bytes, error: type[Exception], said: str) -> None:
    response = httpx.Response(200, content=body)
    with expecting(Expected(1 << 20, IndexedRows)) as expected, refuses(error, said):
        guard_httpx(response)
    assert expected.parsed is None
