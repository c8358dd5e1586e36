"""Expected values come from scikit-learn, the krippendorff package, and hand work."""

from __future__ import annotations

import math
import warnings

import krippendorff
import numpy as np
import pytest
from bakeoff.extensions.testsets.agreement import (
    agreement,
    coincidences,
    disagreements,
    fleiss,
    kappa,
    most_unequal,
    ordinal_alpha,
)
from bakeoff.extensions.testsets.task_folder import TaskFolder
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

SCALE = [0, 1, 2, 3]
grades = st.integers(0, 3)
columns = st.lists(st.tuples(grades, grades), min_size=2, max_size=40)
WEIGHTS = {"plain": None, "linear": "linear", "quadratic": "quadratic"}


def table(pairs: list[tuple[int, int]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    counts = np.zeros((4, 4))
    for a, b in pairs:
        counts[a, b] += 1
    return counts


@given(columns)
def test_kappa_is_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    a, b = zip(*pairs, strict=True)
    for ours, theirs in WEIGHTS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = cohen_kappa_score(a, b, labels=SCALE, weights=theirs)
        value = float(kappa(table(pairs), ours))  # type: ignore[arg-type]
        if math.isnan(expected) or len(set(a) | set(b)) == 1:
            assert math.isnan(value)  # everyone always gave the same grade
        else:
            assert value == pytest.approx(expected, abs=1e-12)


@given(
    st.integers(2, 5).flatmap(
        lambda n: st.lists(st.lists(st.none() | grades, min_size=n, max_size=n), min_size=3, max_size=30)
    )
)
def test_alpha_is_the_krippendorff_packages_also_with_gaps(rows: list[list[int | None]]) -> None:
    usable = [row for row in rows if sum(grade is not None for grade in row) > 1]
    assume(len({grade for row in usable for grade in row if grade is not None}) > 1)
    data = [[math.nan if grade is None else grade for grade in column] for column in zip(*rows, strict=True)]
    expected = krippendorff.alpha(reliability_data=data, level_of_measurement="ordinal", value_domain=SCALE)
    counts = np.array([[row.count(grade) for grade in SCALE] for row in rows], dtype=float)
    assert float(ordinal_alpha(coincidences(counts).sum(axis=0))) == pytest.approx(expected, abs=1e-9)


@given(st.integers(2, 5).flatmap(lambda n: st.lists(st.lists(grades, min_size=n, max_size=n), min_size=2, max_size=30)))
def test_fleiss_follows_from_the_krippendorff_packages_nominal_alpha(rows: list[list[int]]) -> None:
    # Without gaps both have the same observed disagreement, and differ in drawing grades with or without putting them
    # back: 1 − α = (1 − κ) (G − 1) / G, with G grades in all.
    assume(len({grade for row in rows for grade in row}) > 1)
    alpha = krippendorff.alpha(
        reliability_data=list(zip(*rows, strict=True)), level_of_measurement="nominal", value_domain=SCALE
    )
    given = len(rows) * len(rows[0])
    counts = np.array([[row.count(grade) for grade in SCALE] for row in rows], dtype=float)
    assert fleiss(counts) == pytest.approx(1 - (1 - alpha) * given / (given - 1), abs=1e-9)


def test_fleiss_by_hand() -> None:
    # Three raters, two pairs: (0,0,1) and (1,1,1). P = (1/3 + 1)/2 = 2/3; shares 1/3 and 2/3, so chance is 5/9.
    counts = np.array([[2, 1, 0, 0], [0, 3, 0, 0]], dtype=float)
    assert fleiss(counts) == pytest.approx((2 / 3 - 5 / 9) / (1 - 5 / 9))


class TestTheShippedAnnotators:
    @pytest.mark.parametrize(
        ("task", "kappa", "equal"), [("wikipedia", 0.9917, 491), ("wikipedia-paraphrased", 0.9892, 488)]
    )
    def test_every_value_is_the_libraries(self, task: str, kappa: float, equal: int) -> None:
        given = {name: annotation.pairs() for name, annotation in TaskFolder.open(task).annotators().items()}
        result = agreement(given, resamples=500)
        a, b = (list(grades.values()) for grades in given.values())
        (two,) = result.two
        assert result.pairs == two.pairs == result.fleiss_pairs == 500
        for name, weights in WEIGHTS.items():
            estimate = getattr(two, name)
            assert estimate.value == pytest.approx(cohen_kappa_score(a, b, weights=weights), abs=1e-12)
            assert estimate.low < estimate.value < estimate.high
        assert two.quadratic.value == pytest.approx(kappa, abs=5e-5)
        expected = krippendorff.alpha(reliability_data=[a, b], level_of_measurement="ordinal", value_domain=SCALE)
        assert result.alpha.value == pytest.approx(expected, abs=1e-12)
        assert np.array(two.confusion).sum() == 500
        assert np.trace(np.array(two.confusion)) == equal
        assert len(result.worst) == 500 - equal


def pairs_of(*columns: list[int | None], queries: int = 4) -> dict[str, dict[tuple[str, str], int]]:
    names = "abcdef"
    return {
        names[at]: {(f"q{n % queries}", str(n)): grade for n, grade in enumerate(column) if grade is not None}
        for at, column in enumerate(columns)
    }


def test_pairs_that_one_lacks_are_left_out_of_kappa_but_not_of_alpha() -> None:
    result = agreement(pairs_of([0, 1, 2, 3, None], [0, 1, 2, 3, 1], [0, 1, 2, 2, 1]), resamples=100)
    sizes = {(two.a, two.b): two.pairs for two in result.two}
    assert sizes == {("a", "b"): 4, ("a", "c"): 4, ("b", "c"): 5}
    assert result.fleiss_pairs == 4
    data = [[0, 1, 2, 3, math.nan], [0, 1, 2, 3, 1], [0, 1, 2, 2, 1]]
    expected = krippendorff.alpha(reliability_data=data, level_of_measurement="ordinal", value_domain=SCALE)
    assert result.alpha.value == pytest.approx(expected)


def test_where_nothing_varies_nothing_is_claimed() -> None:
    result = agreement(pairs_of([0, 0, 0, 0], [0, 0, 0, 0]), resamples=100)
    assert result.two[0].plain.value is None
    assert result.alpha.value is None
    assert result.two[0].equal == 1


def test_without_any_disagreement_there_is_no_interval_but_a_bound() -> None:
    """125 of 125 equal: the share of unequal ones is at most where (1 − share)^125 = 5%, as scipy's exact test says."""
    given = {(f"q{n % 5}", f"d{n}"): n % 4 for n in range(125)}
    found = agreement({"a": given, "b": given})
    for estimate in (found.two[0].plain, found.two[0].linear, found.two[0].quadratic, found.fleiss, found.alpha):
        assert estimate.value == pytest.approx(1)
        assert (estimate.low, estimate.high) == (None, None)
    bound = binomtest(0, 125, alternative="less").proportion_ci(0.95, "exact").high
    assert most_unequal(125) == pytest.approx(bound)


def test_annotators_without_a_common_pair() -> None:
    result = agreement(pairs_of([0, 1, None, None], [None, None, 1, 2]), resamples=100)
    assert result.two[0].pairs == 0
    assert result.two[0].quadratic.value is None
    assert result.alpha.value is None


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    # Two noisy readers of the same truth; the true κ is that of a very large sample of the same process.
    rng = np.random.default_rng(7)

    def draw(queries: int) -> dict[str, dict[tuple[str, str], int]]:
        truth = rng.integers(0, 4, (queries, 8))
        readers = [np.clip(truth + rng.choice([-1, 0, 1], p=[0.15, 0.7, 0.15], size=truth.shape), 0, 3) for _ in "ab"]
        return {
            name: {(f"q{q}", str(d)): int(grid[q, d]) for q in range(queries) for d in range(8)}
            for name, grid in zip("ab", readers, strict=True)
        }

    true = agreement(draw(4000), resamples=1).two[0].quadratic.value
    assert true is not None
    covered = 0
    for _ in range(100):
        estimate = agreement(draw(25), resamples=300).two[0].quadratic
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= true <= estimate.high
    assert 0.88 <= covered / 100 <= 1.0  # 95% nominal, less for small samples; the spread over 100 is about 0.022


def test_the_widest_disagreement_comes_first() -> None:
    worst = disagreements(pairs_of([0, 1, 2, 3], [3, 1, 1, 3], [1, 1, 2, 2]))
    assert [(pair.document, pair.spread) for pair in worst] == [("0", 3), ("2", 1), ("3", 1)]
    assert worst[0].grades == {"a": 0, "b": 3, "c": 1}
