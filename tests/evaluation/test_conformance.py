"""Every measure of ours through the suite that other packages run, and measures that must not pass it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.random_order import RandomOrder
from bakeoff.extensions.conformance.measures import MeasureConformance

from tests.registries import FAMILIES

SPELLINGS = [
    str(Measure.of(name, k))
    for name, family in FAMILIES.items()
    if not family.reads_dates
    for k in {"required": (1, 3), "optional": (None, 3), "refused": (None,)}[family.cut]
]
OPTIONS = [
    "p(rel=2)@3",
    "ndcg(gain=exp)@3",
    "map(unjudged=removed)",
    "rbp(p=0.5)",
    "err(max=3)@4",
    "infap(pool=ranked)",
]


class TestOurs(MeasureConformance):
    @pytest.fixture(params=[*SPELLINGS, *OPTIONS])
    def measure(self, request: pytest.FixtureRequest) -> Measure:
        return Measure.parse(request.param)


@dataclass(frozen=True)
class Wrong(Measure):
    """Precision, with one mistake at a time."""

    name: ClassVar[str] = "p"
    title: ClassVar[str] = "Precision"
    mistake: str = ""

    def values(self, run: GradedRun) -> Values:
        hits: Values = run.relevant(None).hits(self.k) / run.cut(self.k)
        match self.mistake:
            case "bounds":
                return hits + 1
            case "company":
                return np.asarray(hits / max(hits.max(), 1e-9))
            case "depth":
                return np.asarray(np.count_nonzero(run.grades.grades >= 1, axis=1) / run.whole)
            case "NaN":
                return np.where(hits == 0, np.nan, hits)
        return hits

    def expected(self, order: RandomOrder) -> Values:
        return order.hits(None, self.k) / order.cut(self.k) * (2 if self.mistake == "expectation" else 1)


@pytest.mark.parametrize(
    ("mistake", "check", "arguments"),
    [
        ("bounds", "test_every_query_has_a_finite_value_within_its_bounds", ["abcdef"]),
        ("NaN", "test_every_query_has_a_finite_value_within_its_bounds", ["abcdef"]),
        ("company", "test_a_value_does_not_depend_on_the_other_queries", ["abcdef"]),
        ("depth", "test_it_reads_no_further_than_it_says", []),
        ("expectation", "test_its_expectation_is_the_mean_over_all_orders", [None]),
    ],
)
def test_a_mistake_is_found(mistake: str, check: str, arguments: list[Any]) -> None:
    test = getattr(MeasureConformance(), check)
    test(Wrong(2), *arguments)
    with pytest.raises(AssertionError):
        test(Wrong(2, mistake), *arguments)
