"""Judgments from clicks, on users whose tastes and habits are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bakeoff.extensions.production.log_judge import Attraction, count, fit, judge_log
from bakeoff.extensions.production.search_log import Impression
from bakeoff_providers.errors import InputError
from scipy import stats

from tests.errors import refuses, says
from tests.extensions.production.simulated_users import EXAMINED, clicks
from tests.facts import arguments, sentences

QUERIES = 20


def _log(lists: int, seed: int, spread: float = 3.0) -> tuple[list[Impression], dict[tuple[str, str], float]]:
    """A ranker that knows something: better documents stand higher, but not always in the same place."""
    rng = np.random.default_rng(seed)
    tastes = {f"q{q}": dict(zip("abcdefghij", rng.beta(0.8, 1.6, 10).tolist(), strict=True)) for q in range(QUERIES)}
    impressions = []
    for number in range(lists):
        query = f"q{number % QUERIES}"
        own = tastes[query]
        prior = sorted("abcdefghij")  # where the ranker likes to put them has nothing to do with taste
        shown = [prior[at] for at in np.argsort(np.arange(10) + rng.normal(0, spread, 10))]
        impressions.append(Impression(query=query, shown=tuple(shown), clicked=tuple(clicks(shown, own, rng))))
    truth = {(query, document): value for query, own in tastes.items() for document, value in own.items()}
    return impressions, truth


def _errors(lists: int, model: str, seed: int = 1) -> tuple[float, float, Attraction]:
    impressions, truth = _log(lists, seed)
    counts = count(impressions, 10)
    found = fit(counts, "position" if model == "position" else "ctr")
    true = np.array([truth[pair] for pair in counts.pairs])
    tau = float(stats.kendalltau(found.mean, true).statistic)
    return float(np.sqrt(np.mean((found.mean - true) ** 2))), tau, found


def test_the_estimate_converges_and_beats_the_click_rate() -> None:
    few, many = _errors(2_000, "position"), _errors(20_000, "position")
    assert many[0] < 0.6 * few[0]
    assert many[0] < 0.05
    rate = _errors(20_000, "ctr")
    assert rate[0] > 3 * many[0]
    assert many[1] > rate[1] + 0.1  # and it orders the documents better
    assert many[2].examined == pytest.approx(EXAMINED, abs=0.06)
    assert _errors(2_000, "ctr")[0] > few[0]


@pytest.mark.slow
def test_its_intervals_cover_the_truth() -> None:
    covered = []
    for seed in range(5):
        impressions, truth = _log(6_000, seed)
        counts = count(impressions, 10)
        found = fit(counts)
        true = np.array([truth[pair] for pair in counts.pairs])
        covered.append(np.mean((found.low <= true) & (true <= found.high)))
    assert np.mean(covered) > 0.9  # a little below 95%: the places' pull is estimated too


def test_without_any_pull_of_places_both_models_agree() -> None:
    rng = np.random.default_rng(3)
    impressions = []
    for _ in range(4000):
        shown = tuple(rng.permutation(list("abcde")))
        own = {"a": 0.8, "b": 0.5, "c": 0.3, "d": 0.1, "e": 0.05}
        impressions.append(Impression(query="q", shown=shown, clicked=tuple(clicks(shown, own, rng, np.ones(5)))))
    counts = count(impressions, 5)
    assert fit(counts).mean == pytest.approx(fit(counts, "ctr").mean, abs=0.03)
    assert fit(counts).mean == pytest.approx([own[document] for _, document in counts.pairs], abs=0.04)


def test_counts_by_hand() -> None:
    impressions = [
        Impression(query="q", shown=("a", "b"), clicked=("b",)),
        Impression(query="q", shown=("b", "a", "c"), clicked=("b", "a")),
    ]
    counts = count(impressions, 2)
    assert counts.pairs == [("q", "a"), ("q", "b")]
    assert counts.shown.tolist() == [[1, 1], [1, 1]]
    assert counts.clicked.tolist() == [[0, 1], [1, 1]]


def test_the_click_rate_is_a_beta_posterior() -> None:
    """30 of 100 looks, with a prior of two looks at the log's mean of .3: Beta(30.6, 71.4)."""
    impressions = [Impression(query="q", shown=("a",), clicked=("a",) if at < 30 else ()) for at in range(100)]
    found = fit(count(impressions, 1), "ctr")
    expected = stats.beta(30.6, 71.4)
    assert found.mean[0] == pytest.approx(expected.mean(), abs=1e-3)
    assert (found.low[0], found.high[0]) == pytest.approx((expected.ppf(0.025), expected.ppf(0.975)), abs=4e-3)


