"""What only the Ollama adapter does: readiness, and the many ways to write a host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bakeoff_providers.base import Role
from bakeoff_providers.errors import CallFailed, Unavailable
from bakeoff_providers.ollama import Ollama

from tests.errors import refuses
from tests.wire import PROXIES, WireServer


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in (*PROXIES, "OLLAMA_HOST", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with WireServer() as server:
        yield server


def test_the_body_is_the_apis(wire: WireServer) -> None:
    Ollama(base_url=wire.url, truncate=False, dimensions=256).embed(["a"], Role.QUERY)
    assert wire.requests[0].body == {
        "model": "nomic-embed-text",
        "input": ["search_query: a"],
        "truncate": False,
        "dimensions": 256,
    }
    assert "authorization" not in wire.requests[0].headers


def test_only_queries_of_mxbai_have_a_prompt(wire: WireServer) -> None:
    provider = Ollama(base_url=wire.url, model="mxbai-embed-large")
    for role in Role:
        provider.embed(["a"], role)
    sent = [request.texts for request in wire.requests]
    assert sent == [["a"], ["Represent this sentence for searching relevant passages: a"]]


@pytest.mark.parametrize("model", ["nomic-embed-text", "nomic-embed-text:latest", "mxbai-embed-large"])
def test_ready_when_the_model_is_there(wire: WireServer, model: str) -> None:
    Ollama(base_url=wire.url, model=model).ready()
    assert [request.path for request in wire.requests] == ["/api/tags"]  # it asked, and embedded nothing


@pytest.mark.parametrize("model", ["bge-m3", "nomic-embed-text:v1.5"])
def test_a_missing_model_names_the_pull(wire: WireServer, model: str) -> None:
    with refuses(Unavailable, model):
        Ollama(base_url=wire.url, model=model).ready()
    with refuses(CallFailed, model):
        Ollama(base_url=wire.url, model=model).embed(["a"], Role.QUERY)


def test_no_server_names_the_command() -> None:
    with WireServer() as gone:
        url = gone.url
    with refuses(Unavailable, url):
        Ollama(base_url=url).ready()


def test_a_proxy_is_not_asked(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert Ollama(base_url=wire.url).embed(["a"], Role.QUERY).vectors.shape == (1, 768)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("localhost:11434", "http://127.0.0.1:11434"),
        ("http://localhost:11434/", "http://127.0.0.1:11434"),
        ("box", "http://box:11434"),
        ("box:8080", "http://box:8080"),
        ("https://box", "https://box"),
        ("http://[::1]", "http://[::1]:11434"),
        ("http://me:pass@box", "http://me:pass@box:11434"),
    ],
)
def test_a_host_may_be_written_in_short(monkeypatch: pytest.MonkeyPatch, host: str, url: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    provider = Ollama()
    assert provider.base_url == url
    assert ("server" in provider.identity(Role.QUERY)) == (url != "http://127.0.0.1:11434")
