"""Whose documents people clicked in interleaved lists: credit, an exact test, an interval, and what is still needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.production.check import Check, Gauge
from bakeoff.production.clusters import Clusters
from bakeoff.statistics.columns import affordable
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.effects import wins_ties_losses
from bakeoff.statistics.intervals import RESAMPLES, bca_of_sums
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


def analyse(impressions: Sequence[Impression], *, alpha: float = ALPHA, resamples: int = RESAMPLES) -> Check:
    """Queries are won, tied and lost; users are what is tested, since one user's clicks resemble each other."""
    signs = np.sign([credit(impression) for impression in impressions]).astype(np.float64)
    users = Clusters.of([impression.user for impression in impressions], signs.tolist())
    wins, ties, losses = wins_ties_losses(signs)
    ahead, _, behind = wins_ties_losses(users.sums)
    p = sign_test(ahead, behind)
    preference, low, high = _interval(users, resamples)
    needed = queries_needed(preference, float(users.influence.std(ddof=1))) if len(users) > 1 else None
    more = None if needed is None else max(0, needed - len(users))
    better = "b" if ahead > behind else "a"
    decided = p <= alpha
    sentences = [
        f"{len(impressions)} queries of {len(users)} users: b won {wins}, {ties} tied, a won {losses}.",
        f"Preference for b: {preference:+.4f} (95% interval {low:+.4f} to {high:+.4f}, users resampled; 0 is none).",
        f"{ahead} users clicked more of b, {behind} more of a: exact sign test p = {p:.2g}.",
    ]  # fmt: skip
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
    gauges = [
        Gauge("interleave_preference", "Share of queries that b won minus share that a won", preference),
        Gauge("interleave_p", "Exact sign test over users", p),
        Gauge("interleave_queries", "Interleaved queries in the log", float(len(impressions))),
    ]
    return Check(
        command="interleave", worse=decided and better == "a", sentences=sentences, figures=figures, gauges=gauges
    )


def _interval(users: Clusters, resamples: int) -> tuple[float, float, float]:
    parts = np.stack([users.sums, users.rows], axis=1)

    def preference(sums: Values) -> Values:
        ratio: Values = sums[:, 0] / sums[:, 1]
        return ratio

    return bca_of_sums(parts, preference, resamples=affordable(resamples, len(users)))
