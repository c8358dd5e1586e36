"""What is known of a model, and what a line-up may say instead."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import ModelCard, Role
from bakeoff_providers.cards import check_prompt, family_prompts, find_card, override_card
from bakeoff_providers.errors import InputError

from tests.errors import refuses, says
from tests.services import HOSTED

CARD = ModelCard(name="known", dimensions=1024, output_dimensions=(256, 512, 1024), batch_items=96)


@pytest.mark.parametrize("name", HOSTED)
def test_every_card_is_whole(name: str) -> None:
    kind = HOSTED[name]
    assert kind.default_model in [card.name for card in kind.cards]
    for card in kind.cards:
        assert card.context
        assert card.batch_items > 0
        assert card.dimensions is None or not card.output_dimensions or card.dimensions in card.output_dimensions
        if card.price is not None:
            assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", card.price.seen) or card.price.usd_per_million_tokens == 0
            assert card.price.seen <= date.today().isoformat()
            assert card.price.source.startswith("https://") or card.price.usd_per_million_tokens == 0


@pytest.mark.parametrize(
    ("provider", "model", "price", "items", "tokens"),
    [
        ("openai", "text-embedding-3-small", 0.02, 2048, 300_000),
        ("openai", "text-embedding-3-large", 0.13, 2048, 300_000),
        ("voyage", "voyage-4", 0.06, 1000, 320_000),
        ("voyage", "voyage-4-lite", 0.02, 1000, 1_000_000),
        ("voyage", "voyage-4-large", 0.12, 1000, 120_000),
        ("gemini", "gemini-embedding-001", 0.15, 100, None),
        ("gemini", "gemini-embedding-2", 0.20, 100, None),
        ("cohere", "embed-v4.0", 0.12, 96, None),
        ("ollama", "nomic-embed-text", 0.0, 64, None),
    ],
)
def test_limits_and_prices_as_published(
    provider: str, model: str, price: float, items: int, tokens: int | None
) -> None:
    card = PROVIDERS.create(provider, model=model).card
    assert card.price is not None
    assert (card.price.usd_per_million_tokens, card.batch_items, card.batch_tokens) == (price, items, tokens)


def test_a_line_up_overrides_anything() -> None:
    provider = PROVIDERS.create(
        "openai",
        model="text-embedding-3-small",
        dimensions=512,
        context=100,
        batch_items=7,
        batch_tokens=1000,
        requests_per_minute=60,
        tokens_per_minute=5000,
        document_prompt="D ",
        query_prompt="Q ",
        price=0.5,
    )
    card = provider.card
    assert (card.dimensions, card.context, card.batch_items, card.batch_tokens) == (512, 100, 7, 1000)
    assert (card.requests_per_minute, card.tokens_per_minute) == (60, 5000)
    assert (card.prompt(Role.DOCUMENT), card.prompt(Role.QUERY)) == ("D ", "Q ")
    assert card.price is not None
    assert (card.price.usd_per_million_tokens, card.price.source) == (0.5, "line-up")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dimensions": 300}, "300"),
        ({"dimensions": 0}, "dimensions = 0"),
        ({"batch_items": -1}, "batch_items = -1"),
        ({"batch_tokens": True}, "batch_tokens = True"),
        ({"context": 2.5}, "context = 2.5"),
        ({"price": -1.0}, "price = -1.0"),
        ({"price": float("nan")}, "price = nan"),
    ],
)
def test_impossible_values_are_input_errors(options: dict[str, object], words: str) -> None:
    with refuses(InputError, words):
        override_card(CARD, **options)  # type: ignore[arg-type]


def test_one_is_the_least_that_a_limit_can_be() -> None:
    """One text to a request, one request a minute: slow, but some servers take no more."""
    card = override_card(
        ModelCard(name="own", batch_items=96),
        dimensions=1,
        context=1,
        batch_items=1,
        batch_tokens=1,
        requests_per_minute=1,
        tokens_per_minute=1,
    )
    assert (card.dimensions, card.context, card.batch_items, card.batch_tokens) == (1, 1, 1, 1)
    assert (card.requests_per_minute, card.tokens_per_minute) == (1, 1)


def test_more_dimensions_than_a_model_has_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        PROVIDERS.create("openai", model="text-embedding-3-small", dimensions=2000)
    says(caught.value.remedy, "1536")


@pytest.mark.parametrize(("option", "value"), [("timeout", 0), ("timeout", -1), ("max_chars", 0)])
def test_options_of_the_call_are_checked(option: str, value: int) -> None:
    with refuses(InputError, option):
        PROVIDERS.create("openai", **{option: value})


def test_a_misspelt_option_is_told() -> None:
    with pytest.raises(InputError) as caught:
        PROVIDERS.create("voyage", dimension=256)
    assert "dimensions" in caught.value.remedy


def test_a_tag_does_not_hide_a_card() -> None:
    card = find_card("known:v2", [CARD], ModelCard(name=""))
    assert (card.name, card.dimensions) == ("known:v2", 1024)


@pytest.mark.parametrize(
    ("model", "prompts"),
    [
        ("nomic-ai/nomic-embed-text-v1.5", ("search_document: ", "search_query: ")),
        ("intfloat/multilingual-e5-base", ("passage: ", "query: ")),
        ("intfloat/multilingual-e5-large-instruct", None),
        ("mixedbread-ai/mxbai-embed-large-v1", ("", "Represent this sentence for searching relevant passages: ")),
        ("BAAI/bge-m3", None),
        ("all-minilm", None),
    ],
)
def test_open_models_bring_the_prompts_they_were_trained_with(model: str, prompts: tuple[str, str] | None) -> None:
    assert family_prompts(model) == prompts
    card = PROVIDERS.create("openai", model=model).card
    assert (card.document_prompt, card.query_prompt) == (prompts or ("", ""))


def test_prompts_of_a_card_have_names() -> None:
    clusters = PROVIDERS.create("ollama", query_prompt={"name": "clustering"}, document_prompt={"name": "query"})
    assert clusters.card.prompt(Role.QUERY) == clusters.identity(Role.QUERY)["prompt"] == "clustering: "
    assert clusters.card.prompt(Role.DOCUMENT) == "search_query: "
    with refuses(InputError, "'clusterin'", place="query_prompt") as caught:
        PROVIDERS.create("ollama", query_prompt={"name": "clusterin"})
    assert "'clustering'" in caught.value.remedy
    with refuses(InputError, "'query'", place="query_prompt") as caught:
        PROVIDERS.create("voyage", query_prompt={"name": "query"})
    assert caught.value.remedy
    with refuses(InputError, place="query_prompt"):
        PROVIDERS.create("voyage", query_prompt={"nam": "query"})


def test_names_in_a_folder_of_sentence_transformers_are_checked_before_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "ask: ", "s2p": "find: "}}')
    named = {name: PROVIDERS.create("sentence_transformers", model=str(tmp_path), query_prompt={"name": name})
             for name in ("query", "s2p")}  # fmt: skip
    assert named["query"].identity(Role.QUERY) != named["s2p"].identity(Role.QUERY)
    with refuses(InputError, "'s2s'", place="query_prompt"):
        PROVIDERS.create("sentence_transformers", model=str(tmp_path), query_prompt={"name": "s2s"})
    (tmp_path / "config_sentence_transformers.json").write_text("[")
    with refuses(InputError, file="config_sentence_transformers.json"):
        PROVIDERS.create("sentence_transformers", model=str(tmp_path), query_prompt={"name": "query"})


def test_a_template_has_its_text_once_or_not_at_all() -> None:
    for prompt in ("query: ", "query: {text}", {"name": "query"}):
        check_prompt(prompt, "query_prompt")
    for refused in ("{text} {text}", 3, {"name": 1}, {"name": "query", "more": "x"}, {}):
        with refuses(InputError, "query_prompt", place="query_prompt"):
            check_prompt(refused, "query_prompt")
