"""Every chat adapter on its real SDK, against the wire-compatible server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bakeoff_providers.chat import CHATS
from bakeoff_providers.chat.base import ChatModel, Reply
from bakeoff_providers.errors import BakeoffError, CallFailed, InputError, Unavailable

from tests.errors import refuses
from tests.wire import PROXIES, Fault, WireServer

SCHEMA = {"type": "object", "properties": {"grade": {"type": "integer"}}}
NAMES = ["ollama", "gemini", "openai"]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "test-key-gemini")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-openai")
    with WireServer() as server:
        server.answer = lambda model, prompt: f'{{"grade": {len(prompt)}}}'
        yield server


def model(name: str, wire: WireServer, **options: Any) -> ChatModel:
    return CHATS.create(name, base_url=wire.base(name), timeout=5, **options)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_comes_back_as_the_answer_with_its_tokens(name: str, wire: WireServer) -> None:
    reply = model(name, wire).ask("12345678", SCHEMA, 7)
    assert reply.text == '{"grade": 8}'
    assert (reply.prompt_tokens, reply.answer_tokens) == (2, 3)
    (asked,) = wire.chats()
    assert asked.provider == f"{name} chat"
    assert asked.texts == ["12345678"]


def test_each_body_is_the_apis(wire: WireServer) -> None:
    for name in NAMES:
        model(name, wire, temperature=0.5, max_tokens=99).ask("hello", SCHEMA, 7)
    ollama, gemini, openai = (request.body for request in wire.chats())
    assert ollama["options"] == {"seed": 7, "temperature": 0.5, "num_predict": 99}
    assert ollama["format"] == SCHEMA
    assert ollama["stream"] is False
    config = gemini["generationConfig"]
    assert (config["temperature"], config["seed"], config["maxOutputTokens"]) == (0.5, 7, 99)
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"] == SCHEMA
    assert (openai["temperature"], openai["seed"], openai["max_tokens"]) == (0.5, 7, 99)
    assert openai["response_format"] == {"type": "json_object"}


def test_a_temperature_may_be_left_out(wire: WireServer) -> None:
    model("openai", wire, temperature=None).ask("hello", SCHEMA, 0)
    assert "temperature" not in wire.chats()[0].body


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", [Fault(status=429), Fault(status=503), Fault("drop"), Fault("truncated")])
def test_what_passes_may_be_tried_again(name: str, fault: Fault, wire: WireServer) -> None:
    wire.faults.append(fault)
    with pytest.raises(CallFailed) as caught:
        model(name, wire).ask("hello", SCHEMA, 0)
    assert caught.value.retryable
    assert len(wire.chats()) == 1  # the SDK made no second try of its own


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["html", "null", "wrong_shape"])
def test_nonsense_is_an_error_with_words(name: str, kind: Any, wire: WireServer) -> None:
    wire.faults.append(Fault(kind))
    with refuses(BakeoffError, name):
        model(name, wire).ask("hello", SCHEMA, 0)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_answer_is_asked_for_again(name: str, wire: WireServer) -> None:
    wire.answer = lambda model, prompt: "  "
    with refuses(CallFailed, name) as caught:
        model(name, wire).ask("hello", SCHEMA, 0)
    assert caught.value.retryable


def test_a_key_that_is_not_set_is_named(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with refuses(Unavailable, "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        model("gemini", wire).ready()
    assert model("openai", wire).ask("hello", SCHEMA, 0).text  # another server wants none
    with refuses(Unavailable, "OPENAI_API_KEY"):
        CHATS.create("openai").ready()


def test_a_model_that_ollama_lacks_is_named_with_the_remedy(wire: WireServer) -> None:
    with refuses(Unavailable, "3"):
        model("ollama", wire, model="qwen3").ready()


def test_prices_are_the_users_and_ollama_is_free(wire: WireServer) -> None:
    assert model("ollama", wire).price(1e6, 1e6) == 0
    assert model("openai", wire).price(1e6, 1e6) is None
    assert model("openai", wire, price_in=0.15, price_out=0.6).price(2e6, 1e6) == pytest.approx(0.9)
    with refuses(InputError, "price_in", place="price_in"):
        model("openai", wire, price_in=-1)


def test_another_server_or_temperature_is_another_identity(wire: WireServer) -> None:
    identities = [
        model("openai", wire).identity(),
        model("openai", wire, temperature=0.5).identity(),
        CHATS.create("openai", base_url="http://127.0.0.1:1/v1").identity(),
    ]
    assert len({str(identity) for identity in identities}) == 3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["no_text", "half", "stray_nan", "bom"])
def test_an_answer_that_is_no_text_fails_its_question_alone(name: str, kind: Any, wire: WireServer) -> None:
    wire.faults.append(Fault(kind))
    with refuses(CallFailed, name) as caught:
        model(name, wire).ask("hello", SCHEMA, 0)
    assert not caught.value.retryable
    assert len(wire.chats()) == 1


def test_a_text_in_parts_is_read_where_servers_send_it(wire: WireServer) -> None:
    wire.faults.append(Fault("parts"))
    assert model("openai", wire).ask("12345678", SCHEMA, 0).text == '{"grade": 8}'  # without the thoughts
    for name in ("gemini", "ollama"):
        wire.faults.append(Fault("parts"))
        with refuses(CallFailed, name, "Expected `"):
            model(name, wire).ask("hello", SCHEMA, 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["text_tokens", "negative_tokens"])
def test_counts_that_are_none_are_not_believed(name: str, kind: Any, wire: WireServer) -> None:
    wire.faults.append(Fault(kind))
    reply = model(name, wire).ask("12345678", SCHEMA, 0)
    assert reply.text == '{"grade": 8}'
    for tokens in (reply.prompt_tokens, reply.answer_tokens):  # some SDKs read the number in a text
        assert tokens in ((None, 12, 24) if kind == "text_tokens" else (None,))


@pytest.mark.parametrize("name", NAMES)
def test_a_long_or_a_dripping_answer_is_not_waited_for(name: str, wire: WireServer) -> None:
    wire.faults += [Fault("huge"), Fault("drip", seconds=0.05)]
    with refuses(CallFailed, "bytes"):
        model(name, wire).ask("hello", SCHEMA, 0)
    with pytest.raises(CallFailed) as caught:
        CHATS.create(name, base_url=wire.base(name), timeout=0.4).ask("hello", SCHEMA, 0)
    assert (caught.value.status, caught.value.retryable) == (None, True)


class _Own(ChatModel):
    """A model of another package, which checks nothing."""

    name, own_url, default_model = "own", "http://127.0.0.1:1", "m"
    says: Any = Reply("fine")

    def _connect(self, key: str) -> Any:
        return self

    def _call(self, sdk: Any, prompt: str, schema: Any, seed: int) -> Reply:
        return Reply(*self.says)


def test_what_a_model_of_ones_own_says_is_checked_too() -> None:
    own = _Own()
    own.says = ("half \ud800", -5, "12")
    assert own.ask("hello", SCHEMA, 0) == Reply("half ?", None, None)
    own.says = (["a"], 1, 1)
    with refuses(CallFailed, "own m"):
        own.ask("hello", SCHEMA, 0)
