"""Figures as plain values, so that a result can be read without the package that made them."""

from __future__ import annotations

from typing import Literal

import msgspec

from bakeoff.core.facts import Fact
from bakeoff.core.public import Public

STOP_WITHIN = 0.05  # a difference of scores that matters, where a line-up names no other


class Percentiles(msgspec.Struct, frozen=True):
    """Milliseconds; a percentile that the number of samples does not support is absent."""

    n: int
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class CallTime(msgspec.Struct, frozen=True):
    """How long one call took, when (UTC) and on which machine."""

    nanoseconds: int
    at: str
    machine: str


class Timing(msgspec.Struct, kw_only=True):
    """Raw nanoseconds of one contender. The cold first call is kept on its own, warm-up not at all.

    `kept_…` are calls of earlier runs, whose vectors or scores came from the cache; `kept_total_ns` adds this run's
    search to them.
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


class Loss(msgspec.Struct, kw_only=True, frozen=True):
    """What an approximate index takes from its model: NDCG@10 under exact search, how much of it is lost, and recall.

    `recall` is the share of the ten nearest documents that came back; one that ties with the tenth counts. `short`
    counts queries that got fewer documents than there were. `score_error` is the largest difference between a returned
    similarity and the cosine, among the first ten of every query.
    """

    ndcg_exact: float
    ndcg_lost: float
    recall: float
    short: int = 0
    score_error: float = 0.0


class PairedDifference(msgspec.Struct, frozen=True):
    """Two contenders on the same queries: `difference` is a's mean minus b's, with its interval.

    A single query has no interval, and differences that are all alike have no effect size. `doubt` says why interval
    and p may be too sure.
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

    def turned(self) -> PairedDifference:
        """The same pair, seen from b."""
        low, high = (None if end is None else -end for end in (self.high, self.low))
        effect = None if self.effect is None else -self.effect
        return msgspec.structs.replace(
            self, a=self.b, b=self.a, difference=-self.difference, low=low, high=high, effect=effect,
            wins=self.losses, losses=self.wins,
        )  # fmt: skip


class OwnColumn(msgspec.Struct, kw_only=True, frozen=True):
    """Figures by contender that a kind of task wants beside the deciding measure, where a report has one table.

    `of` is what a count is a part of; `measure` is the measure of the line-up in whose place it stands.
    """

    head: Fact | str  # a name is shown as it is
    values: dict[str, float | None]
    quantity: Literal["score", "percent", "count"] = "score"
    of: int | None = None
    measure: Public[str] = ""
