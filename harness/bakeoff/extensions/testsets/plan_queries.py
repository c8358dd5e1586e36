"""How many queries to label: from results of earlier runs, of this collection or of others, or from a variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.printable import join_names
from bakeoff.evaluation.measures import Measure
from bakeoff.results.result import Result
from bakeoff.statistics.averaging import Averaging
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.constants import NOISE
from bakeoff.statistics.design import fewest_queries, queries_for_anova, queries_for_width, residual_variance
from bakeoff.statistics.detectable import FEW_PILOTS, PILOT_OFF_BY, chance_to_show, queries_for_gap
from bakeoff.statistics.guarded import FAR, WORST
from bakeoff.statistics.looks import LookCost, cost_of_looks
from bakeoff.statistics.small_samples import FEWEST_UNLIKE
from bakeoff.statistics.tests import first_equal

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The goal and the number of queries it takes; None if no number would do.

    `have` is the number of existing queries, 0 for a new task.
    """

    measure: str
    variance: float
    contenders: int
    have: int
    width: float | None
    for_width: int | None
    difference: float | None
    power: float
    for_power: dict[str, tuple[int, int] | None]  # by pair, from and to
    for_anova: int | None
    widest: tuple[float, float] | None  # variance of the pair that differs most, and what a failure costs it
    comparisons: int = 1  # of a row with others that may be best
    in_clusters: bool = False  # queries share needs, and these are counted
    drawn: bool = False  # by traffic: the variance is that of the drawn queries all the same

    def still(self, needed: int) -> int:
        """How many are missing."""
        return max(0, needed - self.have)


@dataclass(frozen=True, slots=True)
class PlannedLooks:
    """The queries at each look, and their cost compared with a single look."""

    queries: list[int]
    cost: LookCost


def plan_looks(planned: QueryPlan, looks: int) -> PlannedLooks:
    """Equal steps, for the pair that varies most; where its spread is vague, for as much as it may be."""
    cost = None
    if planned.difference is not None and planned.widest is not None:
        variance, failure = planned.widest
        gap, power, comparisons = planned.difference, planned.power, planned.comparisons
        cost = cost_of_looks(looks, gap=gap, variance=variance, failure=failure, power=power, comparisons=comparisons)
    if cost is None:
        raise InputError("no number of queries would do", place="--looks", remedy="give a larger --difference")
    if cost.most < looks * FEWEST_UNLIKE:
        raise InputError(
            f"{cost.most} queries are too few for {looks} looks: none decides while fewer than {FEWEST_UNLIKE} differ",
            place="--looks",
            remedy=f"plan {max(1, cost.most // FEWEST_UNLIKE)} at most, or a smaller --difference",
        )
    return PlannedLooks([math.ceil(cost.most * (at + 1) / looks) for at in range(looks)], cost)


def _widest(results: Sequence[Result], measure: str, variance: float) -> tuple[float, float] | None:
    """The largest variance among the leader's pairs, and the cost of a failure there."""
    if not results:
        return 2 * variance, 1.0
    spreads = []
    for result in results:
        averaging, bounded = result.averaging(), Measure.parse(measure).bounded
        scores = [averaging.linear(result.values(label, measure)) for label in result.labels]
        leader = max(scores, key=lambda values: float(values.mean()))
        off = PILOT_OFF_BY[1] if len(leader) < FEW_PILOTS else 1.0
        spreads += [
            (off * float(d.var(ddof=1)), averaging.heaviest * float(values.mean()) if bounded else 0.0)
            for values in scores
            if (d := differences_of(leader, values)).any()
        ]
    return max(spreads, default=None)


def _count_comparisons(results: Sequence[Result], measure: str) -> int:
    """The number of rivals of a row that may be best; the maximum over results."""
    most, bounded = 1, Measure.parse(measure).bounded
    for result in results:
        table = np.stack([result.values(label, measure) for label in result.labels], axis=1)
        within = result.averaging().best_set(table, bounded=bounded).within
        most = max(most, int(within[sorted(set(first_equal(table)))].sum()) - 1)
    return most


def _by_pair(
    results: Sequence[Result], measure: str, difference: float, variance: float, power: float, comparisons: int
) -> dict[str, tuple[int, int] | None]:
    """Plans for each leader and every other distinct row, or for two rows with a given variance."""
    if not results:
        needed = fewest_queries(lambda n: chance_to_show(difference, n, 2 * variance, 1.0, comparisons) >= power)
        return {"two rows": None if needed is None else (needed, needed)}
    plans: dict[str, tuple[int, int] | None] = {}
    for result in results:
        averaging = result.averaging()
        heaviest = averaging.heaviest * Measure.parse(measure).bounded
        scores = {label: averaging.linear(result.values(label, measure)) for label in result.labels}
        table = np.stack(list(scores.values()), axis=1)
        names = [list(scores)[at] for at in sorted(set(first_equal(table)))]
        leader, *others = sorted(names, key=lambda label: -float(scores[label].mean()))
        for other in others:
            plans[f"{leader} and {other}"] = queries_for_gap(
                scores[leader], scores[other], gap=difference, heaviest=heaviest, comparisons=comparisons, power=power
            )
    return plans


