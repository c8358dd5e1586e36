"""What the verdict says, on scores small enough to be ordered by hand."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.core.figures import Percentiles
from bakeoff.evaluation.measures import Measure
from bakeoff.results.schema import Kept, Latency, Row, Value
from bakeoff.results.verdict import decide, order_agreement
from bakeoff.statistics.averaging import PerQuery
from bakeoff.statistics.compare import tied_with_best
from bakeoff.statistics.power import smallest_detectable
from msgspec.structs import replace
from scipy import stats

NDCG, MRR = Measure.parse("ndcg@10"), Measure.parse("mrr")
MEANS = {"a": (0.9, 0.5), "b": (0.7, 0.8), "c": (0.4, 0.3), "d": (0.1, 0.2)}


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


def test_agreement_of_orders_is_kendalls_tau() -> None:
    agreement = order_agreement(_rows(), NDCG, [NDCG, MRR], ["x", "y"])
    # of six pairs only a and b change places: (5 - 1) / 6; category x keeps the order, y turns it round
    assert agreement == {"mrr": pytest.approx(4 / 6), "category x": pytest.approx(1), "category y": pytest.approx(-1)}
    theirs = stats.kendalltau([ndcg for ndcg, _ in MEANS.values()], [mrr for _, mrr in MEANS.values()]).statistic
    assert agreement["mrr"] == pytest.approx(theirs)


def test_the_verdict_names_the_order_that_agrees_least() -> None:
    scores = {label: np.linspace(0, 2 * ndcg, 12) for label, (ndcg, _) in MEANS.items()}
    verdict = decide(scores, NDCG, _rows(), PerQuery(42), [NDCG, MRR], category_sizes={"x": 8, "y": 4})
    assert verdict.best == "a"
    assert verdict.sentences[-1].endswith(
        "within the category y (Kendall's τ -1.00; 1 is the same order, -1 the reverse): "
        'the page\'s chart "NDCG@10 by category" shows who leads there.'
    )


def test_rows_that_did_not_run_are_named_where_the_best_is() -> None:
    scores = {label: np.linspace(0, 2 * ndcg, 12) for label, (ndcg, _) in MEANS.items()}
    rows = [*_rows(), *(Row(label=label, row_type="dense", not_run="no key") for label in ("hosted", "typo"))]
    rows.append(Row(label="random", row_type="baseline"))
    whole, in_part = (decide(scores, NDCG, some, PerQuery(42)).sentences for some in (_rows(), rows))
    assert whole[0] == "a has the highest NDCG@10: 0.900, over 12 queries."
    assert in_part[0] == (
        "a has the highest NDCG@10: 0.900, over 12 queries; hosted and typo did not run (why is said below)."
    )
    assert in_part[1:] == whole[1:]
    rows += [Row(label=label, row_type="dense", not_run="no key") for label in ("third", "fourth")]
    assert (
        "over 12 queries; 4 others did not run (why is said below)."
        in decide(scores, NDCG, rows, PerQuery(42)).sentences[0]
    )


def test_the_order_within_a_tiny_category_is_not_worth_a_sentence() -> None:
    scores = {label: np.linspace(0, 2 * ndcg, 12) for label, (ndcg, _) in MEANS.items()}
    sizes = {"x": 9, "y": 3}
    verdict = decide(scores, NDCG, _rows(), PerQuery(42), [NDCG, MRR], category_sizes=sizes)
    assert "order by MRR (Kendall's τ 0.67; " in verdict.sentences[-1]
    assert "category y" not in verdict.agreement
    verdict = decide(scores, NDCG, _rows(), PerQuery(42), [NDCG], category_sizes=sizes)
    assert verdict.sentences[-1].endswith("by every other measure and in every category of 4 queries or more.")


def _decided(measure: Measure, scores: dict[str, Values]) -> list[str]:
    name = str(measure)
    rows = [
        Row(label=label, row_type="dense", measures={name: Value(measure.figure(float(values.mean())))})
        for label, values in scores.items()
    ]
    return list(decide(scores, measure, rows, PerQuery(42)).sentences)


def test_only_a_measure_that_ends_at_one_can_be_out_of_reach() -> None:
    """Three queries find a difference of several points of DCG, and none that NDCG could have."""
    scores = {"a": np.array([9.0, 2.0, 7.0]), "b": np.array([4.0, 6.0, 1.0])}
    dcg = next(text for text in _decided(Measure.parse("dcg@10"), scores) if "4 of 5 cases" in text and "true" in text)
    spread = float(np.std(scores["a"] - scores["b"], ddof=1))
    assert f"from {smallest_detectable(spread, 3):.3f} on" in dcg
    ndcg = _decided(NDCG, {label: values / 10 for label, values in scores.items()})
    assert any("however large" in text for text in ndcg)


def test_the_gaps_of_a_geometric_mean_are_those_of_the_figures_shown() -> None:
    """Logarithms of 0.8 and 0.2 on twenty queries, less a little: a lead of 0.6, not of log 4 = 1.386."""
    noise = np.random.default_rng(1).normal(0, 0.01, 20)
    noise -= noise.mean()
    said = _decided(Measure.parse("gm_map"), {"a": np.log(0.8) + noise, "b": np.log(0.2) - noise})
    assert any("It is better than b, by 0.600" in text for text in said)
    spread = float(np.std(2 * noise, ddof=1))
    least = 0.8 * (1 - np.exp(-smallest_detectable(spread, 20)))
    assert any(f"in 4 of 5 cases from {least:.3f} on" in text for text in said)


def test_how_much_is_judged_is_no_order_to_agree_with() -> None:
    judged = Measure.parse("judged@10")
    rows = [replace(row, measures=row.measures | {"judged@10": Value(1 - row.measures["mrr"].mean)}) for row in _rows()]
    assert list(order_agreement(rows, NDCG, [NDCG, MRR, judged])) == ["mrr"]


def test_rows_of_one_model_are_not_compared_on_the_time_of_the_same_call() -> None:
    def row(label: str, model: str, ms: float) -> Row:
        timed, none = Percentiles(60, ms, ms), Percentiles(0)
        latency = Latency(embed=timed, search=none, total=timed)
        return Row(label=label, row_type="dense", provider=model, model=model, measures=same, latency=latency)

    same = {"ndcg@10": Value(0.5)}
    wave = np.array([0.1, 0.9] * 6)
    scores = {"m@384": wave + 0.01, "m@128": wave[::-1], "u": wave[::-1] + 0.001}
    rows = [row("m@384", "m", 16.5), row("m@128", "m", 5.0), row("u", "u", 8.0)]
    (faster,) = [text for text in decide(scores, NDCG, rows, PerQuery(42)).sentences if "faster" in text]
    assert faster == "u embeds a query 2.1× faster (8 against 16.5 ms, p50)."
    kept = Kept(stages=["embed"], first="2026-01-02", last="2026-01-02", machines=["a machine"])
    for place in (0, 2):  # a time of another day makes no ratio with one of this run
        old = [replace(row, latency=replace(row.latency, kept=kept)) if at == place else row
               for at, row in enumerate(rows) if row.latency]  # fmt: skip
        assert not any("faster" in text for text in decide(scores, NDCG, old, PerQuery(42)).sentences)
    two = decide({label: scores[label] for label in ("m@384", "m@128")}, NDCG, rows[:2], PerQuery(42))
    assert two.tie_group == ["m@384", "m@128"]
    assert not any("faster" in text for text in two.sentences)
    for made, kind in ((0, "fused"), (2, "reranked")):  # of whatever model: it may be that of the other row
        mixed = [replace(row, row_type=kind) if at == made else row for at, row in enumerate(rows)]
        assert not any("faster" in text for text in decide(scores, NDCG, mixed, PerQuery(42)).sentences)


def test_two_contenders_have_nothing_to_agree_on() -> None:
    assert order_agreement(_rows()[:2], NDCG, [MRR]) == {}


def test_the_best_and_its_equals_are_tied_and_the_rest_is_not() -> None:
    rng = np.random.default_rng(0)
    good = 0.8 + 0.01 * rng.random(15)
    tied = tied_with_best({"best": good, "twin": good.copy(), "bad": good - 0.5}, 42)
    assert tied == {"best": True, "twin": True, "bad": False}


def test_rows_that_are_no_better_than_chance_are_named_by_a_test() -> None:
    rng = np.random.default_rng(1)
    floor = rng.uniform(0.2, 0.4, 40)
    noise = rng.normal(0, 0.1, 40)
    scores = {
        "a": floor + 0.3,  # better on every query
        "b": floor + noise - noise.mean(),  # the same on average
        "c": floor + 0.2,
        "d": floor - 0.1,  # worse on every query
    }
    sentences = decide(scores, NDCG, _rows(), PerQuery(42), floor=floor).sentences
    (unsure,) = [text for text in sentences if "can't be told from a random order" in text]
    assert unsure.startswith("b can't be told")
    (worse,) = [text for text in sentences if "worse than a random order" in text]
    assert worse.startswith("d is worse")


def test_chance_is_not_blamed_more_often_than_promised() -> None:
    """A contender of pure chance is called better or worse than random in about 5% of simulated tasks, not more."""
    rng = np.random.default_rng(7)
    rows = [Row(label="a", row_type="dense", measures={"ndcg@10": Value(0.5)})]
    floor = np.full(15, 0.5)
    missed = 0
    for _ in range(200):
        sentences = decide({"a": rng.uniform(0, 1, 15)}, NDCG, rows, PerQuery(42), floor=floor).sentences
        missed += not any("can't be told from a random order" in text for text in sentences)
    assert missed <= stats.binom.ppf(0.999, 200, 0.05)


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


def test_rows_with_the_same_scores_are_said_to_score_the_same() -> None:
    """By the deciding measure: whether the rankings are the same it does not know."""
    values = np.random.default_rng(1).uniform(0.4, 0.9, 20)
    said = _decided(NDCG, {"one": values, "other": values.copy(), "third": values.copy(), "worse": values - 0.3})
    assert "other and third score the same NDCG@10 on every query." in said
    assert "other scores the same NDCG@10 on every query." in _decided(NDCG, {"one": values, "other": values.copy()})
    assert any(" (p (Holm) = " in text for text in said)
    assert not any("(p = " in text for text in said)


def test_a_model_in_several_stores_is_held_against_chance_once() -> None:
    """Six queries above the floor: p = 2 / 2^6 = 0.031. Five stores make it no less sure."""
    floor, above = np.full(12, 0.5), np.array([0.9] * 6 + [0.5] * 6)
    scores = {f"m{at}": above.copy() for at in range(5)}
    rows = [Row(label=label, row_type="dense", measures={"ndcg@10": Value(0.7)}) for label in scores]
    said = decide(scores, NDCG, rows, PerQuery(42), floor=floor).sentences
    assert not any("random order" in text for text in said)
    said = decide(
        {label: 1 - values for label, values in scores.items()}, NDCG, rows, PerQuery(42), floor=floor
    ).sentences
    assert any(text.endswith("are worse than a random order (p (Holm) = 0.031).") for text in said)
