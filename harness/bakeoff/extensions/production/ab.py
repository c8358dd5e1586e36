"""Two arms of a log: a metric per session, their difference with users as clusters, and whether the split is sound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bakeoff_providers.errors import InputError

from bakeoff.core.whole import whole_number
from bakeoff.extensions.production.clusters import Clusters
from bakeoff.results.check import Check, Gauge
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.tasks.search_log import Impression, LogColumns, read_log, timestamp


def ratio(n: float, planned: float, alpha: float) -> float:
    """The r of the formula that makes the interval tightest when n is as planned."""
    return _tightest(alpha) * n / planned


@cache
def _tightest(alpha: float) -> float:
    """The r with the least width: there, ln((1 + r)/α²) = r."""
    from scipy.special import lambertw

    return float(-lambertw(-(alpha**2) / math.e, -1).real) - 1


def width(r: float, alpha: float) -> float:
    """How many standard errors the interval reaches to either side."""
    return math.sqrt((1 + 1 / r) * math.log((1 + r) / alpha**2))


def p_value(z: float, r: float) -> float:
    """The smallest level at which the interval leaves out 0 when the estimate is z standard errors from it."""
    return min(1.0, math.sqrt(1 + r) * math.exp(-(z**2) * r / (2 * (1 + r))))


def split_p(users: Sequence[int], split: Sequence[float]) -> float:
    """p that users came in the planned proportions, valid at every look.

    The inverse of a likelihood ratio: of proportions drawn evenly from all there are, against the planned ones. Where
    these hold it is a martingale, which ever exceeds 1/p with a probability of p at most (Ville's inequality).
    """
    evidence = math.lgamma(len(users)) - math.lgamma(sum(users) + len(users))
    evidence += sum(
        math.lgamma(n + 1) - n * math.log(share / sum(split)) for n, share in zip(users, split, strict=True)
    )
    return math.exp(min(0.0, -evidence))


NEEDED = ("query", "user", "session", "shown", "clicked", "arm")
MISMATCH = 0.001  # a split this unlikely is a fault of the experiment, not chance
FEWEST = 50  # users per arm before a look counts: standard errors of fewer can't be trusted
POWER = 0.8
METRICS = ("click@K", "rr", "success")

Session = Sequence[Impression]


@dataclass(frozen=True, slots=True)
class Difference:
    """Treatment minus control, its interval and p, and the smallest true difference that such a log shows in 80%."""

    value: float
    low: float
    high: float
    p: float
    detectable: float


def metric_of(name: str) -> Callable[[Session], float]:
    """A value per session by its spelling: click@10, rr (mean reciprocal rank of first clicks), success."""
    kind, _, cut = name.partition("@")
    if kind == "click" and (k := whole_number(cut)):
        return lambda session: float(any(set(one.shown[:k]) & set(one.clicked) for one in session))
    if name == "rr":
        return lambda session: sum(map(_first_click, session)) / len(session)
    if name == "success":  # the last query of a session is the one that ended the search, or was given up
        return lambda session: float(bool(session[-1].clicked))
    raise InputError(
        f"unknown metric {name!r}", place="--metric", remedy=f"known: {', '.join(METRICS)}, with a number for K"
    )


def _first_click(impression: Impression) -> float:
    ranks = [rank for rank, document in enumerate(impression.shown, start=1) if document in impression.clicked]
    return 1 / ranks[0] if ranks else 0.0


def mismatch(users: Sequence[int], split: Sequence[float]) -> float:
    """p of a chi-squared test that users came in the planned proportions: valid for one look, at a planned time."""
    from scipy.special import chdtrc

    expected = [sum(users) * share / sum(split) for share in split]
    return float(chdtrc(len(users) - 1, sum((n - e) ** 2 / e for n, e in zip(users, expected, strict=True))))


def difference(control: Clusters, treatment: Clusters, alpha: float = ALPHA) -> Difference:
    """Welch's interval over users: valid for one look, at a time that was planned; of too few it says nothing."""
    from scipy.special import stdtr, stdtrit

    value = treatment.mean - control.mean
    if min(len(control), len(treatment)) < FEWEST:
        return _unknown(value)
    variances = [control.standard_error**2, treatment.standard_error**2]
    error = math.sqrt(sum(variances))
    if error <= NOISE:
        return _without_spread(control, treatment, alpha)
    freedom = sum(variances) ** 2 / sum(
        variance**2 / (len(arm) - 1) for variance, arm in zip(variances, (control, treatment), strict=True)
    )
    bar = float(stdtrit(freedom, 1 - alpha / 2))
    p = float(2 * stdtr(freedom, -abs(value) / error))
    return Difference(
        value, value - bar * error, value + bar * error, p, (bar + float(stdtrit(freedom, POWER))) * error
    )


def always_valid(control: Clusters, treatment: Clusters, planned: int, alpha: float = ALPHA) -> Difference:
    """An interval that holds at every look; while there are too few users, or none differ, it says nothing."""
    from scipy.special import ndtri

    value = treatment.mean - control.mean
    error = math.hypot(control.standard_error, treatment.standard_error)
    if min(len(control), len(treatment)) < FEWEST or error <= NOISE:
        return _unknown(value)
    r = ratio(len(control) + len(treatment), planned, alpha)
    half = width(r, alpha) * error
    p = p_value(abs(value) / error, r)
    return Difference(value, value - half, value + half, p, half + float(ndtri(POWER)) * error)


def _unknown(value: float) -> Difference:
    """A difference of which nothing else is known yet."""
    return Difference(value, -math.inf, math.inf, 1.0, math.inf)


def _without_spread(control: Clusters, treatment: Clusters, alpha: float) -> Difference:
    """All users of an arm are alike: p by exchanging users between the arms, the interval from their numbers alone.

    Of n who are alike, others are at most a share of 1 − (alpha/4)^(1/n); metrics are from 0 to 1.
    """
    old, new = control.mean, treatment.mean
    value, others = new - old, [1 - (alpha / 4) ** (1 / len(arm)) for arm in (control, treatment)]
    low = value - others[0] * (1 - old) - others[1] * new
    high = value + others[0] * old + others[1] * (1 - new)
    ways = math.comb(len(control) + len(treatment), len(control))
    return Difference(value, low, high, 1.0 if abs(value) <= NOISE else min(1.0, 2 / ways), math.inf)


def read_arms(path: Path, columns: LogColumns, control: str, treatment: str) -> tuple[list[Impression], int]:
    """The rows of the two arms, and how many users were left out since they met both."""
    impressions = read_log(path, columns, NEEDED)
    arms = sorted({impression.arm for impression in impressions})
    for arm in (control, treatment):
        if arm not in arms:
            raise InputError(f"no row has the arm {arm!r}", file=path, remedy=f"the log has {', '.join(arms[:10])}")
    if control == treatment:
        raise InputError("both arms are the same", place="--treatment", remedy="name two arms")
    kept = [impression for impression in impressions if impression.arm in (control, treatment)]
    met: dict[str, set[str]] = {}
    for impression in kept:
        met.setdefault(impression.user, set()).add(impression.arm)
    mixed = {user for user, seen in met.items() if len(seen) > 1}
    return [impression for impression in kept if impression.user not in mixed], len(mixed)


def arm_of(impressions: Sequence[Impression], arm: str, metric: Callable[[Session], float], path: Path) -> Clusters:
    """One value per session of one arm, by user; the rows of a session in the order of time, where the log has it."""
    sessions: dict[tuple[str, str], list[Impression]] = {}
    for impression in impressions:
        if impression.arm == arm:
            sessions.setdefault((impression.user, impression.session), []).append(impression)
    for session in sessions.values():
        if len(session) > 1 and all(one.time for one in session):
            session.sort(key=lambda one: timestamp(one.time, path))
    return Clusters.of([user for user, _ in sessions], [metric(session) for session in sessions.values()])


def compare_arms(
    path: Path,
    columns: LogColumns,
    *,
    control: str,
    treatment: str,
    metric: str = "click@10",
    split: Sequence[float] = (1, 1),
    planned: int | None = None,
    alpha: float = ALPHA,
) -> Check:
    """The whole check; `planned` users make it one of many looks."""
    value_of = metric_of(metric)
    impressions, mixed = read_arms(path, columns, control, treatment)
    arms = arm_of(impressions, control, value_of, path), arm_of(impressions, treatment, value_of, path)
    for arm, clusters in zip((control, treatment), arms, strict=True):
        if len(clusters) < 2:
            raise InputError(
                f"arm {arm!r} has {len(clusters)} users of its own", file=path, remedy="collect more first"
            )
    p_split = (mismatch if planned is None else split_p)([len(arm) for arm in arms], split)
    gap = difference(*arms, alpha) if planned is None else always_valid(*arms, planned, alpha)
    sentences = _sentences(gap, arms, (control, treatment), metric, mixed, p_split, planned, alpha)
    worse = p_split < MISMATCH or gap.high < 0
    sessions = [int(arm.rows.sum()) for arm in arms]
    figures = {
        "metric": metric, "control": control, "treatment": treatment, "users": [len(arm) for arm in arms],
        "sessions": sessions, "means": [arm.mean for arm in arms], "difference": gap.value, "low": gap.low,
        "high": gap.high, "p": gap.p, "detectable": gap.detectable, "split_p": p_split,
        "users_in_both_arms": mixed, "sequential": planned is not None,
    }  # fmt: skip
    labels = {"metric": metric, "treatment": treatment}
    gauges = [
        Gauge("ab_difference", "Mean of the treatment minus mean of the control", gap.value, labels),
        Gauge("ab_difference_low", "Lower end of the interval of the difference", gap.low, labels),
        Gauge("ab_difference_high", "Upper end of the interval of the difference", gap.high, labels),
        Gauge("ab_split_p", "p of the test that users came in the planned proportions", p_split, labels),
    ]
    return Check(command="ab", worse=worse, sentences=sentences, figures=figures, gauges=gauges)


def _sentences(
    gap: Difference,
    arms: Sequence[Clusters],
    names: tuple[str, str],
    metric: str,
    mixed: int,
    p_split: float,
    planned: int | None,
    alpha: float,
) -> list[str]:
    said = [
        f"{name}: {metric} {arm.mean:.4f} over {int(arm.rows.sum())} sessions of {len(arm)} users."
        for name, arm in zip(names, arms, strict=True)
    ]
    if mixed:
        said.append(f"{mixed} users met both arms and are left out: check how users are assigned.")
    if p_split < MISMATCH:
        said.append(
            f"The users did not come in the planned proportions (p = {p_split:.1g}): the experiment lost or counted "
            "some twice, and the difference below can't be trusted."
        )
    if math.isinf(gap.high):
        few = min(len(arm) for arm in arms) < FEWEST
        needed = f"each arm needs {FEWEST} users at least" if few else "no two users of an arm differ"
        return [*said, f"Too early to look: {needed}."]
    how = "valid at every look" if planned is not None else "valid for one look, at a planned time"
    said.append(
        f"{names[1]} minus {names[0]}: {gap.value:+.4f} ({1 - alpha:.0%} interval {gap.low:+.4f} to "
        f"{gap.high:+.4f}, users as clusters, {how}; p = {gap.p:.2g})."
    )
    if gap.low > 0 or gap.high < 0:
        said.append(f"{names[1]} is {'better' if gap.low > 0 else 'worse'}.")
    elif math.isinf(gap.detectable):
        said.append("No difference is shown: no two users of an arm differ.")
    else:
        said.append(f"No difference is shown; one of {gap.detectable:.4f} would be, in 80% of such logs.")
    return said
