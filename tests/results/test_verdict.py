"""The verdict's facts, on scores whose right verdict is seen by eye."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.core.facts import Failure
from bakeoff.core.figures import Percentiles
from bakeoff.evaluation.measures import Measure
from bakeoff.results.schema import Bounds, Cost, Latency, PossibleWinner, Row, Situation, Value, Verdict
from bakeoff.results.verdict import VerdictQuestion, decide, not_comparable, order_agreement
from bakeoff.statistics.averaging import PerQuery
from bakeoff.statistics.guarded import queries_for_equivalence
from msgspec.structs import replace
from scipy import stats

NDCG, MRR = Measure.parse("ndcg@10"), Measure.parse("mrr")
MEANS = {"a": (0.9, 0.5), "b": (0.7, 0.8), "c": (0.4, 0.3), "d": (0.1, 0.2)}
RNG = np.random.default_rng(0)
BASE = RNG.uniform(0.4, 0.9, 100)
NOISE = RNG.normal(0, 0.3, 100)


def _row(label: str, values: Values, **more: object) -> Row:
    total = Percentiles(60, 4.0, 8.0)
    timed = {"latency": Latency(embed=total, search=total, total=total), "cost": Cost(usd_per_million_documents=0.0)}
    return Row(label=label, row_type="dense", measures={"ndcg@10": Value(float(values.mean()))}, **{**timed, **more})  # type: ignore[arg-type]


def _decide(scores: Mapping[str, Values], rows: list[Row] | None = None, **asked: object) -> Verdict:
    found = rows or [_row(label, values) for label, values in scores.items()]
    return decide({NDCG: scores}, found, VerdictQuestion(NDCG, PerQuery(42), **asked))  # type: ignore[arg-type]


def _rows() -> list[Row]:
    return [
        Row(
            label=label,
            row_type="dense",
            measures={"ndcg@10": Value(ndcg), "mrr": Value(mrr)},
            categories={"x": {"ndcg@10": ndcg}, "y": {"ndcg@10": 1 - ndcg}},
        )
        for label, (ndcg, mrr) in MEANS.items()
    ]


CLEAR = {"good": BASE, "bad": BASE - 0.3, "poor": np.clip(BASE - 0.2 + 0.2 * NOISE, 0, 1)}
OPEN = {"good": BASE, "near": RNG.permutation(BASE) - 0.01}


def test_a_row_that_beats_all_others_is_taken_and_that_is_all() -> None:
    verdict = _decide(CLEAR)
    assert (verdict.leader, verdict.best_set, verdict.situation) == ("good", ["good"], "clear")
    assert (verdict.action, verdict.take) == ("take and stop", "good")
    assert {label: standing.mark for label, standing in verdict.standings.items()} == {
        "good": "leads", "bad": "worse", "poor": "worse",
    }  # fmt: skip
    bad = verdict.standings["bad"]
    assert bad.p <= 0.05
    assert bad.behind_most is not None
    assert 0 < bad.behind_least <= 0.3 <= bad.behind_most


def test_rows_that_may_be_best_are_not_settled() -> None:
    verdict = _decide(OPEN, stop_within=0.01)
    assert (verdict.best_set, verdict.situation, verdict.action) == (["good", "near"], "not settled", "take for now")
    most = verdict.standings["good"].behind_most
    assert most is not None
    assert most > 0.01
    assert _decide(OPEN, stop_within=most + 0.001).situation == "within margin"
    assert _decide(OPEN, stop_within=most + 0.001).action == "take and stop"
    assert verdict.outlook is not None
    assert (verdict.outlook.rival, verdict.outlook.differing, verdict.outlook.gap) == ("near", 100, 0.01)
    assert verdict.outlook.queries_for_gap is not None


def test_rows_that_score_alike_are_one_row() -> None:
    verdict = _decide({"one": BASE, "again": BASE.copy(), "bad": BASE - 0.3})
    assert verdict.situation == "clear"
    assert verdict.standings["again"].mark == "leads"
    assert verdict.standings["again"].alike == "one"
    assert verdict.standings["one"].alike == ""
    same = _decide({"one": BASE, "again": BASE.copy()})
    assert (same.situation, same.action, same.outlook) == ("all alike", "choose by speed", None)
    scores = {"one": BASE, "again": BASE.copy()}
    other = {"one": BASE / 2, "again": BASE / 3}
    rows = [_row(label, BASE) for label in scores]
    rows = [replace(row, measures={**row.measures, "mrr": Value(0.5)}) for row in rows]
    differ = decide({NDCG: scores, MRR: other}, rows, VerdictQuestion(NDCG, PerQuery(42)))
    assert differ.standings["again"].alike == ""  # another measure tells them apart
    assert differ.situation == "clear"  # by the deciding one they are one row


def test_nothing_ran_and_one_row() -> None:
    assert (
        _decide(
            {}, [Row(label="lost", row_type="dense", not_run=Failure(kind="unavailable", error="Unavailable"))]
        ).situation
        == "nothing ran"
    )
    alone = _decide({"good": BASE})
    assert (alone.situation, alone.action, alone.take, alone.picks) == ("one row", "none", None, [])
    assert not_comparable(NDCG, "labels by row").without_verdict == "labels by row"


def test_fewer_than_ten_queries_that_differ_settle_nothing() -> None:
    near = BASE.copy()
    near[:9] -= 0.05
    verdict = _decide({"good": BASE, "near": near})
    assert verdict.outlook is not None
    assert (verdict.situation, verdict.outlook.differing) == ("too few differ", 9)
    assert verdict.outlook.unnoticed_below is None


def test_what_does_not_beat_a_random_order_is_never_advised() -> None:
    floor = np.full(100, 0.5)
    chance = np.clip(0.5 + NOISE - NOISE.mean(), 0, 1)
    chance += 0.5 - chance.mean()
    verdict = _decide({"chance": chance, "good": BASE + 0.05}, floor=floor)
    assert {label: standing.beats_random for label, standing in verdict.standings.items()} == {
        "chance": False, "good": True,
    }  # fmt: skip
    assert [pick.label for pick in verdict.picks] == ["good"]
    nothing = _decide({"chance": chance, "worse": chance - 0.2}, floor=floor)
    assert (nothing.situation, nothing.action) == ("nothing beats random", "do not choose")
    assert (nothing.take, nothing.picks) == (None, [])
    known = _decide({"chance": chance, "good": BASE}, above={"chance": False, "good": True})
    assert known.standings["chance"].beats_random is False


def test_chance_is_called_better_than_random_no_more_often_than_promised() -> None:
    rng, floor = np.random.default_rng(7), np.full(15, 0.5)
    called = 0
    for _ in range(200):
        values = rng.uniform(0, 1, 15)
        called += bool(_decide({"a": values, "b": values}, floor=floor).standings["a"].beats_random)
    assert called <= stats.binom.ppf(0.999, 200, 0.05)


def test_a_baseline_that_leads_is_no_choice() -> None:
    rows = [_row(label, values, baseline=label == "good") for label, values in CLEAR.items()]
    verdict = _decide(CLEAR, rows)
    assert (verdict.situation, verdict.action) == ("only a baseline leads", "do not choose")
    assert (verdict.leader, verdict.take, verdict.picks) == ("good", None, [])


@pytest.mark.parametrize(
    ("incumbent", "situation", "action", "take"),
    [
        ("bad", "incumbent beaten", "switch", "good"),
        ("good", "incumbent kept", "keep", "good"),
        ("lost", "incumbent did not run", "none", None),
    ],
)
def test_an_incumbent_is_the_question(incumbent: str, situation: Situation, action: str, take: str | None) -> None:
    verdict = _decide(CLEAR, baseline=incumbent)
    assert (verdict.situation, verdict.action, verdict.take) == (situation, action, take)
    if incumbent != "lost":
        assert verdict.standings[incumbent].against is None
    if incumbent == "bad":
        against = verdict.standings["good"].against
        assert against is not None
        assert against.difference == pytest.approx(0.3)
        assert against.relation == "better"
        assert against.low is not None
        assert 0 < against.low < 0.3
        assert against.p_better <= 0.05 < against.p_worse
        assert verdict.picks[0].label == "good"


@pytest.mark.parametrize(("judged", "situation"), [(0.5, "open until graded"), (0.95, "clear")])
def test_a_row_without_grades_is_open(judged: float, situation: Situation) -> None:
    """Below nine in ten, grades could put it first; above, what is not graded says little."""
    bounds = {"ndcg@10": Bounds(judged=judged, irrelevant=0.3, relevant=0.95)}
    rows = [_row(label, values, bounds=bounds if label == "bad" else {}) for label, values in CLEAR.items()]
    turning = [PossibleWinner(challenger="bad", documents=3)]
    verdict = _decide(CLEAR, rows, turning=turning)
    assert verdict.situation == situation
    assert verdict.standings["bad"].open is (judged < 0.9)
    assert verdict.turning == turning
    lifted = {("bad", "good")}
    asked = _decide(CLEAR, rows, baseline="good", overtakes=lambda row, other: (row, other) in lifted)
    against = asked.standings["bad"].against
    assert against is not None
    assert against.relation == ("undecided" if judged < 0.9 else "worse")
    assert against.open is (judged < 0.9)  # so the incumbent is not kept for good


def test_equivalence_is_shown_to_the_leader_within_the_margin() -> None:
    jitter = np.random.default_rng(3).normal(0, 0.002, 100)
    scores = {"best": BASE, "alike": BASE - 0.001 + jitter, "open": np.clip(BASE - 0.02 + NOISE, 0, 1)}
    verdict = _decide(scores, equivalent_within=0.05)
    assert {label: standing.equivalent for label, standing in verdict.standings.items()} == {
        "best": None, "alike": True, "open": False,
    }  # fmt: skip
    few = _decide({label: values[:20] for label, values in scores.items()}, equivalent_within=0.05)
    assert few.standings["alike"].equivalent is False  # 20 queries can't rule out a failure that costs as much
    assert _decide(scores).standings["alike"].p_equivalent is None


def test_the_bounds_of_a_geometric_mean_are_those_of_the_figures_shown() -> None:
    """Logarithms of 0.8 and 0.2, less a little: a lead of 0.6, not of log 4 = 1.386."""
    noise = np.random.default_rng(1).normal(0, 0.01, 20)
    noise -= noise.mean()
    gmap = Measure.parse("gm_map")
    scores = {"a": np.log(0.8) + noise, "b": np.log(0.2) - noise}
    rows = [
        Row(label=label, row_type="dense", measures={"gm_map": Value(float(np.exp(v.mean())))})
        for label, v in scores.items()
    ]
    verdict = decide({gmap: scores}, rows, VerdictQuestion(gmap, PerQuery(42), baseline="b"))
    assert verdict.standings["b"].behind_least == pytest.approx(0.6, abs=0.01)
    assert verdict.standings["b"].behind_most == pytest.approx(0.6, abs=0.01)
    against = verdict.standings["a"].against
    assert against is not None
    assert against.difference == pytest.approx(0.6)
    assert against.low == pytest.approx(0.6, abs=0.01)


def test_agreement_of_orders_is_kendalls_tau() -> None:
    agreement = order_agreement(_rows(), NDCG, [NDCG, MRR], ["x", "y"])
    # of six pairs only a and b change places: (5 - 1) / 6; category x keeps the order, y turns it round
    assert agreement == {"mrr": pytest.approx(4 / 6), "category x": pytest.approx(1), "category y": pytest.approx(-1)}
    theirs = stats.kendalltau([ndcg for ndcg, _ in MEANS.values()], [mrr for _, mrr in MEANS.values()]).statistic
    assert agreement["mrr"] == pytest.approx(theirs)


def test_the_order_within_a_tiny_category_says_nothing() -> None:
    scores = {label: np.linspace(0, min(1, 2 * ndcg), 12) for label, (ndcg, _) in MEANS.items()}
    question = VerdictQuestion(NDCG, PerQuery(42), category_sizes={"x": 9, "y": 3})
    assert list(decide({NDCG: scores}, _rows(), question).agreement) == ["category x"]


def test_how_much_is_judged_is_no_order_to_agree_with() -> None:
    judged = Measure.parse("judged@10")
    rows = [replace(row, measures=row.measures | {"judged@10": Value(1 - row.measures["mrr"].mean)}) for row in _rows()]
    assert list(order_agreement(rows, NDCG, [NDCG, MRR, judged])) == ["mrr"]


def test_two_contenders_have_nothing_to_agree_on() -> None:
    assert order_agreement(_rows()[:2], NDCG, [MRR]) == {}


def test_a_model_in_two_stores_has_one_place_in_the_order() -> None:
    """Of three contenders one pair changes places: τ = (2 − 1) / 3. With the first of them twice it would be 3 / 5."""
    rows = [row for row in _rows() if row.label != "d"]
    again = replace(rows[0], label="a in another store")
    agreement = order_agreement([*rows, again], NDCG, [NDCG, MRR])
    assert agreement == {"mrr": pytest.approx(1 / 3)}
    other = replace(again, measures=again.measures | {"mrr": Value(0.1)})  # the same by NDCG alone: no double
    tau = stats.kendalltau([0.9, 0.7, 0.4, 0.9], [0.5, 0.8, 0.3, 0.1]).statistic
    assert order_agreement([*rows, other], NDCG, [NDCG, MRR]) == {"mrr": pytest.approx(tau)}
    assert order_agreement([rows[0], again, rows[1]], NDCG, [MRR]) == {}  # two that differ


def test_the_queries_that_equivalence_takes_are_for_the_spread_of_the_closest_row() -> None:
    verdict = _decide(CLEAR, equivalent_within=0.05)
    values = list(CLEAR.values())
    leader = CLEAR[verdict.leader or ""]
    spreads = [float((other - leader).std(ddof=1)) for other in values if other is not leader]
    assert verdict.queries_for_equivalence == queries_for_equivalence(0.05, min(spreads))
    assert _decide(CLEAR).queries_for_equivalence is None


@pytest.mark.parametrize(
    ("fake", "leader", "situation"), [(0.53, "wild", "nothing beats random"), (0.6, "fake", "only a baseline leads")]
)
def test_a_baseline_above_random_makes_no_other_row_a_choice(fake: float, leader: str, situation: Situation) -> None:
    """The one model, by chance above or below the baseline, is not shown to beat a random order."""
    wild = np.where(np.arange(20) % 2, 1.0, 0.1)  # 0.55 on average, and far from sure
    scores = {"wild": wild, "fake": fake + NOISE[:20] / 100}
    rows = [_row(label, values, baseline=label == "fake") for label, values in scores.items()]
    verdict = _decide(scores, rows, floor=np.full(20, 0.5))
    assert {label: standing.beats_random for label, standing in verdict.standings.items()} == {
        "wild": False, "fake": True,
    }  # fmt: skip
    assert (verdict.leader, verdict.situation, verdict.action) == (leader, situation, "do not choose")
    assert (verdict.take, verdict.picks) == (None, [])
