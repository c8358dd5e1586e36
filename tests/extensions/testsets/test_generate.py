from __future__ import annotations

import datetime
import inspect
import json
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.paths import root
from bakeoff.extensions.testsets.ask import make_asker
from bakeoff.extensions.testsets.chat_maker import ChatMaker
from bakeoff.extensions.testsets.generate import (
    DEFAULT_CATEGORIES,
    GenerationRequest,
    Maker,
    QueryDraft,
    check_categories,
    generate,
    query_file,
    without_places,
)
from bakeoff.extensions.testsets.select import read_pool
from bakeoff.extensions.testsets.template_maker import TemplateMaker, key_phrases
from bakeoff.extensions.testsets.text_similarity import near_duplicates, overlap, similarity
from bakeoff.lineup.lineup import Category, Lineup
from bakeoff.tasks.formats.native import Article, QueryFile
from bakeoff_providers.errors import CallFailed, InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses, says
from tests.wire import PROXIES, WireServer

ARTICLES = [
    Article(
        document_id=1,
        title="Loa",
        summary="A copper mine shaped the town.",
        city="Loa",
        state="Utah",
        categories=["mining"],
    ),
    Article(
        document_id=2, title="Bear Lake", summary="Boats sail on turquoise water.", state="Utah", categories=["boating"]
    ),
]


class Scripted(Maker):
    """A maker that proposes what a test says."""

    def __init__(self, *drafts: QueryDraft) -> None:
        self._drafts = drafts

    def drafts(self, articles: Sequence[Article], category: str, request: GenerationRequest) -> Iterator[QueryDraft]:
        yield from (draft for draft in self._drafts if draft.category == category)


def request(n: int = 2, **options: Any) -> GenerationRequest:
    return GenerationRequest({"x": Category()}, n, **options)


class TestTheFilter:
    def test_words_of_the_source_beyond_the_limit(self) -> None:
        # content words: copper, mine, town → all in the source; riches, ground → none; copper, riches → half
        drafts = [
            QueryDraft(text, "x", (1,))
            for text in ("the copper mines of a town", "riches from the ground", "copper riches")
        ]
        generated = generate(ARTICLES, Scripted(*drafts), request(3), most_overlap=0.4)
        assert [draft.text for draft in generated.queries] == ["riches from the ground"]
        assert generated.overlaps == [0]
        says("\n".join([draft.why for draft in generated.dropped]), "100%", "40%", "50%")
        assert generated.short == {"x": 1}

    def test_near_duplicates_also_of_queries_that_are_there(self) -> None:
        drafts = [
            QueryDraft(text, "x", (1,))
            for text in ("riches below ground", "Riches, below ground!", "old roads", "deep riches")
        ]
        generated = generate(ARTICLES, Scripted(*drafts), request(4), existing=["old roads?"])
        assert [draft.text for draft in generated.queries] == ["riches below ground", "deep riches"]
        assert "100% like “riches below ground”" in generated.dropped[0].why
        assert "100% like “old roads?”" in generated.dropped[1].why

    def test_no_more_is_asked_of_a_maker_than_is_needed(self) -> None:
        asked = []

        class Counting(Maker):
            def drafts(
                self, articles: Sequence[Article], category: str, request: GenerationRequest
            ) -> Iterator[QueryDraft]:
                for word in ("alpha", "beta", "gamma"):
                    asked.append(word)
                    yield QueryDraft(word, category, (1,))

        generate(ARTICLES, Counting(), request(2))
        assert asked == ["alpha", "beta"]


class TestTemplates:
    POOL, _ = read_pool(root() / "corpora" / "wikipedia" / "evaluate_articles.json")

    def test_four_for_each_category_and_the_same_every_time(self) -> None:
        asked = GenerationRequest(DEFAULT_CATEGORIES, 4)
        generated = generate(self.POOL, TemplateMaker(), asked)
        assert [draft.category for draft in generated.queries] == [
            name for name in DEFAULT_CATEGORIES for _ in range(4)
        ]
        assert max(generated.overlaps) <= 0.5
        assert generate(self.POOL[::-1], TemplateMaker(), asked).queries == [
            QueryDraft(draft.text, draft.category, draft.sources[::-1]) for draft in generated.queries
        ]
        other = generate(self.POOL, TemplateMaker(), GenerationRequest(DEFAULT_CATEGORIES, 4, seed=1))
        assert other.queries != generated.queries

    def test_gaps_are_filled_with_what_is_true_of_the_sources(self) -> None:
        own = GenerationRequest(
            {"x": Category(templates=("rocks near {city}",)), "y": Category(templates=("{topic} in {state}",))}, 5
        )
        drafts = [draft for name in own.categories for draft in TemplateMaker().drafts(ARTICLES, name, own)]
        assert {(draft.text, draft.sources) for draft in drafts} == {
            ("rocks near Loa", (1,)), ("mining in Utah", (1,)), ("boating in Utah", (2,)),
        }  # fmt: skip

    def test_a_category_may_be_about_some_documents_only(self) -> None:
        own = GenerationRequest({"x": Category(templates=("near {state}: {topic}",), of=("boating", "sailing"))}, 5)
        generated = generate(ARTICLES, TemplateMaker(), own, most_overlap=1)
        assert [draft.sources for draft in generated.queries] == [(2,)]
        nothing = GenerationRequest({"x": Category(templates=("near {state}",), of=("skiing",))}, 5)
        assert generate(ARTICLES, TemplateMaker(), nothing).short == {"x": 0}

    def test_no_template_depends_on_a_day(self) -> None:
        asked = GenerationRequest(DEFAULT_CATEGORIES, 1, as_of=datetime.date(2024, 3, 1))
        with pytest.raises(InputError) as caught:
            generate(self.POOL, TemplateMaker(), asked)
        assert caught.value.place == "--as-of"

    def test_other_languages(self) -> None:
        asked = GenerationRequest(DEFAULT_CATEGORIES, 1, language="de")
        assert len(generate(self.POOL, TemplateMaker(), asked, most_overlap=1).queries) == 5
        with refuses(InputError, "'fi'", place="--language"):
            generate(self.POOL, TemplateMaker(), GenerationRequest(DEFAULT_CATEGORIES, 1, language="fi"))

    @pytest.mark.parametrize(
        ("category", "said"),
        [
            (Category("only described"), "'own'"),
            (Category(templates=("{colour} things",)), "categories"),
            (Category(templates=("{city things",)), "template"),
        ],
    )
    def test_categories_that_templates_cannot_serve(self, category: Category, said: str) -> None:
        with refuses(InputError, said):
            generate(self.POOL, TemplateMaker(), GenerationRequest({"own": category}, 1))


