"""Live traffic: two arms of a log, with users as clusters and a check of the split, and clicks on interleaved lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.printable import pluralise, whole_number
from bakeoff.extensions.production.search_log import Impression, LogColumns, read_log, timestamp
from bakeoff.results.check import Check, Gauge
from bakeoff.statistics.compare import wins_ties_losses
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.design import fewest_queries, queries_needed
from bakeoff.statistics.looks import mixture_bar, mixture_p


@dataclass(frozen=True, slots=True)
class Clusters:
    """Each user's sum of values and number of rows."""

    sums: Values
    rows: Values

    @classmethod
    def of(cls, users: Sequence[str], values: Sequence[float]) -> Clusters:
        """One cluster per user, in the order of their first row."""
        numbers: dict[str, int] = {}
        place = np.array([numbers.setdefault(user, len(numbers)) for user in users], dtype=np.int64)
        size = len(numbers)
        return cls(
            np.bincount(place, np.asarray(values, dtype=np.float64), size).astype(np.float64),
            np.bincount(place, minlength=size).astype(np.float64),
        )

    def __len__(self) -> int:
        return len(self.sums)

    @property
    def mean(self) -> float:
        """Over all rows: a user who came more often counts more often."""
        return float(self.sums.sum() / self.rows.sum())

    @property
    def standard_error(self) -> float:
        """The jackknife over users, which heavy ones do not make too small; infinite for a single one."""
        n = len(self)
        if n < 2:
            return math.inf
        rest = self.rows.sum() - self.rows
        without_each = (self.sums.sum() - self.sums) / rest
        return math.sqrt(float(((without_each - self.mean) ** 2).sum()) * (n - 1) / n)

    @property
    def effective(self) -> float:
        """How many users of equal weight are as good: a few who come very often count for all the others."""
        return float(self.rows.sum() ** 2 / (self.rows**2).sum())

    @property
    def heaviest(self) -> float:
        """The largest share of the rows that one user has."""
        return float(self.rows.max() / self.rows.sum())


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
HEAVY = 0.05  # of an arm's sessions: a user with more of them is named
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
    error, freedom = _error(control, treatment)
    if error <= NOISE:
        return _without_spread(control, treatment, alpha)
    bar = float(stdtrit(freedom, 1 - alpha / 2))
    p = float(2 * stdtr(freedom, -abs(value) / error))
    return Difference(
        value, value - bar * error, value + bar * error, p, (bar + float(stdtrit(freedom, POWER))) * error
    )


def _error(control: Clusters, treatment: Clusters) -> tuple[float, float]:
    """The standard error of the difference and its degrees of freedom: Welch's, of users who count alike."""
    variances = [arm.standard_error**2 for arm in (control, treatment)]
    if not sum(variances):
        return 0.0, math.inf
    freedom = sum(variances) ** 2 / sum(
        variance**2 / max(arm.effective - 1, 1) for variance, arm in zip(variances, (control, treatment), strict=True)
    )
    return math.sqrt(sum(variances)), freedom


