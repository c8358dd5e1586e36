"""Figures as plain values, so that a result can be read without the package that computed them."""

from __future__ import annotations

from typing import Literal

import msgspec

from bakeoff.core.facts import Fact, Public

STOP_WITHIN = 0.05  # the score difference that matters, unless a line-up names another


class Percentiles(msgspec.Struct, frozen=True):
    """Latency percentiles in milliseconds. A percentile with too few samples is absent."""

    n: int
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class CallTime(msgspec.Struct, frozen=True):
    """How long a call took, when (UTC), and on which machine."""

    nanoseconds: int
    at: str
    machine: str


class Timing(msgspec.Struct, kw_only=True):
    """Raw nanoseconds of one contender. The cold first call is stored separately, warm-up calls are not.

    `kept_…` are calls of earlier runs whose vectors or scores came from the cache. `kept_total_ns` adds this run's
    search time. `unanswered` queries took longer than `limit_ns` in some round.
    """

    embed_ns: list[int] = []
    search_ns: list[int] = []
    total_ns: list[int] = []
    rerank_ns: list[int] = []
    cold_embed_ns: int | None = None
    cold_search_ns: int | None = None
    kept_embed: list[CallTime] = []
    kept_rerank: list[CallTime] = []
    kept_total_ns: list[int] = []
    unanswered: list[str] | msgspec.UnsetType = msgspec.UNSET
    limit_ns: int | msgspec.UnsetType = msgspec.UNSET


class Loss(msgspec.Struct, kw_only=True, frozen=True):
    """What an approximate index loses: NDCG@10 with exact search, the drop, and recall.

    `recall` is the share of the ten nearest documents that were returned; ties with the tenth count. `short` counts
    queries with fewer results than available. `score_error` is the largest difference between a returned similarity and
    the cosine, among the first ten results of each query.
    """

    ndcg_exact: float
    ndcg_lost: float
    recall: float
    short: int = 0
    score_error: float = 0.0


class PairedDifference(msgspec.Struct, frozen=True):
    """Two contenders on the same queries: a's mean minus b's, with its interval.

    There is no interval for a single query, and no effect size if all differences are equal. `doubt` says why interval
    and p may be too optimistic.
    """

    a: Public[str]
    b: Public[str]
    difference: float
    low: float | None
    high: float | None
    p: float
    p_holm: float
    t_p: float
    wilcoxon_p: float
    effect: float | None
    wins: int
    ties: int
    losses: int
    doubt: Fact | None = None

    def reverse(self) -> PairedDifference:
        """The same pair seen from b."""
        low, high = (None if end is None else -end for end in (self.high, self.low))
        effect = None if self.effect is None else -self.effect
        return msgspec.structs.replace(
            self, a=self.b, b=self.a, difference=-self.difference, low=low, high=high, effect=effect,
            wins=self.losses, losses=self.wins,
        )  # fmt: skip


class OwnColumn(msgspec.Struct, kw_only=True, frozen=True):
    """Figures per contender that a task kind shows beside the deciding measure, in reports with a single table.

    `of` is the total of a count. `measure` is the line-up's measure that the column replaces.
    """

    head: Fact | str  # a name is shown as it is
    values: dict[str, float | None]
    quantity: Literal["score", "percent", "count"] = "score"
    of: int | None = None
    measure: Public[str] = ""
