"""A result against a baseline: has any contender dropped by more than is allowed, and is the drop real?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.figures import PairedDifference
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.labels import called
from bakeoff.results.compare import why_not
from bakeoff.results.result import Result
from bakeoff.statistics.averaging import Averaging
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.compare import compare_chosen
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.holm_power import HolmPower
from bakeoff.statistics.power import more_queries
from bakeoff.statistics.tests import hypothesis_of

MAX_DROP = 0.02  # of the figure that is shown, where nothing else is said


class ContenderCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One contender: where it was, where it is, and what the gate says to it."""

    contender: str
    before: float
    after: float
    pair: PairedDifference
    failed: bool
    reason: str


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """All checks; `refused` says why there are none."""

    result: str
    baseline: str
    task: str
    measure: str
    max_drop: float
    checks: list[ContenderCheck] = []
    notes: list[str] = []
    refused: list[str] = []

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 can't be compared."""
        return 2 if self.refused else int(any(check.failed for check in self.checks))


def gate(
    result: Result,
    baseline: Result,
    measure: Measure | str | None = None,
    max_drop: float = MAX_DROP,
    contenders: Sequence[str] = (),
    *,
    alpha: float = ALPHA,
) -> Gate:
    """Fails where a drop is larger than `max_drop` and significant (two-sided, Holm over the distinct differences)."""
    measure = baseline.deciding(measure)
    chosen = [pair for text in contenders for pair in _pairs(text, baseline)]
    chosen = list(dict.fromkeys(chosen)) or [(label, label) for label in baseline.labels]
    verdict = Gate(
        result=result.name,
        baseline=baseline.name,
        task=result.summary.task.name,
        measure=str(measure),
        max_drop=max_drop,
        notes=[f"{label} is new: it has no baseline" for label in result.labels if label not in baseline.labels]
        if not contenders
        else [],
    )
    scores, refused = _scores(result, baseline, chosen, measure)
    if refused:
        return msgspec.structs.replace(verdict, refused=refused)
    checks = _checks(scores, chosen, measure, result.averaging(), max_drop, alpha)
    return msgspec.structs.replace(verdict, checks=checks)


def _scores(
    result: Result, baseline: Result, chosen: Sequence[tuple[str, str]], measure: Measure
) -> tuple[dict[str, Values], list[str]]:
    """The scores of both sides of every check, and why there can be none."""
    refused = [f"{baseline.name}: {reason}" for reason in why_not(result, baseline)]
    if not refused and not chosen:
        refused.append(f"{baseline.name}: no contender ran")
    scores: dict[str, Values] = {}
    for new, old in chosen if not refused else ():
        try:
            scores[_after(new)] = result.values(new, measure)
            scores[_before(old)] = baseline.values(old, measure)
        except InputError as error:
            known = f" ({error.remedy})" if error.remedy else ""
            refused.append(
                f"{error}{known}; the baseline is {baseline.name}: --contender NAME checks one alone, "
                "--contender NEW=OLD one that the baseline calls otherwise, --baseline names another result"
            )
    return scores, refused


def _after(label: str) -> str:
    return f"{label} after"


def _before(label: str) -> str:
    return f"{label} before"


def _checks(
    scores: Mapping[str, Values],
    chosen: Sequence[tuple[str, str]],
    measure: Measure,
    averaging: Averaging,
    max_drop: float,
    alpha: float,
) -> list[ContenderCheck]:
    """One check for each pair; where a drop is not shown, how many queries would show it."""
    sides = [(_after(new), _before(old)) for new, old in chosen]
    pairs = compare_chosen(scores, sides, partial(averaging.pairs, bounded=measure.bounded))
    differences = np.stack([differences_of(scores[pair.a], scores[pair.b]) for pair in pairs], axis=1)
    asked = [hypothesis_of(column) for column in differences.T]
    tested = list(dict.fromkeys(hypothesis for hypothesis in asked if hypothesis is not None))
    columns = [averaging.linear(differences[:, asked.index(hypothesis)]) for hypothesis in tested]
    power = HolmPower(np.stack(columns, axis=1), alpha=alpha) if columns else None
    checks = []
    for at, ((new, _), pair) in enumerate(zip(chosen, pairs, strict=True)):
        before, after = (measure.figure(averaging.mean(scores[side])) for side in (pair.b, pair.a))
        failed, reason = _judged(before - after, pair, differences[:, at], max_drop, alpha)
        more, hypothesis = None, asked[at]
        if power is not None and hypothesis is not None and not failed and before - after > max_drop + NOISE:
            more = power.more_queries(tested.index(hypothesis))
        if more:
            reason += f"; {more_queries(more)} would settle it in 4 of 5 cases"
        checks.append(
            ContenderCheck(contender=new, before=before, after=after, pair=pair, failed=failed, reason=reason)
        )
    return checks


def _judged(
    drop: float, pair: PairedDifference, differences: Values, max_drop: float, alpha: float
) -> tuple[bool, str]:
    """The drop is of the figures that are shown, the test is of the values that they are made from."""
    if drop <= max_drop + NOISE:
        what = "unchanged" if not differences.any() else "no drop" if drop <= NOISE else f"a drop of {drop:.4f}"
        return False, f"{what}, {max_drop:g} is allowed"
    if pair.p_holm <= alpha:
        return (
            True,
            f"a drop of {drop:.4f}, {max_drop:g} is allowed, and it is significant (p (Holm) = {pair.p_holm:.2g})",
        )
    return False, f"a drop of {drop:.4f}, {max_drop:g} is allowed, but not significant (p (Holm) = {pair.p_holm:.2g})"


def _pairs(text: str, baseline: Result) -> list[tuple[str, str]]:
    """`label=label in the baseline` where it was called otherwise, or whatever else `--contender` takes."""
    new, equals, old = text.partition("=")
    if equals or not any(text in known for known in baseline.names.values()):
        return [(new, old or new)]  # what is not there is refused by its label
    return [(label, label) for label in called([text], baseline.names)]