def always_valid(control: Clusters, treatment: Clusters, planned: int, alpha: float = ALPHA) -> Difference:
    """An interval that holds at every look; while there are too few users, or none differ, it says nothing."""
    from scipy.special import ndtri, stdtrit

    value = treatment.mean - control.mean
    error, freedom = _error(control, treatment)
    if min(len(control), len(treatment)) < FEWEST or error <= NOISE:
        return _unknown(value)
    error *= float(stdtrit(freedom, 1 - alpha / 2) / ndtri(1 - alpha / 2))
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
        "users_in_both_arms": mixed, "heaviest_user": [arm.heaviest for arm in arms],
        "effective_users": [arm.effective for arm in arms], "sequential": planned is not None,
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
    for name, arm in zip(names, arms, strict=True):
        if arm.heaviest > HEAVY:
            said.append(
                f"{name}: one user has {arm.heaviest:.0%} of the sessions, so {len(arm)} users count as "
                f"{arm.effective:.0f}. Is it a bot or a shared account?"
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
        if planned is not None:
            said.append("An experiment that stops as soon as this is shown overstates the difference.")
    elif math.isinf(gap.detectable):
        said.append("No difference is shown: no two users of an arm differ.")
    else:
        said.append(f"No significant difference. A log like this detects one of {gap.detectable:.4f} 80% of the time.")
    return said


NEEDED_TEAMS = ("query", "user", "shown", "clicked", "team")


def read_interleaved(path: Path, columns: LogColumns) -> list[Impression]:
    """A log with the team of every place, as `interleave` gave it."""
    impressions = read_log(path, columns, NEEDED_TEAMS)
    for number, impression in enumerate(impressions, start=1):
        wrong = set(impression.team) - {"a", "b"}
        if wrong or len(impression.team) != len(impression.shown):
            problem = (
                f"team {min(wrong)!r}" if wrong else f"{len(impression.team)} teams for {len(impression.shown)} places"
            )
            raise InputError(problem, file=path, place=f"row {number}", remedy="log what bakeoff.interleave returned")
    return impressions


def credit(impression: Impression) -> int:
    """Clicks on b's documents minus clicks on a's."""
    owner = dict(zip(impression.shown, impression.team, strict=True))
    return sum(1 if owner[document] == "b" else -1 for document in impression.clicked)


def sign_test(wins: int, losses: int) -> float:
    """Exact and two-sided: how often fair coins would be at least this uneven."""
    from scipy.special import bdtr

    n = wins + losses
    return min(1.0, 2 * float(bdtr(min(wins, losses), n, 0.5))) if n else 1.0


FIRST_VOTES = 20  # that fix the mixture: its bound is tightest at about ten times as many


def any_look_p(ahead: int, behind: int) -> float:
    """p of no preference, at every look at a growing log. Votes are signs, so their squares sum to their number."""
    votes = np.array([float(ahead + behind)])
    studentised = abs(ahead - behind) / np.sqrt(np.maximum(votes, 1.0))
    return float(mixture_p(studentised, votes, np.array([float(FIRST_VOTES)]))[0])


def any_look_preference(ahead: int, behind: int, alpha: float = ALPHA) -> tuple[float, float, float]:
    """The share for b less the share for a; its interval holds at every look, and leaves out 0 where p ≤ alpha."""
    votes = ahead + behind
    if not votes:
        return 0.0, -1.0, 1.0
    half = float(mixture_bar(np.array([float(votes)]), np.array([float(FIRST_VOTES)]), alpha)[0]) / math.sqrt(votes)
    value = (ahead - behind) / votes
    return value, max(-1.0, value - half), min(1.0, value + half)


def analyse(impressions: Sequence[Impression], *, alpha: float = ALPHA, once: bool = False) -> Check:
    """Every user has one vote, for the side that won more of their queries: one user's clicks resemble each other.

    Test, interval and direction are of the same votes, so that they can't contradict each other. They hold however
    often a growing log is looked at; `once` says that this is the only look, which shows more.
    """
    signs = np.sign([credit(impression) for impression in impressions]).astype(np.float64)
    users = Clusters.of([impression.user for impression in impressions], signs.tolist())
    wins, ties, losses = wins_ties_losses(signs)
    ahead, even, behind = wins_ties_losses(users.sums)
    p = sign_test(ahead, behind) if once else any_look_p(ahead, behind)
    preference, low, high = (preference_of if once else any_look_preference)(ahead, behind, alpha)
    more = _more_users(ahead, even, behind, alpha, once=once)
    better = "b" if ahead > behind else "a"
    decided = p <= alpha
    sentences = [
        f"{len(impressions)} queries of {len(users)} users: b won {wins}, {ties} tied, a won {losses}.",
        f"b won more queries than a for {pluralise(ahead, 'user')}, a more than b for {behind}, as many for {even} "
        f"(p = {p:.2g}, {'exact sign test, for one look' if once else 'valid at every look'}).",
        f"Preference for b: {preference:+.4f} ({100 * (1 - alpha):g}% interval {low:+.4f} to {high:+.4f}): of users "
        "with more queries for one side, the share for b less the share for a.",
    ]
    if decided:
        sentences.append(f"People prefer {better}.")
    elif more:
        queries = round(more * len(impressions) / len(users))
        sentences.append(
            f"No preference is shown yet. If it is real, about {more} more users ({queries} queries) would show it."
        )
    else:
        sentences.append("No preference is shown yet.")
    figures = {
        "queries": len(impressions), "users": len(users), "wins": wins, "ties": ties, "losses": losses,
        "users_for_b": ahead, "users_for_a": behind, "preference": preference, "low": low, "high": high, "p": p,
        "decided": decided, "better": better if decided else None, "more_users_needed": more, "once": once,
    }  # fmt: skip
    about = "Of users with more queries won by one side, the share for b minus the share for a"
    gauges = [
        Gauge("interleave_preference", about, preference),
        Gauge("interleave_p", "p of no preference over users", p),
        Gauge("interleave_queries", "Interleaved queries in the log", float(len(impressions))),
    ]
    return Check(
        command="interleave", worse=decided and better == "a", sentences=sentences, figures=figures, gauges=gauges
    )


def preference_of(ahead: int, behind: int, alpha: float = ALPHA) -> tuple[float, float, float]:
    """The share for b less the share for a, with Clopper and Pearson's interval: it leaves out 0 where p < alpha."""
    from scipy.special import betaincinv

    if not ahead + behind:
        return 0.0, -1.0, 1.0
    low = float(betaincinv(ahead, behind + 1, alpha / 2)) if ahead else 0.0
    high = float(betaincinv(ahead + 1, behind, 1 - alpha / 2)) if behind else 1.0
    return (ahead - behind) / (ahead + behind), 2 * low - 1, 2 * high - 1


def _more_users(ahead: int, even: int, behind: int, alpha: float, *, once: bool) -> int | None:
    """How many more would show this preference in 4 of 5 cases, if as many of them have none; None where none would."""
    votes = np.repeat([1.0, -1.0], [ahead, behind])
    if not len(votes):
        return None
    needed: int | None
    if not once:
        needed = _votes_at_any_look(abs(ahead - behind) / len(votes), alpha)
    elif not ahead or not behind:  # all for one side, so all that come: n of n have p = 2 / 2ⁿ
        needed = math.ceil(1 - math.log2(alpha))
    else:
        needed = queries_needed(float(votes.mean()), float(votes.std(ddof=1)), alpha=alpha)
    return None if needed is None else max(0, math.ceil((needed - len(votes)) * (1 + even / len(votes))))


def _votes_at_any_look(preference: float, alpha: float) -> int | None:
    """How many votes show this preference in 4 of 5 cases by the bound that holds at every look."""
    from scipy.special import ndtri

    first, spread = np.array([float(FIRST_VOTES)]), math.sqrt(1 - preference**2)

    def enough(votes: int) -> bool:
        bar = float(mixture_bar(np.array([float(votes)]), first, alpha)[0])
        return preference * math.sqrt(votes) >= bar + float(ndtri(0.8)) * spread

    return fewest_queries(enough) if preference > 0 else None
