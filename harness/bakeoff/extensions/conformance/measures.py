"""What every measure must do, as tests that any package can run. Needs pytest.

class TestMine(MeasureConformance):
    @pytest.fixture(params=["mine@3", "mine(rel=2)"])
    def measure(self, request: pytest.FixtureRequest) -> Measure:
        return Measure.parse(request.param)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from bakeoff.core.ranking import Ranking
from bakeoff.evaluation.measures import MEASURES, Measure
from bakeoff.evaluation.score import join, oracle, random_expectation, score_queries

CORPUS = "abcdef"
JUDGMENTS: dict[str, dict[str, int]] = {
    "one": {"a": 1},
    "graded": {"a": 3, "b": 1, "c": 0},
    "many": {"a": 2, "b": 2, "c": 1, "d": 1},
    "all": dict.fromkeys(CORPUS, 1),
    "irrelevant": {"a": 0, "b": 0},
    "unjudged": {},
}
ORDERS = ["abcdef", "fedcba", "cadbfe", "fa", "b", ""]  # some return little, one nothing


def values_of(
    measure: Measure, rankings: Mapping[str, Sequence[str]], judgments: Mapping[str, Mapping[str, int]]
) -> list[float]:
    """One value per judged query, as in a run."""
    ranked = {query: Ranking(tuple(ids), tuple(range(len(ids), 0, -1))) for query, ids in rankings.items()}
    return [float(value) for value in score_queries(join(ranked, judgments, list(judgments)), [measure])[measure]]


class MeasureConformance:
    """Subclass it and provide the measure, in every form worth testing."""

    @pytest.fixture
    def measure(self) -> Measure:
        """The measure with its options and cut-off."""
        raise NotImplementedError

    def test_its_spelling_reads_as_itself(self, measure: Measure) -> None:
        assert measure.name in MEASURES.names(), "name it as an entry point of bakeoff.measures"
        assert Measure.parse(str(measure)) == measure
        assert measure.label.startswith(measure.title)

    @pytest.mark.parametrize("order", ORDERS)
    def test_every_query_has_a_finite_value_within_its_bounds(self, measure: Measure, order: str) -> None:
        values = values_of(measure, dict.fromkeys(JUDGMENTS, order), JUDGMENTS)
        assert len(values) == len(JUDGMENTS)
        assert all(map(math.isfinite, values)), values
        if measure.bounded:
            assert all(0 <= value <= 1 for value in values), values

    @pytest.mark.parametrize("order", ORDERS)
    def test_a_value_does_not_depend_on_the_other_queries(self, measure: Measure, order: str) -> None:
        together = values_of(measure, dict.fromkeys(JUDGMENTS, order), JUDGMENTS)
        alone = [values_of(measure, {query: order}, {query: JUDGMENTS[query]})[0] for query in JUDGMENTS]
        assert together == pytest.approx(alone, rel=1e-12, abs=1e-12)

    def test_it_reads_no_further_than_it_says(self, measure: Measure) -> None:
        if (depth := measure.depth_read) is None:
            return
        for query, judged in JUDGMENTS.items():
            whole = [values_of(measure, {query: order}, {query: judged}) for order in ORDERS]
            assert whole == [values_of(measure, {query: order[:depth]}, {query: judged}) for order in ORDERS]

    def test_a_higher_grade_never_lowers_it_where_it_is_monotone(self, measure: Measure) -> None:
        for judged, order in itertools.product(JUDGMENTS.values(), ORDERS):
            for document in order[: measure.depth_read] if measure.monotone else "":
                raised = {**judged, document: min(judged.get(document, 0) + 1, 3)}
                before, after = (values_of(measure, {"q": order}, {"q": grades})[0] for grades in (judged, raised))
                assert after >= before - 1e-12, (order, judged, document)

    def test_no_order_is_above_the_perfect_one(self, measure: Measure) -> None:
        """For a diagnostic measure, more need not be better."""
        for query, judged in JUDGMENTS.items() if not measure.diagnostic else ():
            perfect = score_queries(oracle({query: judged}, [query], len(CORPUS)), [measure])[measure][0]
            for order in ORDERS:
                assert values_of(measure, {query: order}, {query: judged})[0] <= perfect + 1e-12, (query, order)

    @pytest.mark.parametrize("depth", [None, 2])
    def test_its_expectation_is_the_mean_over_all_orders(self, measure: Measure, depth: int | None) -> None:
        """The value of the row `random`. All orders of the corpus are equally likely."""
        orders = [order[:depth] for order in itertools.permutations(CORPUS)]
        expected = random_expectation(JUDGMENTS, list(JUDGMENTS), len(CORPUS), [measure], depth=depth)[measure]
        for row, judged in enumerate(JUDGMENTS.values()):
            queries = {str(number): order for number, order in enumerate(orders)}
            mean = np.mean(values_of(measure, queries, dict.fromkeys(queries, judged)))
            assert expected[row] == pytest.approx(mean, rel=1e-6, abs=1e-9), judged
