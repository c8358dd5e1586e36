"""Whose documents people clicked in interleaved lists: credit, an exact test, an interval, and what is still needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.printable import counted
from bakeoff.extensions.production.clusters import Clusters
from bakeoff.results.check import Check, Gauge
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.effects import wins_ties_losses
from bakeoff.statistics.power import queries_needed
from bakeoff.tasks.search_log import Impression, LogColumns, read_log

NEEDED = ("query", "user", "shown", "clicked", "team")


def read_interleaved(path: Path, columns: LogColumns) -> list[Impression]:
    """A log with the team of every place, as `interleave` gave it."""
    impressions = read_log(path, columns, NEEDED)
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


def analyse(impressions: Sequence[Impression], *, alpha: float = ALPHA) -> Check:
    """Every user has one vote, for the side that won more of their queries: one user's clicks resemble each other.

    Test, interval and direction are of the same votes, so that they can't contradict each other.
    """
    signs = np.sign([credit(impression) for impression in impressions]).astype(np.float64)
    users = Clusters.of([impression.user for impression in impressions], signs.tolist())
    wins, ties, losses = wins_ties_losses(signs)
    ahead, even, behind = wins_ties_losses(users.sums)
    p, (preference, low, high) = sign_test(ahead, behind), preference_of(ahead, behind, alpha)
    more = _more_users(ahead, even, behind, alpha)
    better = "b" if ahead > behind else "a"
    decided = p <= alpha
    sentences = [
        f"{len(impressions)} queries of {len(users)} users: b won {wins}, {ties} tied, a won {losses}.",
        f"b won more queries than a for {counted(ahead, 'user')}, a more than b for {behind}, as many for {even}: "
        f"exact sign test p = {p:.2g}.",
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
        "decided": decided, "better": better if decided else None, "more_users_needed": more,
    }  # fmt: skip
    about = "Of users with more queries won by one side, the share for b minus the share for a"
    gauges = [
        Gauge("interleave_preference", about, preference),
        Gauge("interleave_p", "Exact sign test over users", p),
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


def _more_users(ahead: int, even: int, behind: int, alpha: float) -> int | None:
    """How many more would show this preference in 4 of 5 cases, if as many of them have none; None where none would."""
    votes = np.repeat([1.0, -1.0], [ahead, behind])
    if not len(votes):
        return None
    if not ahead or not behind:  # all for one side, so all that come: n of n have p = 2 / 2ⁿ
        needed: int | None = math.ceil(1 - math.log2(alpha))
    else:
        needed = queries_needed(float(votes.mean()), float(votes.std(ddof=1)), alpha=alpha)
    return None if needed is None else max(0, math.ceil((needed - len(votes)) * (1 + even / len(votes))))
