"""The gate: tests whether contenders dropped by more than an allowance against a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.facts import Fact, fact
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.checks import match_labels
from bakeoff.results.compare import other_grades, why_not
from bakeoff.results.result import Result
from bakeoff.statistics.averaging import Averaging
from bakeoff.statistics.columns import differences_of, table_of
from bakeoff.statistics.compare import assess_drop, finds_drop
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.guarded import WORST, queries_for_equivalence
from bakeoff.statistics.tests import first_equal, holm_of_distinct

FORMAT = 2
MAX_DROP = 0.02  # of the displayed figure
STEPS = 60

Mode = Literal["drop", "non-inferior", "exact"]
Undecided = Literal["warn", "fail", "pass"]
Outcome = Literal["passed", "failed", "undecided"]


class Worst(msgspec.Struct, frozen=True, kw_only=True):
    """The query with the largest drop."""

    query: str
    text: str
    change: float


class ContenderCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One contender: its scores before and now, and the outcome.

    The true drop is between `least` and `most`, each with the gate's confidence; None if nothing is known or tested.
    `p` is one-sided against the allowed drop, with Holm's correction over distinct contenders. `alike` is the first
    contender with the same scores then and now.
    """

    contender: str
    alike: str = ""
    baseline: str
    before: float
    after: float
    outcome: Outcome
    differing: int
    p: float | None = None
    least: float | None = None
    most: float | None = None
    worst: Worst | None = None

    @property
    def drop(self) -> float:
        """The drop of the displayed figures."""
        return self.before - self.after


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """All checks; `refused` is the reason if there are none.

    `finds` is the drop that this gate detects with 80% power. `needed` is the number of queries that non-inferiority
    takes. `regraded` counts queries whose baseline was rescored with today's grades.
    """

    format: int = FORMAT
    result: str
    baseline: str
    task: str
    measure: str
    max_drop: float
    mode: Mode = "drop"
    undecided: Undecided = "warn"
    queries: int = 0
    clusters: int = 0  # clusters of queries, which count once
    regraded: int = 0
    finds: float | None = None
    needed: int | None = None
    checks: list[ContenderCheck] = []
    new: list[str] = []  # contenders without a baseline
    refused: list[Fact] = []

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all checks."""
        outcomes = {check.outcome for check in self.checks}
        return "failed" if "failed" in outcomes else "undecided" if "undecided" in outcomes else "passed"

    def fails(self, check: ContenderCheck) -> bool:
        """Whether a check fails the gate. Non-inferiority must be shown; a drop must not."""
        strict = self.undecided == "fail" or self.mode == "non-inferior"
        return check.outcome == "failed" or (check.outcome == "undecided" and strict)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 can't be compared."""
        return 2 if self.refused else int(any(map(self.fails, self.checks)))


def gate(
    result: Result,
    baseline: Result,
    measure: Measure | str | None = None,
    max_drop: float = MAX_DROP,
    contenders: Sequence[str] = (),
    *,
    alpha: float = ALPHA,
    mode: Mode = "drop",
    undecided: Undecided = "warn",
) -> Gate:
    """Fails if a drop beyond `max_drop` is shown; `non-inferior` passes only if such a drop is ruled out."""
    measure = baseline.deciding(measure)
    chosen = [pair for text in contenders for pair in _pairs(text, result, baseline)]
    chosen = list(dict.fromkeys(chosen)) or [(_now(label, result, baseline), label) for label in baseline.labels]
    matched = {new for new, _ in chosen}
    verdict = Gate(
        result=result.name,
        baseline=baseline.name,
        task=result.summary.task.name,
        measure=str(measure),
        max_drop=max_drop,
        mode=mode,
        undecided=undecided,
        queries=len(result.queries),
        clusters=result.averaging().clusters,
        regraded=len(other_grades(result, baseline)),
        new=[] if contenders else [label for label in result.labels if label not in matched],
    )
    sides, refused = _scores(result, baseline, chosen, measure)
    if refused:
        return msgspec.structs.replace(verdict, refused=refused)
    averaging = result.averaging()
    checks = _checks(sides, chosen, measure, averaging, max_drop, alpha, mode, result.queries)
    found = _finds(sides, averaging, max_drop, alpha) if measure.bounded and mode != "exact" else []
    spread = max((float(averaging.linear(new - old).std(ddof=1)) for new, old in sides if len(new) > 1), default=0.0)
    return msgspec.structs.replace(
        verdict,
        checks=checks,
        finds=max((drop for drop in found if drop is not None), default=None) if None not in found else None,
        needed=queries_for_equivalence(max_drop, spread) if mode == "non-inferior" and max_drop > 0 else None,
    )


