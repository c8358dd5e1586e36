"""What stands between a store and a ranking: chunks to documents, ties at the cut, the store's own order."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest
from bakeoff.core.filters import conditions, passes
from bakeoff.core.ranking import make_ranking
from bakeoff.embedding.chunking import Chunk
from bakeoff.search.hits import Hits
from bakeoff.search.index import Index
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses


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
    assert index.ranking(search(index.fetch_size()), search) == make_ranking(scores.items(), depth)


def test_an_id_that_nobody_owns_is_an_error() -> None:
    index = _index({"a": "a"}, depth=1)
    with refuses(Exception, "'x'"):
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


def _one_long_document() -> tuple[dict[str, str], dict[str, float]]:
    """2,000 documents of one piece, and one of 500 that are all nearer than any other."""
    pieces = {f"d{at:04d}": f"d{at:04d}" for at in range(2000)} | {f"long#{at}": "long" for at in range(500)}
    return pieces, {
        piece: (0.9 if owner == "long" else 0.5) - at / 1e5 for at, (piece, owner) in enumerate(pieces.items())
    }


def test_one_long_document_does_not_make_every_search_large() -> None:
    """Short ones are found with few hits; where the long one is in the way, the search is widened."""
    pieces, scores = _one_long_document()
    index = _index(pieces, depth=20)
    assert index.fetch_size() <= 200  # not 20 times 500
    search = _exact(scores, list(pieces))
    assert callable(search)
    ranking = index.ranking(search(index.fetch_size()), search)
    assert ranking.ids == ("long", *(f"d{at:04d}" for at in range(19)))


def test_a_document_that_asks_and_is_long_leaves_a_full_ranking() -> None:
    pieces, scores = _one_long_document()
    index = _index(pieces, depth=20)
    search = _exact(scores, list(pieces))
    assert callable(search)
    ranking = index.ranking(search(index.fetch_size("long")), search, "long")
    assert ranking.ids == tuple(f"d{at:04d}" for at in range(20))


def test_documents_of_about_the_same_length_are_asked_for_as_before() -> None:
    index = _index({f"d{at}#{n}": f"d{at}" for at in range(50) for n in range(1 + at % 3)}, depth=10)
    assert index.fetch_size() == 31
    assert index.fetch_size("d1") == 34


@given(
    st.lists(st.lists(st.integers(-5, 9), min_size=1, max_size=30), min_size=1, max_size=12),
    st.integers(1, 6),
    st.sampled_from(["best", "mean", "sum"]),
    st.booleans(),
)
def test_widening_ends_at_the_ranking_over_every_piece(
    documents: list[list[int]], depth: int, parents: str, excluding: bool
) -> None:
    scores = {f"d{at}#{n}": score / 10 for at, pieces in enumerate(documents) for n, score in enumerate(pieces)}
    chunks = [Chunk(piece, piece.partition("#")[0], "") for piece in scores]
    index = Index(chunks, depth, parents=parents, top=2)
    search = _exact(scores, sorted(scores, reverse=True))
    assert callable(search)
    asks = "d0" if excluding else ""
    whole = {"best": 1, "mean": 2, "sum": 30}[parents]
    by_hand = {}
    for at, pieces in enumerate(documents):
        best = sorted(pieces, reverse=True)[:whole]
        by_hand[f"d{at}"] = round(sum(best) / 10 / (len(best) if parents == "mean" else 1), 6)
    by_hand.pop(asks, None)
    assert index.ranking(search(index.fetch_size(asks)), search, asks) == make_ranking(by_hand.items(), depth)


def test_an_index_holds_no_object_for_each_document() -> None:
    chunks = [Chunk(f"d{number}", f"d{number}", "") for number in range(50_000)]
    tracemalloc.start()
    index = Index(chunks, 10)
    assert index.ranking(Hits(["d7", "d5"], [0.5, 0.9]), lambda _k: Hits([], [])).ids == ("d5", "d7")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 35 * 50_000  # a list of ids and 12 bytes; a dict of owners took 100 more


FIELD_VALUES = st.one_of(st.sampled_from(["1", "x"]), st.integers(0, 2), st.booleans(), st.just(1.0), st.just([1]))
FIELDS = st.dictionaries(st.sampled_from("ab"), FIELD_VALUES)


@given(
    st.lists(st.tuples(FIELDS, st.integers(1, 3)), min_size=1, max_size=8),
    st.dictionaries(st.sampled_from("ab"), st.lists(st.integers(0, 2), min_size=1) | st.booleans() | st.just("1")),
)
def test_pieces_that_pass_are_those_that_the_definition_says(
    documents: list[tuple[dict[str, object], int]], where: dict[str, object]
) -> None:
    chunks = [Chunk(f"d{at}#{n}", f"d{at}", "") for at, (_, pieces) in enumerate(documents) for n in range(pieces)]
    metadata = {f"d{at}": fields for at, (fields, _) in enumerate(documents) if fields}
    filters = conditions(where)  # type: ignore[arg-type]
    expected = [row for row, chunk in enumerate(chunks) if passes(metadata.get(chunk.document, {}), filters)]
    assert Index(chunks, 5, metadata=metadata).passing(filters).tolist() == expected


def test_a_filter_looks_at_each_document_once_for_all_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    fields = Index.fields
    monkeypatch.setattr(Index, "fields", lambda self, row: looked.append(row) or fields(self, row))  # type: ignore[func-returns-value]
    index = Index(
        [Chunk(f"d{at}", f"d{at}", "") for at in range(50)], 5, metadata={f"d{at}": {"t": at % 7} for at in range(50)}
    )
    for tenant in range(7):
        assert index.passing(conditions({"t": tenant})).tolist() == list(range(tenant, 50, 7))
    assert len(looked) == 50
