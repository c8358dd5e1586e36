from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from bakeoff.core.ranking import make_ranking
from bakeoff.evaluation.measures import Measure, deepest
from bakeoff.evaluation.measures.base import figure_of, options_of, primary_measure
from bakeoff.evaluation.score import join, random_expectation, score_queries
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses, says
from tests.registries import FAMILIES


def test_a_measure_is_its_parts() -> None:
    assert Measure.parse("ndcg(gain=exp)@5") == Measure.of("ndcg", k=5, gain="exp")
    assert Measure.parse("p(rel=2)@5") == Measure.of("p", k=5, rel=2)
    assert Measure.parse("map(over=found,rel=2)") == Measure.of("map", rel=2, over="found")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("ndcg@10", "ndcg@10"),
        ("NDCG@10", "ndcg@10"),
        (" p ( rel = 2 ) @ 5 ", "p(rel=2)@5"),
        ("ap(over=found)", "map(over=found)"),
        ("hit@3", "acc@3"),
        ("success@3", "acc@3"),
        ("ndcg(gain=linear)@5", "ndcg@5"),
        ("map(over=relevant)@5", "map@5"),
        ("map(rel=2,over=found)@100", "map(over=found,rel=2)@100"),
        ("p(rel=1)@5", "p(rel=1)@5"),
        ("mrr", "mrr"),
        ("mrr()@10", "mrr@10"),
        ("recall", "recall"),
        ("rprec", "rprec"),
        ("judged@010", "judged@10"),
    ],
)
def test_every_spelling_prints_as_one(written: str, printed: str) -> None:
    assert str(Measure.parse(written)) == printed


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    name = draw(st.sampled_from(sorted(FAMILIES)))
    family = FAMILIES[name]
    k = draw(st.integers(1, 1000)) if family.cut == "required" else None
    if family.cut == "optional":
        k = draw(st.none() | st.integers(1, 1000))
    values: dict[str, st.SearchStrategy[int | float | str | None]] = {
        "rel": st.none() | st.integers(1, 9),
        "gain": st.sampled_from(["linear", "exp"]),
        "over": st.sampled_from(["relevant", "found"]),
        "unjudged": st.sampled_from(["irrelevant", "removed"]),
        "pool": st.sampled_from(["judged", "ranked"]),
        "max": st.integers(1, 9),
        "p": st.sampled_from([0.5, 0.8, 0.95]),
    }
    return Measure.of(name, k, **{option: draw(values[option]) for option in options_of(family)})


@given(measures())
def test_parsing_undoes_printing(measure: Measure) -> None:
    assert Measure.parse(str(measure)) == measure


@given(st.text(max_size=12) | st.from_regex(r"[a-z]{1,6}(\([a-z=,0-9]{0,9}\))?(@[0-9-]{1,3})?", fullmatch=True))
def test_whatever_is_written_is_read_or_refused_with_a_remedy(text: str) -> None:
    remedy = ""
    try:
        measure = Measure.parse(text)
    except InputError as error:
        remedy = error.remedy
    assert remedy or Measure.parse(str(measure)) == measure


