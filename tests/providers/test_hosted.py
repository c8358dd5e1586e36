"""What every hosted adapter promises, shown on its real SDK against the wire-compatible server."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.errors import CallFailed, EmbeddingFailed, InputError, Unavailable
from bakeoff_providers.hosted import Hosted

from tests.dialects import Asked
from tests.errors import refuses
from tests.services import ADDRESSES, HOSTED, KEYS
from tests.wire import PROXIES, Fault, Kind, WireServer

KEY = "test-key-0123456789abcdef"
TEXTS = ["the first text", "a second one, longer than the first", "ünïcödé – 日本語"]


@dataclass(frozen=True)
class Case:
    """One adapter over one SDK: what it should send for each role."""

    provider: str
    key: str
    header: str
    sent: tuple[str, str]
    tasks: tuple[str | None, str | None] = (None, None)
    legacy: bool = False
    tokens: bool = True

    def __str__(self) -> str:
        return f"{self.provider}-legacy" if self.legacy else self.provider


GEMINI = ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
CASES = [
    Case("openai", "OPENAI_API_KEY", "authorization", ("", "")),
    Case("voyage", "VOYAGE_API_KEY", "authorization", ("", ""), ("document", "query")),
    Case("gemini", "GEMINI_API_KEY", "x-goog-api-key", ("", ""), GEMINI),
    Case("gemini", "GOOGLE_API_KEY", "x-goog-api-key", ("", ""), GEMINI, legacy=True, tokens=False),
    Case("cohere", "CO_API_KEY", "authorization", ("", ""), ("search_document", "search_query")),
    Case("ollama", "OLLAMA_API_KEY", "authorization", ("search_document: ", "search_query: ")),
]
PASSING: list[Kind] = ["drop", "broken", "truncated", "html"]
WRONG: list[Kind] = ["wrong_shape", "null", "too_few", "nan", "zero", "dimension"]


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def test_every_hosted_provider_has_a_case() -> None:
    assert {case.provider for case in CASES} == set(HOSTED)


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Case:
    case: Case = request.param
    for name in (*PROXIES, *ADDRESSES.values(), *KEYS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(case.key, KEY)
    if case.legacy:
        monkeypatch.setitem(sys.modules, "google.genai", None)  # as if it were not installed
    return case


@pytest.fixture
def provider(case: Case, wire: WireServer) -> Iterator[Hosted]:
    provider = make(case, wire)
    yield provider
    provider.close()


def make(case: Case, wire: WireServer, **options: object) -> Hosted:
    made = PROVIDERS.create(case.provider, base_url=wire.base(case.provider), **options)
    assert isinstance(made, Hosted)
    return made


def failed(provider: Hosted, texts: list[str] = TEXTS) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        provider.embed(texts, Role.DOCUMENT)
    return caught.value


@pytest.mark.parametrize("role", list(Role))
def test_sends_the_texts_in_their_role_and_reads_the_vectors(
    case: Case, wire: WireServer, provider: Hosted, role: Role
) -> None:
    batch = provider.embed(TEXTS, role)

    (request,) = wire.requests
    index = list(Role).index(role)
    sent = [case.sent[index] + text for text in TEXTS]
    assert (request.provider, request.model, request.texts) == (case.provider, provider.card.name, sent)
    assert (request.task, request.dimensions) == (case.tasks[index], None)
    assert request.headers[case.header].removeprefix("Bearer ") == KEY
    expected = wire.vectors(Asked(provider.card.name, sent, case.tasks[index]))
    assert batch.vectors.dtype == np.float32
    assert batch.vectors.shape == (3, provider.card.dimensions)
    np.testing.assert_allclose(batch.vectors, expected, rtol=1e-5)
    assert batch.tokens == (sum(-(-len(text) // 4) for text in sent) if case.tokens else None)


def test_the_environment_may_name_the_server(case: Case, wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    named = make(case, wire)
    monkeypatch.setenv(ADDRESSES[case.provider], f" {wire.base(case.provider)}/ ")
    provider = PROVIDERS.create(case.provider)
    provider.ready()
    vectors = provider.embed(TEXTS, Role.DOCUMENT).vectors
    (request,) = wire.embeddings()
    assert request.headers[case.header].removeprefix("Bearer ") == KEY
    assert request.texts == [case.sent[0] + text for text in TEXTS]
    assert provider.identity(Role.DOCUMENT) == named.identity(Role.DOCUMENT)
    np.testing.assert_array_equal(vectors, named.embed(TEXTS, Role.DOCUMENT).vectors)
    with WireServer() as other:  # what the line-up says goes before what the environment says
        make(case, other).embed(TEXTS, Role.DOCUMENT)
        assert len(other.embeddings()) == 1


@pytest.mark.parametrize(
    ("provider", "model", "hint"),
    [
        ("gemini", "gemini-1.5-flash", "gemini-embedding-001"),
        ("gemini", "models/gemini-2.5-pro", "gemini-embedding-001"),
        ("openai", "gpt-4o-mini", "text-embedding-3-small"),
        ("openai", "o3", "text-embedding-3-small"),
        ("cohere", "command-r-plus", "embed-v4.0"),
        ("voyage", "rerank-2.5", "voyage-4"),
    ],
)
def test_a_model_that_embeds_nothing_is_refused_with_one_that_does(provider: str, model: str, hint: str) -> None:
    with refuses(InputError, model, place="model") as caught:
        PROVIDERS.create(provider, model=model)
    assert hint in caught.value.remedy


def test_asks_for_fewer_dimensions(case: Case, wire: WireServer) -> None:
    provider = make(case, wire, dimensions=256)
    vectors = provider.embed(TEXTS, Role.QUERY).vectors
    assert wire.requests[0].dimensions == 256
    assert vectors.shape == (3, 256)
    assert provider.identity(Role.QUERY)["dimensions"] == 256


def test_an_unlisted_model_works_with_an_open_card(case: Case, wire: WireServer) -> None:
    wire.pulled.append("made-up")
    provider = make(case, wire, model="made-up")
    assert provider.card.dimensions is None
    assert provider.embed(TEXTS, Role.DOCUMENT).vectors.shape == (3, 8)


def test_no_texts_make_no_request(wire: WireServer, provider: Hosted) -> None:
    assert provider.embed([], Role.DOCUMENT).vectors.shape == (0, provider.card.dimensions)
    assert wire.requests == []


def test_a_passing_status_may_be_tried_again_and_is_asked_once(wire: WireServer, provider: Hosted) -> None:
    for count, status in enumerate((408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529), start=1):
        wire.faults.append(Fault(status=status, headers={"Retry-After": "7"}, message="come back later"))
        error = failed(provider)
        assert (error.status, error.retryable, error.retry_after) == (status, True, 7.0)
        assert len(wire.requests) == count
    assert provider.embed(TEXTS, Role.DOCUMENT).vectors.shape[0] == 3


def test_a_fatal_status_is_asked_once_and_says_why(case: Case, wire: WireServer, provider: Hosted) -> None:
    for count, status in enumerate((400, 401, 403, 404, 413, 422), start=1):
        wire.faults.append(Fault(status=status, message="this will never work"))
        error = failed(provider)
        assert (error.status, error.retryable, error.retry_after) == (status, False, None)
        assert len(wire.requests) == count
        assert str(error).startswith(f"{case.provider} {provider.card.name}: HTTP {status} (")
        assert "this will never work" in str(error)
        assert (case.key in str(error)) == (status in (401, 403))


def test_a_broken_answer_may_be_tried_again(wire: WireServer, provider: Hosted) -> None:
    for count, kind in enumerate(PASSING, start=1):
        wire.faults.append(Fault(kind=kind))
        error = failed(provider)
        assert error.retryable
        assert error.status in (None, 200)
        assert len(wire.requests) == count
    assert provider.embed(TEXTS, Role.DOCUMENT).vectors.shape[0] == 3


def test_a_slow_answer_is_not_waited_for(case: Case, wire: WireServer) -> None:
    wire.faults.append(Fault(kind="slow", seconds=20))
    error = failed(make(case, wire, timeout=0.25))
    assert (error.status, error.retryable) == (None, True)
    assert case.provider.split("-")[0] in str(error)
    assert len(wire.requests) == 1


def test_a_wrong_answer_is_refused_in_words(wire: WireServer, provider: Hosted) -> None:
    for count, kind in enumerate(WRONG, start=1):
        wire.faults.append(Fault(kind=kind))
        with refuses(EmbeddingFailed, provider.card.name):
            provider.embed(TEXTS, Role.DOCUMENT)
        assert len(wire.requests) == count


def test_no_server_is_a_transport_failure(case: Case, wire: WireServer) -> None:
    with WireServer() as gone:
        provider = make(case, gone)
    error = failed(provider)
    assert (error.status, error.retryable) == (None, True)


def test_a_key_shows_nowhere(
    case: Case, wire: WireServer, provider: Hosted, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = ""
    faults = [Fault(status=status, message=f"bad key {KEY}") for status in (400, 401, 404, 422, 429, 500, 529)]
    for fault in [*faults, Fault(kind="drop"), Fault(kind="wrong_shape")]:
        wire.faults.append(fault)
        with pytest.raises((CallFailed, EmbeddingFailed)) as caught:
            provider.embed(TEXTS, Role.DOCUMENT)
        shown += "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    provider.embed(TEXTS, Role.DOCUMENT)
    out = capfd.readouterr()
    for text in (shown, caplog.text, out.out, out.err, repr(provider), repr(vars(provider)), str(identities(provider))):
        assert KEY not in text


def identities(provider: Hosted) -> list[object]:
    return [provider.identity(role) for role in Role]


def test_without_a_key_nothing_is_asked(case: Case, wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(case.key)
    provider = make(case, wire)
    if case.provider in ("ollama", "openai"):  # a server of one's own wants none
        provider.embed(TEXTS, Role.DOCUMENT)
        assert wire.requests[0].headers.get("authorization") in (None, "Bearer none")
        return
    assert case.key in (type(provider).missing() or "")
    for attempt in (provider.ready, lambda: provider.embed(TEXTS, Role.DOCUMENT)):
        with refuses(Unavailable, case.key):
            attempt()
    assert wire.requests == []


def test_with_a_key_nothing_is_missing(case: Case, provider: Hosted) -> None:
    assert type(provider).missing() is None
    provider.ready()


def test_the_key_may_stand_in_another_variable(case: Case, wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(case.key)
    monkeypatch.setenv("MY_KEY", "another-key-of-mine")
    make(case, wire, key_env="MY_KEY").embed(TEXTS, Role.DOCUMENT)
    assert wire.requests[0].headers[case.header].endswith("another-key-of-mine")
    with refuses(Unavailable, "NO_SUCH_KEY"):
        make(case, wire, key_env="NO_SUCH_KEY").ready()
    with pytest.raises(InputError) as caught:
        make(case, wire, key_env="sk-a-real-key")
    assert "sk-a-real-key" not in str(caught.value)


def test_the_cards_limit_is_the_services(case: Case, wire: WireServer, provider: Hosted) -> None:
    most = provider.card.batch_items
    assert len(provider.embed([f"text {n}" for n in range(most)], Role.DOCUMENT).vectors) == most
    assert len(wire.requests) == 1
    if case.provider == "ollama" or case.legacy:
        return  # ollama has no limit, and google-generativeai splits by itself
    assert failed(provider, [f"text {n}" for n in range(most + 1)]).status == 400


def test_threads_share_an_adapter(case: Case, wire: WireServer, provider: Hosted) -> None:
    batches = [[f"text {n}", f"other {n}"] for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda texts: provider.embed(texts, Role.QUERY).vectors, batches))
    for texts, vectors in zip(batches, answers, strict=True):
        sent = [case.sent[1] + text for text in texts]
        expected = wire.vectors(Asked(provider.card.name, sent, case.tasks[1]))
        np.testing.assert_allclose(vectors, expected, rtol=1e-5)
    assert len(wire.requests) == 24


def test_closing_lets_the_next_call_connect_anew(wire: WireServer, provider: Hosted) -> None:
    for _ in range(2):
        provider.embed(TEXTS, Role.DOCUMENT)
        provider.close()
    provider.close()
    assert len(wire.requests) == 2


def test_long_texts_are_cut_and_counted(case: Case, wire: WireServer) -> None:
    provider = make(case, wire, max_chars=10)
    batch = provider.embed(["short", "rather longer"], Role.DOCUMENT)
    assert wire.requests[0].texts == [case.sent[0] + "short", case.sent[0] + "rather lon"]
    assert batch.truncated == 1
    assert provider.identity(Role.DOCUMENT)["max_chars"] == 10


def test_prompts_of_the_line_up_are_sent(case: Case, wire: WireServer) -> None:
    provider = make(case, wire, document_prompt="D: ", query_prompt="Q: ")
    for role in Role:
        provider.embed(["x"], role)
    assert [request.texts for request in wire.requests] == [["D: x"], ["Q: x"]]
    assert provider.identity(Role.QUERY)["prompt"] == "Q: "


def test_tasks_of_the_line_up_are_sent(case: Case, wire: WireServer) -> None:
    if case.tasks[0] is None:
        with refuses(InputError, "task"):
            make(case, wire, query_task="anything")
        return
    provider = make(case, wire, query_task=case.tasks[0])
    provider.embed(["x"], Role.QUERY)
    assert wire.requests[0].task == case.tasks[0]
    assert provider.identity(Role.QUERY) != make(case, wire).identity(Role.QUERY)


def test_identity_tells_roles_servers_and_truncation_apart(case: Case, wire: WireServer) -> None:
    here = make(case, wire)
    own = PROVIDERS.create(case.provider)
    assert own.identity(Role.QUERY).get("server") is None
    assert here.identity(Role.QUERY)["server"] == wire.base(case.provider)
    assert own.identity(Role.QUERY) != own.identity(Role.DOCUMENT)
    if here.cuts:
        assert make(case, wire, truncate=False).identity(Role.QUERY) != here.identity(Role.QUERY)
    else:
        with refuses(InputError, case.provider):
            make(case, wire, truncate=False)


def test_a_password_in_the_address_stays_there(case: Case, wire: WireServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    address = wire.base(case.provider).replace("http://", "http://me:hunter2hunter@")
    provider = PROVIDERS.create(case.provider, base_url=address)
    assert isinstance(provider, Hosted)
    wire.faults += [Fault(status=404, message=f"nothing at {address}"), Fault(kind="drop")]
    shown = [str(failed(provider)), str(failed(provider)), str(provider.identity(Role.QUERY)), caplog.text]
    assert not [text for text in shown if "hunter2" in text]


def test_a_server_may_not_say_when(wire: WireServer, provider: Hosted) -> None:
    wire.faults += [Fault(status=429), Fault(status=429, headers={"Retry-After": "soon"})]
    assert [failed(provider).retry_after, failed(provider).retry_after] == [None, None]
