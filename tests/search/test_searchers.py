"""What stands between a store and a ranking: chunks to documents, ties at the cut, the store's own order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from bakeoff.core.ranking import ordered
from bakeoff.embedding.chunking import Chunk
from bakeoff.search.hits import Hits
from bakeoff.search.index import Index
from hypothesis import given
from hypothesis import strategies as st


def _index(chunks: dict[str, str], depth: int) -> Index:
    return Index([Chunk(chunk, document, "") for chunk, document in chunks.items()], depth)


def _exact(scores: dict[str, float], order: Sequence[str]) -> object:
    """A store that knows every score but returns equal ones in an order of its own."""

    def search(k: int) -> Hits:
        ranked = sorted(order, key=lambda chunk: -scores[chunk])[:k]
        return Hits(ranked, [scores[chunk] for chunk in ranked])

    return search


def test_ties_at_the_cut_are_settled_by_id_though_the_store_cut_elsewhere() -> None:
    scores = dict.fromkeys("hgfedcba", 0.5)
    index = _index({name: name for name in scores}, depth=2)
    search = _exact(scores, list(scores))
    assert callable(search)
    assert search(index.fetch_size()).ids == ["h", "g", "f"]
    assert index.ranking(search(index.fetch_size()), search).ids == ("a", "b")


def test_noise_beyond_six_digits_makes_no_winner() -> None:
    index = _index({"a": "a", "b": "b"}, depth=2)
    hits = Hits(["b", "a"], [0.50000001, 0.5])
    assert index.ranking(hits, lambda _k: hits).ids == ("a", "b")


def test_a_document_in_many_chunks_does_not_push_others_out() -> None:
    chunks = {f"long#{number}": "long" for number in range(9)} | {"short": "short"}
    scores = dict.fromkeys(chunks, 0.9) | {"short": 0.1}
    index = _index(chunks, depth=2)
    search = _exact(scores, list(chunks))
    assert callable(search)
    ranking = index.ranking(search(index.fetch_size()), search)
    assert ranking.ids == ("long", "short")
    assert ranking.scores == (0.9, 0.1)


@given(
    st.dictionaries(st.integers(0, 40).map(str), st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=30),
    st.integers(1, 12),
    st.randoms(use_true_random=False),
)
def test_any_exact_store_gives_the_one_ranking(scores: dict[str, float], depth: int, random: object) -> None:
    order = list(scores)
    random.shuffle(order)  # type: ignore[attr-defined]
    index = _index({name: name for name in scores}, depth)
    search = _exact(scores, order)
    assert callable(search)
    assert index.ranking(search(index.fetch_size()), search) == ordered(scores.items(), depth)


def test_an_id_that_nobody_owns_is_an_error() -> None:
    index = _index({"a": "a"}, depth=1)
    with pytest.raises(Exception, match="unknown id 'x'"):
        index.ranking(Hits(["x"], [1.0]), lambda _k: Hits([], []))


@given(
    st.lists(st.lists(st.integers(-5, 9), min_size=1, max_size=5), min_size=1, max_size=12),
    st.integers(1, 6),
    st.integers(1, 4),
)
def test_a_mean_of_the_best_chunks_is_settled_without_every_chunk(
    documents: list[list[int]], depth: int, top: int
) -> None:
    """By hand: the mean of each document's best chunks, over all of them."""
    scores = {f"d{at}#{n}": score / 10 for at, tenths in enumerate(documents) for n, score in enumerate(tenths)}
    chunks = [Chunk(chunk, chunk.partition("#")[0], "") for chunk in scores]
    index = Index(chunks, depth, parents="mean", top=top)
    search = _exact(scores, sorted(scores, reverse=True))
    assert callable(search)
    means = {}
    for at, tenths in enumerate(documents):
        best = sorted(tenths, reverse=True)[:top]
        means[f"d{at}"] = round(sum(best) / len(best) / 10, 6)
    expected = sorted(means, key=lambda name: (-means[name], name))[:depth]
    ranking = index.ranking(search(index.fetch_size()), search)
    assert list(zip(ranking.ids, ranking.scores, strict=True)) == [(name, means[name]) for name in expected]


def test_a_mean_asks_for_few_of_many_chunks() -> None:
    scores = {f"d{at:04d}#{n}": 1 - at / 1000 - n / 1e5 for at in range(1000) for n in range(4)}
    index = Index([Chunk(chunk, chunk.partition("#")[0], "") for chunk in scores], 10, parents="mean", top=3)
    asked: list[int] = []
    search = _exact(scores, list(scores))
    assert callable(search)

    def counted(k: int) -> Hits:
        asked.append(k)
        hits = search(k)
        assert isinstance(hits, Hits)
        return hits

    assert index.ranking(counted(index.fetch_size()), counted).ids == tuple(f"d{at:04d}" for at in range(10))
    assert max(asked) <= 200