class TestKeyPhrases:
    def test_a_title_of_several_words_or_what_is_said_more_than_once(self) -> None:
        articles = [
            Article(document_id="a", title="Returning a broken lamp", summary="Send it back."),
            Article(
                document_id="b", title="quantiles", summary="The cut points, n cut points in all. Sales data here."
            ),
            Article(document_id="c", title="x", summary="Sales data here; sales data there."),
            Article(document_id="d", title="y", summary="Nothing is said twice."),
        ]
        assert key_phrases(articles) == {"a": "broken lamp", "b": "cut points", "c": "sales data", "d": "said twice"}
        many = [Article(document_id=n, title="broken lamp", summary="x") for n in range(20)]
        assert "d" not in key_phrases([*articles, *many])  # enough without what is said once

    def test_a_word_twice_and_who_wrote_it_are_no_phrase(self) -> None:
        """What is in an answer of yes and yes, in a line with an address or a year of copyright, or below AUTHOR."""
        texts = {
            "a": "yes yes yes yes. It reads sorted keys, and sorted keys again.",
            "b": "Max Maischein made it. Max Maischein <max@example.org>. Max Maischein!\n\nIt takes open files",
            "c": "AUTHOR\n\nMax Maischein\n\nOf Max Maischein: it locks whole tables",
            "d": "Copyright (c) 2001 Max Maischein\nMax Maischein: a spare key",
            "e": "the author writes short books\n\nthe author writes short books",
        }
        articles = [Article(document_id=name, title=name, summary=text) for name, text in texts.items()]
        assert key_phrases(articles) == {
            "a": "sorted keys", "b": "takes open files", "c": "locks whole tables", "d": "spare key",
            "e": "author writes short",
        }  # fmt: skip

    def test_docstrings_give_queries_of_two_or_three_of_their_own_words(self) -> None:
        texts = {name: inspect.getdoc(getattr(statistics, name)) or "" for name in statistics.__all__}
        articles = [Article(document_id=name, title=name, summary=text) for name, text in texts.items()]
        asked = GenerationRequest(without_places(), 5)
        generated = generate(articles, TemplateMaker(), asked)
        assert len(generated.queries) == 5
        for draft in generated.queries:
            assert 2 <= len(draft.text.split()) <= 3
            assert draft.text in " ".join(texts[str(draft.sources[0])].lower().split())
            assert "place" not in draft.text


def test_a_line_up_brings_its_own_categories(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'task = "wikipedia"\n[categories]\nbilling = "prices and refunds"\n'
        '[categories.travel]\nabout = "going places"\ntemplates = ["a trip to {city}"]\n'
        '[[contender]]\nranker = "bm25"\n'
    )
    categories = check_categories(Lineup.read(tmp_path / "own.toml").categories)
    assert categories == {
        "billing": Category("prices and refunds"),
        "travel": Category("going places", ("a trip to {city}",)),
    }
    assert check_categories({}) == DEFAULT_CATEGORIES


def test_ids_go_on_and_nothing_that_was_there_changes() -> None:
    generated = generate(ARTICLES, Scripted(QueryDraft("one", "x", (1,)), QueryDraft("two", "x", (2, 1))), request(2))
    first = query_file(generated, request(2), "templates")
    assert [entry.query_id for entry in first.queries] == ["x_001", "x_002"]
    assert first.metadata["sources"] == {"x_001": [1], "x_002": [2, 1]}
    more = generate(ARTICLES, Scripted(QueryDraft("three", "x", (1,))), request(1))
    second = query_file(more, request(1), "templates", first)
    assert second.queries[:2] == first.queries
    assert second.queries[2].query_id == "x_003"
    assert second.metadata["queries"] == 3
    assert isinstance(second, QueryFile)


