"""No store is believed: what it holds is counted, its answers are held against exact search over the same vectors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.figures import Loss
from bakeoff.core.ranking import Ranking
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.running.runner import Outcome, run
from bakeoff.search import exact_search
from bakeoff.search.exact_search import cosine_tolerance, sample
from bakeoff.search.loss import Place, first_difference
from bakeoff.search.stores import STORES

from tests.native_task import native_files, pages, write_lineup
from tests.search.lying import BY_ANSWERS, BY_COUNT, LOST

HONEST = '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'


@pytest.fixture(autouse=True)
def liar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STORES.builtin, "liar", "tests.search.lying:Liar")


def _liar(how: str, **options: str) -> str:
    settings = ", ".join(f'{key} = "{value}"' for key, value in {"how": how, **options}.items())
    return (
        f'[[contender]]\nprovider = "fake"\nstore = {{ name = "liar", label = "liar", options = {{ {settings} }} }}\n'
    )


def _run(folder: Path, contenders: str) -> Outcome:
    """Fourteen documents of two kinds; of five queries one has a filter."""
    words = ["copper", "lake", "forest", "rail", "boat", "stone", "river", "mill", "sheep", "corn", "salt", "wool"]
    words += ["glass", "tar"]
    texts = {n: (word, f"{word} and {words[n % 14]}") for n, word in enumerate(words, start=1)}
    files = native_files(
        [page | {"state": "UT" if page["page_id"] % 2 else "NV"} for page in pages(texts)],
        {f"q{n}": texts[n][1] for n in range(1, 6)},
        {f"q{n}": {str(n): 3, str(n + 5): 1} for n in range(1, 6)},
        where={"q2": {"state": "UT"}},
    )
    head = 'measures = ["ndcg@10"]\nrounds = 1\ndepth = 10'
    path = write_lineup(folder, files, head=head, task='name = "own"', contenders=contenders)
    return run(Lineup.read(path))


@pytest.mark.parametrize("how", BY_ANSWERS)
def test_an_exact_store_that_answers_otherwise_fails_its_row(how: str, tmp_path: Path) -> None:
    outcome = _run(tmp_path, HONEST + _liar(how))
    assert [row.contender.label for row in outcome.ran] == ["fake+faiss"]
    (lost,) = outcome.not_run
    assert "exact" in failure_words(lost.failure)
    assert "q1" in failure_words(lost.failure)


@pytest.mark.parametrize("index", ["Flat", "HNSW32"])
@pytest.mark.parametrize("how", BY_COUNT)
def test_a_store_that_loses_documents_fails_its_row_whatever_its_index(how: str, index: str, tmp_path: Path) -> None:
    (lost,) = _run(tmp_path, HONEST + _liar(how, index=index)).not_run
    assert re.findall(r"\d+", failure_words(lost.failure)) == ["14", str(14 - LOST)]


def test_the_same_store_without_a_lie_has_the_row_of_faiss(tmp_path: Path) -> None:
    outcome = _run(tmp_path, HONEST + _liar(""))
    first, second = outcome.ran
    assert not outcome.not_run
    for measure, values in first.scores.items():
        np.testing.assert_array_equal(second.scores[measure], values)
    assert all(row.search and not row.search.loss and not row.search.unlike for row in outcome.ran)


def test_an_approximate_store_keeps_its_row_and_its_loss_says_how_far_off_it_is(tmp_path: Path) -> None:
    outcome = _run(tmp_path, _liar("scaled", index="HNSW32"))
    (row,) = outcome.ran
    assert row.search is not None
    assert row.search.loss is not None
    assert row.search.loss.recall == 1
    assert row.search.loss.score_error > 1e5
    (row,) = _run(tmp_path / "honest", _liar("", index="HNSW32")).ran
    assert row.search is not None
    assert isinstance(row.search.loss, Loss)
    assert row.search.loss.score_error < 1e-5


def test_rows_made_of_one_that_lies_fail_with_it(tmp_path: Path) -> None:
    """A second stage over it, and a fusion with it."""
    more = (
        '[[rerank]]\nlabel = "second"\nof = "fake+liar"\nprovider = "fake"\n'
        '[[fusion]]\nlabel = "both"\nof = ["fake+faiss", "fake+liar"]\n'
    )
    outcome = _run(tmp_path, HONEST + _liar("skips the first") + more)
    assert [row.contender.label for row in outcome.ran] == ["fake+faiss"]
    reasons = {row.contender.label: failure_words(row.failure) for row in outcome.not_run}
    assert "fake+liar" in reasons["second"]
    assert "fake+liar" in reasons["both"]


def test_chunks_are_compared_as_documents_are_scored(tmp_path: Path) -> None:
    """Means and sums over chunks pass where the store is honest, and fail where it is not."""
    for parents in ("best", "mean", "sum"):
        cut = f'chunking = {{ strategy = "recursive", size = 2, overlap = 0, parents = "{parents}" }}\n'
        for how in ("", "shifted"):
            contender = _liar(how) + cut
            outcome = _run(tmp_path / parents / (how or "honest"), contender + HONEST + cut)
            assert [row.contender.identity.store for row in outcome.not_run] == ["liar"] * bool(how), parents


EXPECTED = Ranking(("a", "b", "c"), (0.9, 0.8, 0.7))
SCORES = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.7, "e": 0.1}


@pytest.mark.parametrize(
    ("got", "place"),
    [
        (Ranking(("a", "b", "c"), (0.9, 0.8, 0.7)), 0),
        (Ranking(("a", "b", "c"), (0.900009, 0.8, 0.7)), 0),
        (Ranking(("a", "b", "d"), (0.9, 0.8, 0.7)), 0),  # as near as the last
        (Ranking(("a", "b", "e"), (0.9, 0.8, 0.7)), 3),  # not as near as it says
        (Ranking(("a", "b", "e"), (0.9, 0.8, 0.1)), 3),
        (Ranking(("b", "a", "c"), (0.9, 0.8, 0.7)), 1),  # right scores under wrong names
        (Ranking(("b", "c", "d"), (0.8, 0.7, 0.7)), 1),
        (Ranking(("a", "c", "d"), (0.9, 0.7, 0.7)), 2),
        (Ranking(("a", "b"), (0.9, 0.8)), 3),
        (Ranking(("a", "b", "c", "d"), (0.9, 0.8, 0.7, 0.7)), 4),
        (Ranking((), ()), 1),
    ],
)
def test_the_first_place_that_differs(got: Ranking, place: int) -> None:
    found = first_difference("q", EXPECTED, got, 1e-5, SCORES.__getitem__)
    assert (found.place if found else 0) == place
    if found:
        assert found.expected == (Place(EXPECTED.ids[place - 1], EXPECTED.scores[place - 1]) if place < 4 else None)
        assert found.got == (Place(got.ids[place - 1], got.scores[place - 1]) if place <= len(got) else None)


def test_scores_that_are_equal_within_float32_may_swap() -> None:
    near = Ranking(("a", "b"), (0.500010, 0.500001))
    swapped = Ranking(("b", "a"), (0.500008, 0.500003))
    assert first_difference("q", near, swapped, 1e-5) is None
    assert first_difference("q", near, swapped, 1e-6) is not None


@pytest.mark.parametrize("dimensions", [2, 384, 3072])
def test_the_tolerance_covers_float32_and_stays_below_a_thousandth(dimensions: int) -> None:
    """Summed in float32 one product after the other, the worst of usual orders, against sums in float64."""
    rng = np.random.default_rng(dimensions)
    one, two = (rng.standard_normal((50, dimensions)) for _ in range(2))
    one, two = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True) for matrix in (one, one + 0.3 * two))
    true = np.einsum("ij,ij->i", one, two)
    products = one.astype(np.float32) * two.astype(np.float32)
    summed = np.add.accumulate(products, axis=1, dtype=np.float32)[:, -1]
    assert np.abs(summed - true).max() < cosine_tolerance(dimensions) < 1e-3


def test_the_sample_is_everything_where_that_is_cheap_and_bounded_where_it_is_not() -> None:
    queries = list(range(50_000))
    assert sample(queries[:700], 1000 * 384, 100) == queries[:700]
    assert len(sample(queries, 1000 * 384, 100)) <= exact_search.MOST
    few = sample(queries, 10_000_000 * 384, 100)
    assert exact_search.FEWEST / 2 < len(few) <= exact_search.FEWEST
    assert few[-1] > 40_000  # of all queries, not of the first
    assert len(sample(queries, 1000 * 384, 20_000)) * 20_000 <= exact_search.HELD
    assert sample([], 1, 1) == []


def test_exact_rows_that_rank_differently_outside_the_sample_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first query is compared with exact search; the liar ranks the others differently."""
    monkeypatch.setattr(exact_search, "FEWEST", 1)
    monkeypatch.setattr(exact_search, "MOST", 1)
    outcome = _run(tmp_path, HONEST + _liar("skips the first later"))
    assert not outcome.not_run
    first, second = (row.search for row in outcome.ran)
    assert first is not None
    assert second is not None
    assert first.unlike is not None
    assert second.unlike is not None
    assert (first.unlike.label, second.unlike.label) == ("fake+liar", "fake+faiss")
    assert first.unlike.difference.query == second.unlike.difference.query != "q1"
    assert first.unlike.difference.expected == second.unlike.difference.got