@pytest.mark.parametrize(
    ("written", "problem", "remedy"),
    [
        ("ndgc@10", "'ndgc'", "'ndcg'"),
        ("recal@10", "'recal'", "'recall'"),
        ("bleu", "'bleu'", "known: acc, ap, bpref"),
        ("p", "cut-off", "'p@10'"),
        ("f1(rel=2)", "cut-off", "'f1@10'"),
        ("acc", "cut-off", "'acc@10'"),
        ("judged", "'judged'", "'judged@10'"),
        ("rprec@5", "cut-off", "'rprec'"),
        ("bpref@5", "cut-off", "'bpref'"),
        ("rbp(p=1)@5", "1", "p=0.8"),
        ("ndcg(unjudged=maybe)@5", "'ndcg'", "unjudged=irrelevant or unjudged=removed"),
        ("p@0", "below 1", "@1"),
        ("p@five", "'five'", "1"),
        ("p@-3", "'-3'", "1"),
        ("p@1 0", "'1 0'", "1"),
        ("p@" + "9" * 5000, "999", "1"),
        ("p@1000000000", "'p@1000000000'", "1"),
        ("n dcg@10", "'n dcg@10'", "ndcg@10"),
        ("p@5@10", "'p@5@10'", "ndcg@10"),
        ("", "''", "ndcg@10"),
        ("ndcg(gain=log)@5", "'ndcg'", "gain=linear or gain=exp"),
        ("map(over=all)", "'map'", "over=relevant or over=found"),
        ("p(rel=0)@5", "0", "rel=1"),
        ("p(rel=2,rel=3)@5", "'rel'", "keep"),
        ("p(gain=exp)@5", "'gain'", "rel"),
        ("ndcg(rel=2)@5", "'ndcg'", "gain"),
        ("judged(rel=2)@5", "'judged'", "'judged'"),
        ("p(rel)@5", "'rel'", "name=value"),
        ("p(rel=)@5", "'rel='", "name=value"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_remedy(written: str, problem: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        Measure.parse(written)
    says(str(caught.value), problem)
    says(caught.value.remedy, remedy)


def test_whole_numbers_have_up_to_nine_digits() -> None:
    assert Measure.parse("p(rel=999999999)@999999999") == Measure.of("p", 999999999, rel=999999999)


def test_a_measure_made_in_code_is_checked_like_a_written_one() -> None:
    with refuses(InputError, "'gain'"):
        Measure.of("p", k=5, gain="exp")
    with refuses(InputError, "cut-off"):
        Measure.of("p")
    with refuses(InputError, "'aq'"):
        Measure.of("aq")


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ("p@5", "Precision@5"),
        ("ndcg@10", "NDCG@10"),
        ("mrr", "MRR"),
        ("acc@1", "Accuracy@1"),
        ("rprec", "R-Precision"),
        ("ndcg(gain=exp)@5", "NDCG@5 (exponential gain)"),
        ("ndcg(unjudged=removed)@5", "NDCG@5 (condensed list)"),
        ("gm_map", "GMAP"),
        ("map(over=found,rel=2)@10", "MAP@10 (over found, grade ≥ 2)"),
    ],
)
def test_labels_are_for_people(written: str, label: str) -> None:
    assert Measure.parse(written).label == label


def test_the_deepest_cut_decides_how_deep_to_join() -> None:
    assert deepest([Measure.parse("p@5"), Measure.parse("ndcg@10")]) == 10
    assert deepest([Measure.parse("p@5"), Measure.parse("mrr")]) is None
    assert deepest([Measure.parse("p(unjudged=removed)@5")]) is None
    assert deepest([]) is None


def test_a_figure_is_the_mean_of_its_values_unless_a_measure_says_otherwise() -> None:
    values = np.array([0.25, 1.0, 0.25])
    assert Measure.parse("ndcg@10").figure(0.3) == 0.3
    assert Measure.parse("ndcg@10").aggregate(values) == pytest.approx(0.5)
    assert Measure.parse("gm_map").aggregate(np.log(values)) == pytest.approx(0.0625 ** (1 / 3))


@pytest.mark.parametrize(("documents", "relevant", "k"), [(3, 2, None), (4, 3, None), (5, 2, 3), (6, 2, 3), (9, 4, 6)])
def test_the_geometric_mean_of_random_orders_is_that_of_all_orders(
    documents: int, relevant: int, k: int | None
) -> None:
    logs = []
    for ranks in itertools.combinations(range(1, documents + 1), relevant):
        hits = [(at + 1) / rank for at, rank in enumerate(ranks) if rank <= (k or documents)]
        logs.append(math.log(max(sum(hits) / relevant, 0.00001)))
    measure = Measure.parse("gm_map" + (f"@{k}" if k else ""))
    judgments = {"q": {f"d{at}": 1 for at in range(relevant)}}
    expected = random_expectation(judgments, ["q"], documents, [measure])[measure][0]
    assert expected == pytest.approx(np.mean(logs))


def test_of_very_many_places_the_geometric_mean_of_random_orders_is_simulated() -> None:
    """Twelve relevant of 30, all returned: C(30, 12) = 86 million sets of places, against drawn orders."""
    measure, rng = Measure.parse("gm_map"), np.random.default_rng(1)
    judgments = {"q": {f"d{at}": 1 for at in range(12)}}
    found = random_expectation(judgments, ["q"], 30, [measure])[measure][0]
    ranks = np.sort(rng.random((40_000, 30)).argsort(axis=1)[:, :12], axis=1) + 1
    logs = np.log((np.arange(1, 13) / ranks).mean(axis=1))
    assert found == pytest.approx(logs.mean(), abs=4 * logs.std() * math.sqrt(1 / 10_000 + 1 / 40_000))


@pytest.mark.parametrize(("highest", "allowed"), [(0, False), (1, True), (50, True), (51, False)])
def test_the_highest_grade_of_err(highest: int, allowed: bool) -> None:
    if allowed:
        assert Measure.parse(f"err(max={highest})@10") != Measure.parse("err@10")
    else:
        with refuses(InputError, str(highest)):
            Measure.parse(f"err(max={highest})@10")


def test_sums_of_gains_and_logarithms_are_not_bounded_and_all_others_are() -> None:
    """Whether a test may count on differences of 1 at most: a DCG grows with the grades, a logarithm falls below 0."""
    assert {name for name, family in FAMILIES.items() if not family.bounded} == {"dcg", "gm_map"}


def test_what_decides_where_nothing_is_said() -> None:
    """The first NDCG; without one the first that can decide, and diagnostic ones never do."""
    named = [Measure.parse(text) for text in ("judged@10", "p@5", "mrr", "ndcg@10", "ndcg@5")]
    assert str(primary_measure(named)) == "ndcg@10"
    assert str(primary_measure(named[:3])) == "p@5"
    assert str(primary_measure(named, "mrr")) == "mrr"
    with refuses(InputError, "10"):
        primary_measure(named[:1])


@pytest.mark.parametrize(("text", "bounded"), [("gm_map", False), ("dcg@10", False), ("map", True), ("ndcg@10", True)])
def test_values_of_unbounded_measures_leave_0_to_1(text: str, bounded: bool) -> None:
    """Two relevant documents of grade 3 on top, none of them found at all: a logarithm of nothing, a gain above 1."""
    measure, grades = Measure.parse(text), {"q": {"a": 3, "b": 3}}
    values = [
        float(score_queries(join({"q": make_ranking([(document, 1.0)])}, grades, ["q"]), [measure])[measure][0])
        for document in ("a", "x")
    ]
    assert measure.bounded == bounded
    assert all(0 <= value <= 1 for value in values) == bounded


def test_a_figure_is_made_of_a_mean_that_is_known() -> None:
    assert figure_of(Measure.parse("map"), 0.25) == 0.25
    assert figure_of(Measure.parse("gm_map"), math.log(0.25)) == pytest.approx(0.25)
    assert figure_of(Measure.parse("map"), math.nan) is None