def test_only_sure_pairs_become_judgments(tmp_path: Path) -> None:
    impressions, truth = _log(8_000, 5)
    rare = Impression(query="q0", shown=("z",), clicked=("z",))
    check = judge_log([*impressions, rare], tmp_path / "judgments.csv")
    rows = [line.split(",") for line in (tmp_path / "judgments.csv").read_text(encoding="utf-8").splitlines()[1:]]
    assert ("q0", "z") not in {(row[0], row[1]) for row in rows}
    assert check.figures["judged"] == len(rows) < check.figures["pairs"]
    wrong = sum(
        abs(np.searchsorted([0.1, 0.3, 0.6], truth[row[0], row[1]], side="right") - int(row[2])) > 1 for row in rows
    )
    assert wrong <= 0.02 * len(rows)


def test_a_grade_that_another_is_as_possible_as_is_not_written(tmp_path: Path) -> None:
    """12 of 35 looks at `a`: Beta(12.7, 24.3), of which 30% is below .3, so grade 1 is possible beside grade 2.

    `b` is clicked in 155 of 450 looks, and less than 3% of its belief is below .3.
    """
    lists = [Impression(query="q", shown=("a",), clicked=("a",) if at < 12 else ()) for at in range(35)]
    lists += [Impression(query="q", shown=("b",), clicked=("b",) if at < 155 else ()) for at in range(450)]
    overall = 2 * 167 / 485
    beliefs = [stats.beta(hits + overall, looks - hits + 2 - overall) for hits, looks in ((12, 35), (155, 450))]
    expected = [np.diff([0, *belief.cdf([0.1, 0.3, 0.6]), 1]) for belief in beliefs]
    assert fit(count(lists, 1), "ctr", (0.1, 0.3, 0.6)).bands == pytest.approx(np.array(expected), abs=4e-3)
    assert expected[0][2] < 0.8 < expected[1][2]
    check = judge_log(lists, tmp_path / "judgments.csv", model="ctr")
    rows = [line.split(",") for line in (tmp_path / "judgments.csv").read_text(encoding="utf-8").splitlines()[1:]]
    assert [(row[1], row[2]) for row in rows] == [("b", "2")]
    assert check.figures["between_grades"] == 1
    assert arguments(check.facts, "production.click_grades")[0]["between"] == 1
    says(sentences(check.facts)[1])
    assert judge_log(lists, tmp_path / "judgments.csv", model="ctr", sure=0.6).figures["judged"] == 2


def test_a_grade_is_as_often_right_as_it_is_said_to_be(tmp_path: Path) -> None:
    """Users whose tastes are known: of the written grades at least four in five are right; of all narrow ones fewer."""
    right: dict[float, list[bool]] = {0.0: [], 0.8: []}
    for seed in range(4):
        impressions, truth = _log(6_000, seed)
        for sure, hits in right.items():
            judge_log(impressions, tmp_path / "j.csv", sure=sure)
            rows = [line.split(",") for line in (tmp_path / "j.csv").read_text(encoding="utf-8").splitlines()[1:]]
            true = [np.searchsorted([0.1, 0.3, 0.6], truth[row[0], row[1]], side="right") for row in rows]
            hits += [int(row[2]) == grade for row, grade in zip(rows, true, strict=True)]
    assert np.mean(right[0.8]) > 0.88  # 80% at least, most of them more
    assert np.mean(right[0.0]) < np.mean(right[0.8]) - 0.05


def test_cuts_must_rise(tmp_path: Path) -> None:
    with refuses(InputError, place="--cut"):
        judge_log([Impression(query="q", shown=("a",))], tmp_path / "j.csv", cuts=(0.5, 0.2))
    assert not (tmp_path / "j.csv").exists()
