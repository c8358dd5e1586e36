"""Texts that a provider is asked for one by one, for their latency: which calls are made, and whose time is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bakeoff_providers.base import Role, Vectors

from bakeoff.core.figures import CallTime
from bakeoff.core.machine import call_time

if TYPE_CHECKING:
    from bakeoff.embedding.embed import Embedder

SAME_FROM = 0.99  # cosine of two vectors that one model gives for one text, whatever it runs on
CHANGED = (
    "the server's vectors differ from those in the cache (cosine below 0.99), so queries and documents may not fit: "
    "run with --no-cache"
)


class TimedVector(NamedTuple):
    """A text's vector, the nanoseconds of its call in this run, and the time of the call of an earlier one."""

    vector: Vectors
    nanoseconds: int | None = None
    kept: CallTime | None = None


class SingleCalls:
    """A free provider is asked in every round. A paid one is asked once, and `repeats` times more to time it."""

    def __init__(self, embedder: Embedder, repeats: int) -> None:
        self._embedder, self._repeats = embedder, repeats
        self._vectors: dict[tuple[Role, str], Vectors] = {}
        self._times: dict[tuple[Role, str, int | None], int] = {}  # of paid calls, which the rows of a round share
        self._round: int | None = None
        self._repeated = 0

    def begin_round(self, number: int) -> None:
        """What is asked before the first round is no sample of a warm call."""
        self._round = number

    def embed(self, text: str, role: Role) -> TimedVector:
        """The vector, with the time of its call in this round, or else that of the call which first brought it."""
        embedder, now, took = self._embedder, (role, text, self._round), None
        if (role, text) not in self._vectors:
            self._vectors[role, text], took = embedder.buy(text, role)
            self._keep(text, role, took)
        vector = self._vectors[role, text]
        if embedder.asks_anew:
            return TimedVector(vector, took) if took is not None else self._ask_again(text, role)
        if took is None and now not in self._times and self._may_repeat():
            self._repeated += self._round is not None
            took = self._ask_again(text, role).nanoseconds
        if took is not None:
            self._times[now] = took
        space = embedder.space(role)
        kept = space.call_time(text) if space is not None and self._round == 0 and now not in self._times else None
        return TimedVector(vector, self._times.get(now), kept)

    def _may_repeat(self) -> bool:
        """Before the rounds a single call does, to open the connection for those that follow."""
        if self._round is None:
            return self._repeats > 0 and not self._times
        return self._repeated < self._repeats

    def _ask_again(self, text: str, role: Role) -> TimedVector:
        vector, took = self._embedder.ask_again(text, role)
        self._keep(text, role, took)
        warnings = self._embedder.warnings
        if self._vectors[role, text] @ vector < SAME_FROM and CHANGED not in warnings:
            warnings.append(CHANGED)
        return TimedVector(vector, took)

    def _keep(self, text: str, role: Role, took: int | None) -> None:
        """With the vector, for later runs; not that of the cold call."""
        space = self._embedder.space(role)
        if took is not None and space is not None and self._round is not None:
            space.note_time(text, call_time(took))
