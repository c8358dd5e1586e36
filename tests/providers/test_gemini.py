"""What only the Gemini adapter does: two SDKs, task types or prompts, and shortened vectors."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.errors import CallFailed, InputError, Unavailable
from bakeoff_providers.gemini import Gemini, Sdk

from tests.errors import refuses
from tests.wire import PROXIES, Fault, WireServer


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in (*PROXIES, "GOOGLE_API_KEY", "GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "AIza0123456789")
    with WireServer() as server:
        yield server


@pytest.fixture(params=["google-genai", "google-generativeai"])
def sdk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "google-generativeai":
        monkeypatch.setitem(sys.modules, "google.genai", None)
    return str(request.param)


def test_the_newer_sdk_is_taken_where_both_are(wire: WireServer) -> None:
    Gemini(base_url=wire.url).embed(["a"], Role.QUERY)
    assert wire.requests[0].headers["x-goog-api-client"].startswith("google-genai-sdk/")


@pytest.mark.parametrize(("sdk", "client"), [("google-genai", "google-genai-sdk/"), ("google-generativeai", "gapic/")])
def test_an_option_chooses_the_sdk_where_both_are(wire: WireServer, sdk: Sdk, client: str) -> None:
    chosen = Gemini(base_url=wire.url, sdk=sdk)
    chosen.embed(["a"], Role.QUERY)
    assert client in wire.requests[0].headers["x-goog-api-client"]
    assert chosen.identity(Role.QUERY) == Gemini(base_url=wire.url).identity(Role.QUERY)


def test_the_sdk_that_was_chosen_has_to_be_there(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.generativeai", None)
    chosen = Gemini(base_url=wire.url, sdk="google-generativeai")
    assert Gemini.missing(sdk="google-generativeai") == "install bakeoff[gemini-legacy]"
    for attempt in (chosen.ready, lambda: chosen.embed(["a"], Role.QUERY)):
        with refuses(Unavailable, "bakeoff[gemini-legacy]"):
            attempt()
    assert wire.requests == []
    with refuses(InputError, "sdk", place="sdk"):
        PROVIDERS.create("gemini", sdk="google")


def test_a_key_and_a_package_that_are_missing_are_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for module in ("google.genai", "google.generativeai", "voyageai"):
        monkeypatch.setitem(sys.modules, module, None)
    for provider, wanted in (
        ("gemini", ["GEMINI_API_KEY", "install bakeoff[gemini]"]),
        ("voyage", ["VOYAGE_API_KEY", "install bakeoff[voyage]"]),
    ):
        reason = PROVIDERS.get(provider).missing() or ""
        assert all(part in reason for part in wanted), reason


def test_without_either_the_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "AIza0123456789")
    for module in ("google.genai", "google.generativeai"):
        monkeypatch.setitem(sys.modules, module, None)
    assert Gemini.missing() == "install bakeoff[gemini]"


@pytest.mark.usefixtures("sdk")
def test_both_sdks_give_the_same_vectors_under_one_identity(wire: WireServer) -> None:
    provider = Gemini(base_url=wire.url)
    batch = provider.embed(["a", "b"], Role.DOCUMENT)
    expected = wire.vectors_of("gemini-embedding-001", "RETRIEVAL_DOCUMENT", "a", "b")
    np.testing.assert_allclose(batch.vectors, expected, rtol=1e-5)
    assert "sdk" not in provider.identity(Role.DOCUMENT)


@pytest.mark.usefixtures("sdk")
def test_the_second_model_is_told_by_prompts_and_answers_a_vector_for_each_text(wire: WireServer) -> None:
    provider = Gemini(base_url=wire.url, model="gemini-embedding-2")
    for role in Role:
        assert provider.embed(["a", "b", "c"], role).vectors.shape == (3, 3072)
    documents, queries = wire.requests
    assert (documents.task, documents.texts[0]) == (None, "title: none | text: a")
    assert (queries.task, queries.texts[0]) == (None, "task: search result | query: a")


@pytest.mark.usefixtures("sdk")
def test_a_shortened_vector_is_normalised_again(wire: WireServer) -> None:
    vectors = Gemini(base_url=wire.url, dimensions=768).embed(["a", "b"], Role.QUERY).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)
    raw = wire.vectors_of("gemini-embedding-001", "RETRIEVAL_QUERY", "a", "b")[:, :768]
    assert np.linalg.norm(raw, axis=1).max() < 0.7


@pytest.mark.usefixtures("sdk")
def test_the_wait_is_read_from_the_body(wire: WireServer) -> None:
    wire.faults.append(Fault(status=429, code="34s"))
    with pytest.raises(CallFailed) as caught:
        Gemini(base_url=wire.url).embed(["a"], Role.QUERY)
    assert caught.value.retry_after == 34.0


def test_the_other_keys_name_will_do(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-the-other-0123")
    Gemini(base_url=wire.url).embed(["a"], Role.QUERY)
    assert wire.requests[0].headers["x-goog-api-key"] == "AIza-the-other-0123"
