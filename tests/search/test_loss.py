"""What the index lost, on rankings small enough to be worked out by hand."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Document, Drawn, Query, Task
from bakeoff.embedding.chunking import Chunk
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.results.save import save
from bakeoff.results.schema import read_summary
from bakeoff.running.runner import run
from bakeoff.search.answer import Answer, Searcher
from bakeoff.search.exact_search import ExactRankings, ExactSearch
from bakeoff.search.index import Index
from bakeoff.search.loss import Losses, index_loss
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff_providers.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.errors import refuses, says
from tests.examples import examples
from tests.native_task import native_files, pages, write_lineup

ANGLES = {"a": 0, "b": 20, "c": 40, "d": 60, "e": 80}


def _at(degrees: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], dtype=np.float32)


def _exact(where: dict[str, object] | None = None) -> tuple[ExactSearch, Task]:
    documents = [Document(item, item, metadata={"kind": "odd" if item in "ace" else "even"}) for item in ANGLES]
    query = Query("q", "q", where=where or {})
    task = Task(name="t", documents=documents, queries=[query], judgments={"q": {"a": 3, "d": 1}})
    index = Index([Chunk(item, item, "") for item in ANGLES], 100, metadata=task.metadata)
    return ExactSearch(index, {"q": _at(0)}, np.stack([_at(angle) for angle in ANGLES.values()])), task


def test_an_index_that_misses_the_best_document() -> None:
    exact, task = _exact()
    found = Ranking(("b", "c", "d", "e"), (0.9, 0.7, 0.5, 0.1))
    loss = index_loss(exact, task, {"q": found})
    ideal = 3 + 1 / np.log2(3)
    assert exact.rankings(task.queries)["q"].ids == ("a", "b", "c", "d", "e")
    assert loss.ndcg_exact == pytest.approx((3 + 1 / np.log2(5)) / ideal)
    # of the two graded documents only d came back, third
    assert loss.ndcg_lost == pytest.approx(loss.ndcg_exact - (1 / np.log2(4)) / ideal)
    assert loss.recall == pytest.approx(4 / 5)
    assert loss.short == 1


def test_a_loss_is_weighted_by_traffic() -> None:
    """Two queries of the same vector: the store lost all of one that has 0.9 of the traffic, nothing of the other."""
    alone, task = _exact()
    exact = ExactSearch(alone.index, dict.fromkeys("qr", _at(0)), alone.vectors)
    queries = [
        Query("q", "q", drawn=Drawn(weight=0.9, stratum="head", of=1)),
        Query("r", "r", drawn=Drawn(weight=0.1, stratum="tail", of=9)),
    ]
    both = msgspec.structs.replace(task, queries=queries, judgments=dict.fromkeys("qr", task.judgments["q"]))
    whole = Ranking(tuple(ANGLES), (1.0, 0.9, 0.7, 0.5, 0.1))
    loss = index_loss(exact, both, {"q": Ranking((), ()), "r": whole})
    assert loss.ndcg_lost == pytest.approx(0.9 * loss.ndcg_exact)
    assert loss.recall == pytest.approx(0.1)


def test_a_filter_holds_for_exact_search_too() -> None:
    exact, task = _exact({"kind": "even"})
    loss = index_loss(exact, task, {"q": Ranking(("b",), (0.9,))})
    assert exact.rankings(task.queries)["q"].ids == ("b", "d")
    assert loss.recall == pytest.approx(1 / 2)


class _Searcher(Searcher):
    """What has an exact search beside it."""

    def ask(self, query: Query) -> Answer:
        raise NotImplementedError

    def exact_search(self) -> ExactRankings:
        return _exact()[0]


def test_rows_share_an_exact_search_that_goes_with_the_last_of_them() -> None:
    _, task = _exact()
    losses = Losses(task, Counter({"one": 2, "two": 1}))
    retrieved = {"q": Ranking(("b",), (0.9,))}
    first = losses.of("one", "a", _Searcher(), retrieved)
    assert losses.of("two", "b", _Searcher(), retrieved) == first
    assert list(losses._searches) == ["one"]
    assert losses.of("one", "a", _Searcher(), retrieved) == first
    assert not losses._searches


@pytest.mark.slow
def test_exact_rankings_of_many_queries_are_packed() -> None:
    """Each had two tuples and a hundred numbers: 4.2 kB; in arrays it is 1.2 kB."""
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((500, 8), dtype=np.float32)
    queries = [Query(f"q{at}", "") for at in range(2000)]
    asked = {query.id: rng.standard_normal(8, dtype=np.float32) for query in queries}
    exact = ExactSearch(Index([Chunk(f"d{at}", f"d{at}", "") for at in range(500)], 100), asked, vectors)
    tracemalloc.start()
    rankings = exact.rankings(queries)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(rankings["q7"].ids) == 100
    assert held < 1_800 * len(queries)


def test_an_item_is_not_its_own_neighbour() -> None:
    exact, _ = _exact()
    asked = Query("q", "q", item="a")
    assert exact.rankings([asked])["q"].ids == ("b", "c", "d", "e")


def test_a_chunk_of_a_document_counts_for_it() -> None:
    index = Index([Chunk("x#0", "x", ""), Chunk("x#1", "x", ""), Chunk("y", "y", "")], 10)
    exact = ExactSearch(index, {"q": _at(0)}, np.stack([_at(80), _at(5), _at(10)]))
    query = Query("q", "q")
    assert exact.rankings([query])["q"].ids == ("x", "y")
    assert exact.nearness(query, Ranking(("y", "x"), (0.9, 0.8))).recall == 1


def test_a_document_that_is_scored_by_a_mean_is_near_by_that_mean() -> None:
    """x has a chunk at the query and one that is far; its mean is below y's, by which eleven others are nearer."""
    names = [f"y{number:02d}" for number in range(11)]
    chunks = [Chunk("x#0", "x", ""), Chunk("x#1", "x", ""), *(Chunk(name, name, "") for name in names)]
    vectors = np.stack([_at(0), _at(90), *(_at(30 + number) for number in range(11))])
    exact = ExactSearch(Index(chunks, 20, parents="mean", top=2), {"q": _at(0)}, vectors)
    query = Query("q", "q")
    assert exact.rankings([query])["q"].ids == (*names, "x")  # cos 40° = 0.77, and x has (1 + 0) / 2
    assert exact.score("x", query) == pytest.approx(0.5)
    near = exact.nearness(query, Ranking(("x", *names[:9]), (1.0, *(0.5,) * 9)))
    assert near.recall == pytest.approx(9 / 10)
    assert near.score_error == pytest.approx(0.5)