def plan_queries(
    results: Sequence[Result] = (),
    measure: Measure | str | None = None,
    *,
    variance: float | None = None,
    contenders: int | None = None,
    width: float | None = None,
    difference: float | None = None,
    power: float = 0.8,
    new: bool = False,
) -> QueryPlan:
    """Plans from the pooled scores of results, or from a known variance. `new` starts from 0 queries.

    Rows that score alike count once, in the variance and in the number of contenders.
    """
    if width is None and difference is None:
        raise InputError("there is nothing to plan for", remedy="give --width 0.1, --difference 0.05, or both")
    if not results and variance is None:
        raise InputError("there is nothing to plan from", remedy="name a result, or give --variance")
    name = str(results[0].deciding(measure)) if results else str(measure or "any measure")
    averagings = [result.averaging() for result in results]
    whole = [
        np.stack([_counted(result.values(label, name), averaging) for label in result.labels], axis=1)
        for result, averaging in zip(results, averagings, strict=True)
    ]
    tables = [table[:, sorted(set(first_equal(table)))] for table in whole]  # one model in two stores varies once
    known = residual_variance(tables) if variance is None else variance
    if not np.isfinite(known) and np.isfinite(residual_variance(whole)):
        raise InputError("every contender scores alike, so nothing can be planned from it", remedy="give --variance")
    if not np.isfinite(known):
        raise InputError("no result has at least two contenders and two queries", remedy="give --variance")
    if known <= NOISE:
        problem = "contenders differ by the same amount on every query, so nothing can be planned from it"
        raise InputError(problem, remedy="give --variance")
    many = contenders or (tables[0].shape[1] if tables else 2)
    comparisons = _count_comparisons(results, name) if results else many - 1
    return QueryPlan(
        measure=name,
        variance=known,
        contenders=many,
        have=0 if new or len(tables) != 1 else len(tables[0]),
        width=width,
        for_width=None if width is None else queries_for_width(width, known, *_guard(tables, name)),
        difference=difference,
        power=power,
        for_power={} if difference is None else _by_pair(results, name, difference, known, power, comparisons),
        for_anova=None if difference is None or many < 3 else queries_for_anova(difference, known, many, power),
        widest=_widest(results, name, known),
        comparisons=comparisons,
        in_clusters=any(averaging.clusters for averaging in averagings),
        drawn=variance is None and any(averaging.weights is not None for averaging in averagings),
    )


def _guard(tables: Sequence[Values], measure: str) -> tuple[float, float]:
    """What an imagined failure costs, and how many of a pair's queries lie far from its median, on one side."""
    if not tables:
        return WORST, 0.0
    if not Measure.parse(measure).bounded:
        return 0.0, 0.0
    pairs = [table[:, a] - table[:, b] for table in tables for a, b in combinations(range(table.shape[1]), 2)]
    far = [float((np.abs(d - np.median(d)) > FAR).mean()) / 2 for d in pairs]
    return float(np.mean([table.mean() for table in tables])), float(np.mean(far)) if far else 0.0


def _counted(values: Values, averaging: Averaging) -> Values:
    """One value for each query, or for each cluster of queries that ask for the same thing."""
    return averaging.linear(values) if averaging.clusters else values


NO_NUMBER = "no number"


def terminal(plan: QueryPlan) -> RenderableType:
    """The largest number that is needed, the goals, and what they were planned from."""
    from rich.console import Group

    from bakeoff.report.grid import Figures, Grid, Prose

    table = Grid(["goal", Figures(_units(plan)), *([Figures("more")] if plan.have else [])])
    if plan.width is not None:
        table.add_row(f"95% interval {plan.width:g} wide", *_cells(plan, plan.for_width, plan.for_width))
    for pair, needed in plan.for_power.items():
        table.add_row(f"gap of {plan.difference:g}, {pair}", *_cells(plan, *(needed or (None, None))))
    if plan.difference is not None and plan.contenders > 2:
        goal = f"{plan.contenders} contenders not all alike (F test)"
        table.add_row(goal, *_cells(plan, plan.for_anova, plan.for_anova))
    have = f"; {plan.have:,} {_units(plan)} so far" if plan.have else ""
    effects = f"residual variance {plan.variance:.4f} after query and contender effects"
    basis = f"{plan.measure}: {effects}{have}. Significance level 5%."
    drawn = ["Every drawn query counts once here; means by traffic vary more or less."] if plan.drawn else []
    return Group(Prose(conclusion(plan), "bold"), table, *(Prose(line, "dim") for line in [basis, *drawn]))


def conclusion(plan: QueryPlan) -> str:
    """How many queries to label for the hardest goal."""
    if plan.difference is None:
        goal = f"a 95% interval {plan.width:g} wide"
        low = high = plan.for_width
    else:
        goal = f"every gap of {plan.difference:g} in {plan.power:.0%} of cases"
        ends = list(plan.for_power.values())
        known = [needed for needed in ends if needed is not None]
        whole = len(known) == len(ends) > 0
        low, high = (max(needed[end] for needed in known) if whole else None for end in (0, 1))
    if low is None or high is None:
        return f"No number of {_units(plan)} would show {goal}."
    if plan.still(high) == 0:
        return f"These {plan.have:,} {_units(plan)} should show {goal}."
    more = " more" if plan.have else ""
    return f"Label {_range(plan.still(low), plan.still(high))}{more} {_units(plan)} to see {goal}."


def _units(plan: QueryPlan) -> str:
    return "needs" if plan.in_clusters else "queries"


def _cells(plan: QueryPlan, low: int | None, high: int | None) -> list[str]:
    if low is None or high is None:
        return [NO_NUMBER, *([""] if plan.have else [])]
    return [_range(low, high), *([_range(plan.still(low), plan.still(high))] if plan.have else [])]


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def looks_sentences(planned: PlannedLooks) -> list[str]:
    """When to look, and what looks cost compared with a single one."""
    at, cost = join_names([str(count) for count in planned.queries]), planned.cost
    return [
        f"{len(planned.queries)} looks, at {at} queries. One look would take {cost.fixed}.",
        f"On average they take {cost.with_gap / cost.fixed:.0%} of that if there is such a gap, "
        f"{cost.without_gap / cost.fixed:.0%} if there is none.",
    ]