class TestComposer:
    @pytest.fixture
    def wire(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
        for name in PROXIES:
            monkeypatch.delenv(name, raising=False)
        with WireServer() as server:
            yield server

    def composer(self, wire: WireServer, tmp_path: Path) -> ChatMaker:
        asker = make_asker("ollama:llama3.1", {"base_url": wire.base("ollama")}, answers=tmp_path / "answers")
        asker.policy = RetryPolicy(attempts=2, sleep=lambda seconds: None)
        return ChatMaker(asker=asker)

    def test_queries_come_with_their_documents(self, wire: WireServer, tmp_path: Path) -> None:
        said = {
            "queries": [
                {"text": " riches  from below", "documents": [1]},
                {"text": "a sunny outing", "documents": [2, 2]},
            ]
        }
        wire.answer = lambda model, prompt: json.dumps(said)
        generated = generate(ARTICLES, self.composer(wire, tmp_path), request(2))
        assert generated.queries == [
            QueryDraft("riches from below", "x", (1,)),
            QueryDraft("a sunny outing", "x", (2,)),
        ]
        assert len(wire.chats()) == 1
        generate(ARTICLES, self.composer(wire, tmp_path), request(2))
        assert len(wire.chats()) == 1  # the answer is in the cache

    def test_the_prompt_shows_documents_and_forbids_their_words(self, wire: WireServer, tmp_path: Path) -> None:
        wire.answer = lambda model, prompt: '{"queries": [{"text": "riches", "documents": [1]}]}'
        asked = GenerationRequest({"x": Category("digging")}, 1, language="de", as_of=datetime.date(2024, 3, 1))
        generated = generate(ARTICLES, self.composer(wire, tmp_path), asked)
        assert [entry.as_of for entry in query_file(generated, asked, "llm").queries] == ["2024-03-01"]
        prompt = wire.chats()[0].texts[0]
        for words in ("copper mine", "turquoise", "digging", "“de”", "2024-03-01"):
            assert words in prompt

    def test_it_asks_on_until_enough_pass_and_then_gives_up(self, wire: WireServer, tmp_path: Path) -> None:
        wire.answer = lambda model, prompt: '{"queries": [{"text": "the copper mine", "documents": [1, 2]}]}'
        generated = generate(ARTICLES, self.composer(wire, tmp_path), request(2))
        assert generated.queries == []
        assert generated.short == {"x": 0}
        says(sorted({draft.why for draft in generated.dropped}), "100%", "50%")

    @pytest.mark.parametrize(
        "said", ["Here are some!", '{"queries": []}', '{"queries": [{"text": "x", "documents": [99]}]}']
    )
    def test_an_answer_that_is_none_is_asked_for_again(self, said: str, wire: WireServer, tmp_path: Path) -> None:
        good = '{"queries": [{"text": "riches", "documents": [1]}]}'
        answers = iter([said, good])
        wire.answer = lambda model, prompt: next(answers)
        assert len(generate(ARTICLES, self.composer(wire, tmp_path), request(1)).queries) == 1
        wire.answer = lambda model, prompt: said
        with refuses(CallFailed, "ollama-llama3.1"):
            generate(ARTICLES, self.composer(wire, tmp_path), request(1, seed=7))


class TestWords:
    def test_by_hand(self) -> None:
        assert overlap("mines in Utah", "A mine. Utah!") == 1
        assert overlap("mining", "miners") == 0  # Snowball keeps the agent apart: miner is not mine
        assert overlap("the of and", "anything") == 1  # nothing but stop words can't be found otherwise
        assert overlap("rote Häuser", "das rote Haus", "de") == 1  # by Snowball's German stemmer
        assert overlap("rote Häuser", "das rote Haus", "zh") == 0.5  # no stemmer: words as they are
        assert similarity("Old roads", "old  ROADS!") == 1
        assert similarity("abc", "xyz") == 0
        # " abc " and " abd ": pieces " ab", "abc", "bc " and " ab", "abd", "bd ": one of five is shared
        assert similarity("abc", "abd") == pytest.approx(1 / 5)
        assert near_duplicates(["a road", "a lake", "A road."], 0.9) == [(0, 2, 1.0)]

    @given(st.lists(st.text("abc ", max_size=12), max_size=12), st.sampled_from([0.3, 0.6, 0.9, 1.0]))
    def test_the_short_cut_misses_no_pair(self, texts: list[str], limit: float) -> None:
        every = [(i, j, similarity(texts[i], texts[j])) for i, j in combinations(range(len(texts)), 2)]
        assert near_duplicates(texts, limit) == [pair for pair in every if pair[2] >= limit]

    @given(st.text(), st.text())
    def test_alike_both_ways_and_within_bounds(self, a: str, b: str) -> None:
        assert similarity(a, b) == similarity(b, a)
        assert 0 <= similarity(a, b) <= 1
        assert similarity(a, a) == 1
        assert 0 <= overlap(a, b) <= 1
