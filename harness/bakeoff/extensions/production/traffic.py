"""Live traffic: A/B tests with users as clusters and a test of the split, and clicks on interleaved lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.facts import Fact, fact
from bakeoff.core.printable import whole_number
from bakeoff.extensions.production.search_log import Impression, LogColumns, read_log, timestamp
from bakeoff.results.check import Check, Gauge
from bakeoff.statistics.compare import wins_ties_losses
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.design import fewest_queries
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
        """The mean over all rows, so that frequent users count more."""
        return float(self.sums.sum() / self.rows.sum())

    @property
    def standard_error(self) -> float:
        """The jackknife over users, valid even with heavy users; infinite for a single user."""
        n = len(self)
        if n < 2:
            return math.inf
        rest = self.rows.sum() - self.rows
        without_each = (self.sums.sum() - self.sums) / rest
        return math.sqrt(float(((without_each - self.mean) ** 2).sum()) * (n - 1) / n)

    @property
    def effective(self) -> float:
        """The effective number of users, if all had equal weight."""
        return float(self.rows.sum() ** 2 / (self.rows**2).sum())

    @property
    def heaviest(self) -> float:
        """The share of rows of the most frequent user."""
        return float(self.rows.max() / self.rows.sum())


def ratio(n: float, planned: float, alpha: float) -> float:
    """The r that makes the interval tightest at the planned n."""
    return _tightest(alpha) * n / planned


@cache
def _tightest(alpha: float) -> float:
    """The r of least width, where ln((1 + r)/α²) = r."""
    from scipy.special import lambertw

    return float(-lambertw(-(alpha**2) / math.e, -1).real) - 1


def width(r: float, alpha: float) -> float:
    """Half the width of the interval, in standard errors."""
    return math.sqrt((1 + 1 / r) * math.log((1 + r) / alpha**2))


def p_value(z: float, r: float) -> float:
    """The smallest level at which the interval excludes 0, for an estimate of z standard errors."""
    return min(1.0, math.sqrt(1 + r) * math.exp(-(z**2) * r / (2 * (1 + r))))


def split_p(users: Sequence[int], split: Sequence[float]) -> float:
    """p of the planned proportions of users, valid at every look.

    The inverse of a likelihood ratio: uniformly distributed proportions against the planned ones. Under the plan the
    ratio is a martingale, which ever exceeds 1/p with probability at most p (Ville's inequality).
    """
    evidence = math.lgamma(len(users)) - math.lgamma(sum(users) + len(users))
    evidence += sum(
        math.lgamma(n + 1) - n * math.log(share / sum(split)) for n, share in zip(users, split, strict=True)
    )
    return math.exp(min(0.0, -evidence))


NEEDED = ("query", "user", "session", "shown", "clicked", "arm")
MISMATCH = 0.001  # a split this unlikely is an error in the experiment, not chance
HEAVY = 0.05  # share of an arm's sessions; a user with more is reported
FEWEST = 50  # users per arm; with fewer, standard errors are unreliable
POWER = 0.8
METRICS = ("click@K", "rr", "success")

Session = Sequence[Impression]


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """Treatment minus control, with interval and p, and the difference detectable with 80% power."""

    value: float
    low: float
    high: float
    p: float
    detectable: float


def metric_of(name: str) -> Callable[[Session], float]:
    """The function that values a session: click@10, rr (mean reciprocal rank of first clicks), success."""
    kind, _, cut = name.partition("@")
    if kind == "click" and (k := whole_number(cut)):
        return lambda session: float(any(set(one.shown[:k]) & set(one.clicked) for one in session))
    if name == "rr":
        return lambda session: sum(map(_first_click, session)) / len(session)
    if name == "success":  # the last query either succeeded or was abandoned
        return lambda session: float(bool(session[-1].clicked))
    raise InputError(
        f"unknown metric {name!r}", place="--metric", remedy=f"known: {', '.join(METRICS)}, with a number for K"
    )


def _first_click(impression: Impression) -> float:
    ranks = [rank for rank, document in enumerate(impression.shown, start=1) if document in impression.clicked]
    return 1 / ranks[0] if ranks else 0.0


def mismatch(users: Sequence[int], split: Sequence[float]) -> float:
    """p of a chi-squared test of the planned proportions of users; valid for one planned look."""
    from scipy.special import chdtrc

    expected = [sum(users) * share / sum(split) for share in split]
    return float(chdtrc(len(users) - 1, sum((n - e) ** 2 / e for n, e in zip(users, expected, strict=True))))


def difference(control: Clusters, treatment: Clusters, alpha: float = ALPHA) -> ArmDifference:
    """Welch's interval over users, valid for one planned look; infinite for too few users."""
    from scipy.special import stdtr, stdtrit

    value = treatment.mean - control.mean
    if min(len(control), len(treatment)) < FEWEST:
        return _unknown(value)
    error, freedom = _error(control, treatment)
    if error <= NOISE:
        return _without_spread(control, treatment, alpha)
    bar = float(stdtrit(freedom, 1 - alpha / 2))
    p = float(2 * stdtr(freedom, -abs(value) / error))
    return ArmDifference(
        value, value - bar * error, value + bar * error, p, (bar + float(stdtrit(freedom, POWER))) * error
    )


def _error(control: Clusters, treatment: Clusters) -> tuple[float, float]:
    """The standard error of the difference, and Welch's degrees of freedom from effective users."""
    variances = [arm.standard_error**2 for arm in (control, treatment)]
    if not sum(variances):
        return 0.0, math.inf
    freedom = sum(variances) ** 2 / sum(
        variance**2 / max(arm.effective - 1, 1) for variance, arm in zip(variances, (control, treatment), strict=True)
    )
    return math.sqrt(sum(variances)), freedom


def always_valid(control: Clusters, treatment: Clusters, planned: int, alpha: float = ALPHA) -> ArmDifference:
    """An interval valid at every look; infinite while users are too few or all alike."""
    from scipy.special import ndtri, stdtrit

    value = treatment.mean - control.mean
    error, freedom = _error(control, treatment)
    if min(len(control), len(treatment)) < FEWEST or error <= NOISE:
        return _unknown(value)
    error *= float(stdtrit(freedom, 1 - alpha / 2) / ndtri(1 - alpha / 2))
    r = ratio(len(control) + len(treatment), planned, alpha)
    half = width(r, alpha) * error
    p = p_value(abs(value) / error, r)
    return ArmDifference(value, value - half, value + half, p, half + float(ndtri(POWER)) * error)


def _unknown(value: float) -> ArmDifference:
    """A difference without a finite interval."""
    return ArmDifference(value, -math.inf, math.inf, 1.0, math.inf)


def _without_spread(control: Clusters, treatment: Clusters, alpha: float) -> ArmDifference:
    """For arms without variance: p by permuting users between the arms, the interval from their numbers alone.

    If n users are alike, at most a share of 1 − (alpha/4)^(1/n) of all users differs. Metrics are from 0 to 1.
    """
    old, new = control.mean, treatment.mean
    value, others = new - old, [1 - (alpha / 4) ** (1 / len(arm)) for arm in (control, treatment)]
    low = value - others[0] * (1 - old) - others[1] * new
    high = value + others[0] * old + others[1] * (1 - new)
    ways = math.comb(len(control) + len(treatment), len(control))
    return ArmDifference(value, low, high, 1.0 if abs(value) <= NOISE else min(1.0, 2 / ways), math.inf)


def read_arms(path: Path, columns: LogColumns, control: str, treatment: str) -> tuple[list[Impression], int]:
    """The rows of the two arms, and the number of users excluded for being in both."""
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
    """One value per session of an arm, by user. Rows of a session are sorted by time, if the log has it."""
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
    """The whole A/B check. With `planned` users it is valid at every look."""
    value_of = metric_of(metric)
    impressions, mixed = read_arms(path, columns, control, treatment)
    arms = arm_of(impressions, control, value_of, path), arm_of(impressions, treatment, value_of, path)
    for arm, clusters in zip((control, treatment), arms, strict=True):
        if len(clusters) < 2:
            raise InputError(f"arm {arm!r} has only {len(clusters)} users", file=path, remedy="collect more first")
    p_split = (mismatch if planned is None else split_p)([len(arm) for arm in arms], split)
    gap = difference(*arms, alpha) if planned is None else always_valid(*arms, planned, alpha)
    facts = _arm_facts(gap, arms, (control, treatment), metric, mixed, p_split, planned, alpha)
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
    return Check(command="ab", worse=worse, facts=facts, figures=figures, gauges=gauges)


def _arm_facts(
    gap: ArmDifference,
    arms: Sequence[Clusters],
    names: tuple[str, str],
    metric: str,
    mixed: int,
    p_split: float,
    planned: int | None,
    alpha: float,
) -> list[Fact]:
    facts = [
        fact("production.arm", arm=name, metric=metric, mean=arm.mean, sessions=int(arm.rows.sum()), users=len(arm))
        for name, arm in zip(names, arms, strict=True)
    ]
    if mixed:
        facts.append(fact("production.users_in_both_arms", users=mixed))
    if p_split < MISMATCH:
        facts.append(fact("production.split_mismatch", p=p_split))
    facts += [
        fact("production.heavy_user", arm=name, share=arm.heaviest, users=len(arm), effective=arm.effective)
        for name, arm in zip(names, arms, strict=True)
        if arm.heaviest > HEAVY
    ]
    if math.isinf(gap.high):
        few = min(len(arm) for arm in arms) < FEWEST
        return [*facts, fact("production.too_few_users", needed=FEWEST) if few else fact("production.no_spread_yet")]
    sequential = planned is not None
    facts.append(
        fact("production.arm_difference", control=names[0], treatment=names[1], difference=gap.value, low=gap.low,
             high=gap.high, alpha=alpha, p=gap.p, sequential=sequential)
    )  # fmt: skip
    if gap.low > 0 or gap.high < 0:
        facts.append(fact("production.treatment", treatment=names[1], better=gap.low > 0))
        if sequential:
            facts.append(fact("production.stopped_early"))
    elif math.isinf(gap.detectable):
        facts.append(fact("production.no_difference_no_spread"))
    else:
        facts.append(fact("production.no_difference", detectable=gap.detectable, power=POWER))
    return facts


NEEDED_TEAMS = ("query", "user", "shown", "clicked", "team")


def read_interleaved(path: Path, columns: LogColumns) -> list[Impression]:
    """Read a log with the team of every rank, as `interleave` returned it."""
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
    """The exact two-sided sign test."""
    from scipy.special import bdtr

    n = wins + losses
    return min(1.0, 2 * float(bdtr(min(wins, losses), n, 0.5))) if n else 1.0


FIRST_VOTES = 20  # fixes the mixture, whose bound is tightest at about ten times as many votes


def any_look_p(ahead: int, behind: int) -> float:
    """p of no preference, valid at every look. Votes are signs, so their squares sum to their number."""
    votes = np.array([float(ahead + behind)])
    studentised = abs(ahead - behind) / np.sqrt(np.maximum(votes, 1.0))
    return float(mixture_p(studentised, votes, np.array([float(FIRST_VOTES)]))[0])


def any_look_preference(ahead: int, behind: int, alpha: float = ALPHA) -> tuple[float, float, float]:
    """The share for b minus the share for a. Its interval is valid at every look, and excludes 0 if p ≤ alpha."""
    votes = ahead + behind
    if not votes:
        return 0.0, -1.0, 1.0
    half = float(mixture_bar(np.array([float(votes)]), np.array([float(FIRST_VOTES)]), alpha)[0]) / math.sqrt(votes)
    value = (ahead - behind) / votes
    return value, max(-1.0, value - half), min(1.0, value + half)


PREFERENCE = 0.1  # the default that matters: 55 users for one side, 45 for the other


def analyse(
    impressions: Sequence[Impression], *, alpha: float = ALPHA, once: bool = False, planned: float = PREFERENCE
) -> Check:
    """Each user has one vote, for the side that won more of their queries, since clicks of one user are correlated.

    Test, interval and direction use the same votes, so they can't contradict each other. They are valid at every look;
    `once` means that this is the only look, which has more power. The number of further users is for the `planned`
    preference, since the observed one may be chance.
    """
    signs = np.sign([credit(impression) for impression in impressions]).astype(np.float64)
    users = Clusters.of([impression.user for impression in impressions], signs.tolist())
    wins, ties, losses = wins_ties_losses(signs)
    ahead, even, behind = wins_ties_losses(users.sums)
    p = sign_test(ahead, behind) if once else any_look_p(ahead, behind)
    preference, low, high = (preference_of if once else any_look_preference)(ahead, behind, alpha)
    more = _more_users(ahead, even, behind, planned, alpha, once=once)
    better = "b" if ahead > behind else "a"
    decided = p <= alpha
    facts = [
        fact("production.interleaved", queries=len(impressions), users=len(users), wins=wins, ties=ties, losses=losses),
        fact("production.votes", users_for_b=ahead, users_for_a=behind, users_even=even, p=p, once=once),
        fact("production.preference", preference=preference, low=low, high=high, alpha=alpha),
    ]
    if decided:
        facts.append(fact("production.preferred", better=better))
    else:
        queries = round(more * len(impressions) / len(users)) if more else None
        facts.append(fact("production.no_preference", planned=planned, more_users=more, more_queries=queries))
    figures = {
        "queries": len(impressions), "users": len(users), "wins": wins, "ties": ties, "losses": losses,
        "users_for_b": ahead, "users_for_a": behind, "preference": preference, "low": low, "high": high, "p": p,
        "decided": decided, "better": better if decided else None, "planned_preference": planned,
        "more_users_needed": more, "once": once,
    }  # fmt: skip
    about = "Of users with more queries won by one side, the share for b minus the share for a"
    gauges = [
        Gauge("interleave_preference", about, preference),
        Gauge("interleave_p", "p of no preference over users", p),
        Gauge("interleave_queries", "Interleaved queries in the log", float(len(impressions))),
    ]
    return Check(command="interleave", worse=decided and better == "a", facts=facts, figures=figures, gauges=gauges)


def preference_of(ahead: int, behind: int, alpha: float = ALPHA) -> tuple[float, float, float]:
    """The share for b minus the share for a, with Clopper and Pearson's interval, which excludes 0 if p < alpha."""
    from scipy.special import betaincinv

    if not ahead + behind:
        return 0.0, -1.0, 1.0
    low = float(betaincinv(ahead, behind + 1, alpha / 2)) if ahead else 0.0
    high = float(betaincinv(ahead + 1, behind, 1 - alpha / 2)) if behind else 1.0
    return (ahead - behind) / (ahead + behind), 2 * low - 1, 2 * high - 1


def _more_users(ahead: int, even: int, behind: int, planned: float, alpha: float, *, once: bool) -> int | None:
    """Further users needed to show the planned preference with 80% power; None without a vote."""
    votes, needed = ahead + behind, _votes_needed(planned, alpha, once=once)
    return max(0, math.ceil((needed - votes) * (1 + even / votes))) if votes and needed else None


def _votes_needed(preference: float, alpha: float, *, once: bool) -> int | None:
    """Votes needed to show this preference with 80% power, by a normal approximation."""
    from scipy.special import ndtri

    first, spread = np.array([float(FIRST_VOTES)]), math.sqrt(1 - preference**2)

    def enough(votes: int) -> bool:
        if once:  # with Yates' correction, since votes are whole
            bar = float(ndtri(1 - alpha / 2)) + 1 / math.sqrt(votes)
        else:
            bar = float(mixture_bar(np.array([float(votes)]), first, alpha)[0])
        return preference * math.sqrt(votes) >= bar + float(ndtri(POWER)) * spread

    return fewest_queries(enough)
