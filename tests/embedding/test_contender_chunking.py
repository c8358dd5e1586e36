"""Documents cut as a contender says: limits that hold, overlaps, and documents scored by their chunks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from bakeoff.core.task import Document
from bakeoff.embedding.chunking import ContenderChunking, contender_chunks
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.running.runner import Settings, run
from bakeoff.search.hits import document_scores
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.errors import says
from tests.native_task import native_files, pages, write_lineup

WORDS = st.lists(st.sampled_from(["a", "lake.", "Boats", "forest", "x1!", "\n\n", "# Head\n"]), max_size=60)


def _texts(text: str, chunking: ContenderChunking, title: str = "") -> list[str]:
    return [chunk.text for chunk in contender_chunks(Document(id="d", text=text, title=title), "", chunking)]


def test_words_overlap_as_asked() -> None:
    text = "one two three four five six seven"
    assert _texts(text, ContenderChunking("fixed", 3, 1)) == ["one two three", "three four five", "five six seven"]
    assert _texts(text, ContenderChunking("fixed", 4)) == ["one two three four", "five six seven"]
    assert _texts(text, ContenderChunking("recursive", 3, 1)) == ["one two three", "three four five", "five six seven"]
    prose = "One two. Three four. Five six. Seven."
    assert _texts(prose, ContenderChunking("sentence", 4, 2)) == [
        "One two. Three four.",
        "Three four. Five six.",
        "Five six. Seven.",
    ]
    assert _texts(prose, ContenderChunking("sentence", 4)) == ["One two. Three four.", "Five six. Seven."]


def test_headings_keep_their_text() -> None:
    text = "# Lakes\n\nsailing on water\n\n# Mines\n\ncopper and iron"
    assert _texts(text, ContenderChunking("markdown", 5)) == [
        "# Lakes\n\nsailing on water",
        "# Mines\n\ncopper and iron",
    ]


def test_the_title_goes_before_each_chunk_and_is_counted() -> None:
    chunks = _texts(
        "one two three four five six seven eight nine ten", ContenderChunking("recursive", 10), title="The title"
    )
    assert chunks == ["The title one two three four five six seven eight", "The title nine ten"]


def test_a_title_that_leaves_no_room_is_cut_with_the_text() -> None:
    title = "a title of six words here"
    assert _texts("one two three", ContenderChunking("fixed", 5), title) == [
        "a title of six words",
        "here one two three",
    ]
    assert _texts("äö üß", ContenderChunking("fixed", 8, unit="bytes")) == ["äö", "üß"]  # two bytes each, and the space


@given(WORDS, st.sampled_from(["fixed", "sentence", "recursive", "markdown"]), st.integers(2, 12), st.booleans())
@settings(deadline=None)
def test_no_chunk_is_too_long_and_no_word_is_lost(words: list[str], strategy: str, size: int, overlaps: bool) -> None:
    text = " ".join(words)
    chunking = msgspec.convert({"strategy": strategy, "size": size, "overlap": size // 2 * overlaps}, ContenderChunking)
    chunks = _texts(text, chunking)
    assert all(len(chunk.split()) <= size for chunk in chunks)
    held = [word for chunk in chunks for word in chunk.split()]
    assert set(held) == set(text.split())
    if not overlaps:
        assert held == text.split()


def test_documents_are_scored_by_their_chunks() -> None:
    owner = {"a#0": "a", "a#1": "a", "a#2": "a", "b": "b"}
    ids, scores = ["a#0", "b", "a#2", "a#1"], [0.9, 0.8, 0.2, 0.4]
    assert document_scores(ids, scores, owner) == {"a": 0.9, "b": 0.8}
    assert document_scores(ids, scores, owner, "mean", 2) == pytest.approx({"a": 0.65, "b": 0.8})
    assert document_scores(ids, scores, owner, "sum") == pytest.approx({"a": 1.5, "b": 0.8})


def test_each_chunking_is_a_row_and_equal_texts_are_paid_once(tmp_path: Path) -> None:
    texts = {1: ("", "copper mine. An old shaft. Deep below."), 2: ("", "sailing lake"), 3: ("", "forest trail")}
    file = write_lineup(
        tmp_path,
        native_files(pages(texts)),
        head='measures = ["mrr"]\nrounds = 1',
        contenders='[[contender]]\nprovider = "fake"\nstore = "faiss"\nchunking = [{ strategy = "whole" }, '
        '{ strategy = "sentence", size = 3 }, { strategy = "recursive", size = 4, overlap = 1, unit = "tokens" }, '
        '{ strategy = "fixed", size = 2, parents = "mean", top = 2 }, { strategy = "fixed", size = 2, label = "sums", '
        'parents = "sum" }]\n'
        '[[contender]]\nranker = "bm25"\nchunking = [{ strategy = "whole" }, { strategy = "fixed", size = 2 }]\n',
    )
    lineup = Lineup.read(file)
    outcome = run(lineup, Settings(cache=tmp_path / "vectors"))
    assert outcome.not_run == []
    assert [row.contender.label for row in outcome.ran] == [
        "fake@whole+faiss", "fake@sentence-3+faiss", "fake@recursive-4t-o1+faiss", "fake@fixed-2-mean2+faiss",
        "fake@sums+faiss", "bm25@whole", "bm25@fixed-2",
    ]  # fmt: skip
    assert {row.contender.label: row.scores[lineup.primary][0] for row in outcome.ran}["fake@sums+faiss"] > 0
    second = outcome.ran[1].search
    assert second is not None
    assert second.embedding is not None
    assert second.embedding.usage[Role.DOCUMENT].cached == 2  # documents 2 and 3 are whole in both
    (tmp_path / "again.toml").write_text(lineup_text(lineup.to_dict()))
    assert Lineup.read(tmp_path / "again.toml").contenders == lineup.contenders
    assert outcome.task.fingerprint() == run(lineup.narrow(["bm25@whole"])).task.fingerprint()


def test_each_prompt_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "def embed(texts):\n    return [[1e-6 + text.startswith('ask: '), 1e-6 + len(text)] for text in texts]\n"
        "class Model:\n    prompts = {'s2p': 'find: ', 'clusters': 'group: {text}.'}\n"
        "    def embed(self, texts):\n        return embed(texts)\n"
    )
    file = write_lineup(
        tmp_path,
        native_files(),
        head='measures = ["mrr"]\nrounds = 1',
        contenders='[[contender]]\nprovider = "file:mine.py:embed"\nstore = "faiss"\n'
        'prompt = ["none", "e5-base", { query = "ask: {text}", label = "asking" }, { query = "ask: {text} now" }]\n'
        '[[contender]]\nprovider = "file:mine.py:Model"\nstore = "faiss"\n'
        'prompt = [{ query = { name = "s2p" } }, { name = "clusters" }]\n',
    )
    lineup = Lineup.read(file)
    outcome = run(lineup)
    assert [row.contender.label for row in outcome.ran] == [
        "embed@no-prompt+faiss", "embed@e5-base+faiss", "embed@asking+faiss", "embed@prompt4+faiss",
        "Model@s2p+faiss", "Model@clusters+faiss",
    ]  # fmt: skip
    cards = [row.search.embedding.card for row in outcome.ran if row.search and row.search.embedding]
    assert [(card.query_prompt, card.document_prompt) for card in cards] == [
        ("", ""), ("query: ", "passage: "), ("ask: ", ""), ("ask: {text} now", ""),
        ("find: ", ""), ("group: {text}.", "group: {text}."),
    ]  # fmt: skip
    (tmp_path / "again.toml").write_text(lineup_text(lineup.to_dict()))
    assert Lineup.read(tmp_path / "again.toml").contenders == lineup.contenders


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('chunking = { strategy = "sentence", overlap = 9, size = 5 }', "overlap = 9"),
        ('chunking = { strategy = "sentence", unit = "tokens" }', "'recursive'"),
        ('chunking = { strategy = "words" }', "words"),
        ('prompt = { query = "a {text} {text}" }', "prompt.query"),
        ('prompt = { query = "a", name = "b" }', "contender 1, prompt"),
        ('prompt = { query = { nam = "b" } }', "'nam'"),
        ('prompt = "e6"', "'e6'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, setting: str, said: str) -> None:
    contender = f'[[contender]]\nprovider = "ollama"\nstore = "faiss"\n{setting}\n'
    with pytest.raises(InputError) as refused:
        Lineup.read(write_lineup(tmp_path, native_files(), contenders=contender))
    says(f"{refused.value}", said)