def _scores(
    result: Result, baseline: Result, chosen: Sequence[tuple[str, str]], measure: Measure
) -> tuple[list[tuple[Values, Values]], list[Fact]]:
    """The scores of both sides of every check, or the reason why there are none."""
    regraded = bool(other_grades(result, baseline)) or result.summary.task.rel != baseline.summary.task.rel
    refused = why_not(result, baseline, grades=False)
    if not refused and not chosen:
        refused.append(fact("no_contender_ran"))
    sides = []
    for new, old in chosen if not refused else ():
        try:
            before = baseline.rescore(old, measure, result) if regraded else baseline.values(old, measure)
            sides.append((result.values(new, measure), before))
        except InputError as error:
            refused.append(fact("no_scores", file=str(error.file or ""), problem=error.problem, remedy=error.remedy))
    return sides, refused


def _checks(
    sides: Sequence[tuple[Values, Values]],
    chosen: Sequence[tuple[str, str]],
    measure: Measure,
    averaging: Averaging,
    max_drop: float,
    alpha: float,
    mode: Mode,
    texts: dict[str, str],
) -> list[ContenderCheck]:
    differences = [differences_of(new, old) for new, old in sides]
    imagined = -WORST * averaging.heaviest if measure.bounded else None
    befores = [averaging.mean(old) for _, old in sides]
    drops = [
        assess_drop(averaging.linear(d), _allowance(measure, before, max_drop), alpha=alpha, imagined=imagined)
        for d, before in zip(differences, befores, strict=True)
    ]
    asked = [d.tobytes() if d.any() else None for d in differences]
    adjusted = holm_of_distinct([drop.p for drop in drops], asked).tolist()
    checks, firsts = [], first_equal(table_of([np.concatenate(side) for side in sides]))
    for (new, old), first, (now, _), d, before, drop, p in zip(
        chosen, firsts, sides, differences, befores, drops, adjusted, strict=True
    ):
        figures = measure.figure(before), measure.figure(averaging.mean(now))
        most = figures[0] - measure.figure(before - drop.most)
        seen = figures[0] - measure.figure(before - drop.most_seen)
        kept = (seen if mode == "drop" else most) < max_drop - NOISE or (not d.any() and mode == "drop")
        outcome: Outcome = "failed" if p <= alpha else "passed" if kept else "undecided"
        if mode == "exact":
            outcome = "failed" if figures[0] - figures[1] > max_drop + NOISE else "passed"
        tested = mode != "exact" and np.isfinite([drop.least, drop.most]).all()
        at = int(np.argmin(d))
        query = list(texts)[at]
        checks.append(
            ContenderCheck(
                contender=new,
                alike=chosen[first][0],
                baseline=old,
                before=figures[0],
                after=figures[1],
                outcome=outcome,
                differing=int(np.count_nonzero(d)),
                p=None if mode == "exact" else p,
                least=figures[0] - measure.figure(before - drop.least) if tested else None,
                most=most if tested else None,
                worst=Worst(query=query, text=texts[query], change=float(d[at])) if d[at] < 0 else None,
            )
        )
    return checks


def _finds(
    sides: Sequence[tuple[Values, Values]], averaging: Averaging, max_drop: float, alpha: float
) -> list[float | None]:
    """The detectable drop of each contender, corrected for the number of changed ones."""
    changes = [differences_of(new, old) for new, old in sides]
    distinct = len({d.tobytes() for d in changes if d.any()})
    return [
        finds_drop(
            averaging.linear(d),
            np.clip(averaging.linear(old), 0, None),
            max_drop,
            alpha=alpha / (distinct + (not d.any())),
        )
        for d, (_, old) in zip(changes, sides, strict=True)
    ]


def _allowance(measure: Measure, before: float, max_drop: float) -> float:
    """The allowance on the scale of the values: logarithms for a geometric mean."""
    if measure.bounded:
        return max_drop
    low, high = 0.0, 1e3
    for _ in range(STEPS):
        middle = (low + high) / 2
        within = measure.figure(before) - measure.figure(before - middle) <= max_drop
        low, high = (middle, high) if within else (low, middle)
    return low


def _now(label: str, result: Result, baseline: Result) -> str:
    """Today's label of a baseline row: its own, or the line-up's label if that is one row's."""
    if label in result.labels:
        return label
    name = baseline.given_names.get(label)
    then = [row for row, given in baseline.given_names.items() if given == name]
    today = [row for row, given in result.given_names.items() if given == name]
    return today[0] if name and len(then) == len(today) == 1 else label


def _pairs(text: str, result: Result, baseline: Result) -> list[tuple[str, str]]:
    """Parse `--contender`: `label=baseline_label` for a renamed row, or any other form the option accepts."""
    new, equals, old = text.partition("=")
    if equals or not any(text in known for known in baseline.names.values()):
        return [(new, old or new)]  # what is not there is refused by its label
    return [(_now(label, result, baseline), label) for label in match_labels([text], baseline.names)]
