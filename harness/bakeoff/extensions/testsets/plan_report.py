"""What `bakeoff plan-queries` prints: how many queries to label, then one line for each goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff.core.printable import join_names
from bakeoff.extensions.testsets.plan_queries import PlannedLooks, QueryPlan

if TYPE_CHECKING:
    from rich.console import RenderableType

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