@pytest.mark.slow
def test_exact_search_among_chunks_holds_few_of_them_and_widens_for_those_that_need_more() -> None:
    """20,000 short documents and one of 300 chunks, which are the nearest to one of the queries."""
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((20_300, 16), dtype=np.float32)
    vectors[20_000:] = vectors[0] + 0.05 * vectors[20_000:]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = [Chunk(f"d{at}", f"d{at}", "") for at in range(20_000)]
    chunks += [Chunk(f"long#{at}", "long", "") for at in range(300)]
    queries = [Query(f"q{at}", "") for at in range(40)]
    exact = ExactSearch(Index(chunks, 50), {query.id: vectors[at] for at, query in enumerate(queries)}, vectors)
    tracemalloc.start()
    rankings = exact.rankings(queries)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6  # 50 times 300 hits for each query took 62 MB
    for at, query in enumerate(queries):
        similar = vectors @ vectors[at]
        by_document = {f"d{row}": round(float(similar[row]), 6) for row in range(20_000)}
        by_document["long"] = round(float(similar[20_000:].max()), 6)
        best = sorted(by_document, key=lambda name: (-by_document[name], name))[:50]
        assert rankings[query.id].ids == tuple(best)


@given(dimensions=st.sampled_from([96, 384, 768]), lost=st.integers(0, 5), seed=st.integers(0, 20))
@settings(max_examples=examples(15), deadline=None)
def test_counting_by_score_never_gives_less_than_counting_by_id(dimensions: int, lost: int, seed: int) -> None:
    """Rankings without some of the exact twelve, over vectors whose products round differently one by one."""
    rng = np.random.default_rng(seed)
    shared = 0.65 * rng.standard_normal(dimensions)  # so that similarities are about 0.35, as those of texts
    vectors = (rng.standard_normal((400, dimensions)) + shared).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"d{row}" for row in range(100)]
    queries = [Query(f"q{row}", "") for row in range(300)]
    asked = {query.id: vectors[100 + row] for row, query in enumerate(queries)}
    exact = ExactSearch(Index([Chunk(item, item, "") for item in ids], 12), asked, vectors[:100])
    for query, ranking in exact.rankings(queries).items():
        gone = set(rng.choice(ranking.ids, size=lost, replace=False))
        kept = tuple(item for item in ranking.ids if item not in gone)[:10]
        by_id = len(set(kept) & set(ranking.ids[:10])) / 10
        assert exact.nearness(Query(query, ""), Ranking(kept, (0.0,) * len(kept))).recall >= by_id


