"""The searcher interface: one query in, one timed ranking out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

from bakeoff_providers.errors import BakeoffError

from bakeoff.core.figures import CallTime
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.search.exact_search import ExactRankings


class NoAnswer(BakeoffError):
    """A call cut off at its time limit, and the stage it belongs to."""

    def __init__(self, stage: Literal["embed", "search", "rerank"], seconds: float) -> None:
        self.stage, self.seconds = stage, seconds
        super().__init__(f"no answer within {seconds:g} s")


class Timed(IntEnum):
    """Where an answer's times come from: only this run, partly an earlier one, or partly unknown."""

    NOW = 0
    EARLIER = 1
    NEVER = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """The ranking of one query and its times. `embed_ns` is None if nothing was embedded.

    `kept_embed` and `kept_rerank` are times of earlier runs, for vectors and scores from the cache. `limit_ns` is the
    limit that an answer exceeded; its ranking is then empty, and stages not reached are 0.
    """

    ranking: Ranking
    search_ns: int
    embed_ns: int | None = None
    rerank_ns: int | None = None
    timed: Timed = Timed.NOW
    kept_embed: CallTime | None = None
    kept_rerank: CallTime | None = None
    limit_ns: int | None = None

    @property
    def own_ns(self) -> int:
        """Sum over the stages of this run."""
        return self.search_ns + (self.embed_ns or 0) + (self.rerank_ns or 0)

    @property
    def total_ns(self) -> int:
        """Sum over all stages, with those of earlier runs."""
        return self.own_ns + sum(time.nanoseconds for time in (self.kept_embed, self.kept_rerank) if time)

    @classmethod
    def missing(cls, error: NoAnswer) -> Answer:
        """The answer of a call that was ended."""
        limit_ns = int(error.seconds * 1e9)
        embed_ns, rerank_ns = (limit_ns if error.stage == stage else None for stage in ("embed", "rerank"))
        search_ns = limit_ns if error.stage == "search" else 0
        return cls(Ranking((), ()), search_ns, embed_ns, rerank_ns, limit_ns=limit_ns)

    def held_to(self, limit_ns: int) -> Answer:
        """Drops the ranking if the answer exceeded the limit."""
        if self.limit_ns or self.own_ns <= limit_ns:
            return self
        return replace(self, ranking=Ranking((), ()), limit_ns=limit_ns)


class Searcher(ABC):
    """Answers queries. A new row type must implement `ask`; the other methods are optional."""

    @abstractmethod
    def ask(self, query: Query) -> Answer:
        """The ranking of at most `depth` documents for this query."""

    def prefetch(self, queries: Sequence[Query]) -> None:  # noqa: B027 - most have nothing to fetch
        """Called once before the rounds, to fetch in bulk what is not timed per query."""

    def begin_round(self, number: int) -> None:  # noqa: B027 - most answer in every round alike
        """Called before each round."""

    @property
    def exact(self) -> bool:
        """Whether it claims exact results. Such a claim is checked."""
        return False

    def exact_search(self) -> ExactRankings | None:
        """The same vectors searched exactly; None if there are no vectors."""
        return None

    def short_lists(self, queries: Sequence[Query], rankings: Mapping[str, Ranking]) -> int:  # noqa: ARG002
        """The number of queries with incomplete rankings, for rows without an exact reference."""
        return 0

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Release its resources."""