def _line_up(folder: Path, stores: str) -> Path:
    words = ["copper", "lake", "forest", "rail", "boat", "stone", "river", "mill", "sheep", "corn"]
    texts = {n: (f"{words[n % 10]} {n}", f"{words[n % 7]} {words[n % 9]} {n}") for n in range(1, 301)}
    files = native_files(
        [page | {"state": "UT" if page["page_id"] % 2 else "NV"} for page in pages(texts)],
        {f"q{n}": texts[n][1] for n in range(1, 6)},
        {f"q{n}": {str(n): 3, str(n + 10): 1} for n in range(1, 6)},
        where={"q1": {"state": "UT"}},
    )
    contenders = f'[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = [{stores}]\n'
    head = 'measures = ["ndcg@10"]\nrounds = 1\ndepth = 20'
    return write_lineup(folder, files, head=head, task='name = "own"', contenders=contenders)


def test_a_run_shows_the_loss_of_approximate_rows_only(tmp_path: Path) -> None:
    lossy = '{ name = "faiss", label = "lists", options = { index = "IVF32,Flat", nprobe = 1 } }'
    outcome = run(Lineup.read(_line_up(tmp_path, f'"faiss", "sqlite_vec", "hnswlib", {lossy}')))
    folder = save(outcome, tmp_path / "results")
    render(folder)
    rows = {row.label: row for row in read_summary(folder).rows}
    assert rows["tfidf+faiss"].loss is rows["tfidf+sqlite_vec"].loss is rows["bm25"].loss is rows["oracle"].loss is None
    exact = rows["tfidf+faiss"].measures["ndcg@10"].mean
    for label in ("tfidf+hnswlib", "tfidf+lists"):
        loss = rows[label].loss
        assert loss is not None
        assert loss.ndcg_exact == pytest.approx(exact)
        assert loss.ndcg_lost == pytest.approx(exact - rows[label].measures["ndcg@10"].mean)
    lists = rows["tfidf+lists"].loss
    assert lists is not None
    assert lists.recall < 1
    assert lists.short > 0
    says((folder / "matrix.md").read_text(), "recall@10", f"{lists.recall:.3f}")


def test_a_filtered_query_gets_what_passes_from_every_contender(tmp_path: Path) -> None:
    outcome = run(Lineup.read(_line_up(tmp_path, '"faiss", "chroma"')))
    for row in outcome.ran:
        assert all(int(item) % 2 for item in row.rankings["q1"].ids)
        assert not all(int(item) % 2 for item in row.rankings["q2"].ids)
    dense = [row.rankings["q1"] for row in outcome.ran if isinstance(row.contender, EmbeddingRow)]
    assert len(dense[0]) == 20
    assert dense[0].ids == dense[1].ids


def test_a_filter_that_makes_no_sense_is_refused_before_anything_runs() -> None:
    with refuses(InputError, "'kind'", "'odd'"):
        _exact({"kind": ["odd", 1]})


def test_a_filter_is_part_of_the_fingerprint() -> None:
    assert _exact()[1].fingerprint() != _exact({"kind": "odd"})[1].fingerprint()
