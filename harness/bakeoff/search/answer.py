"""What can be asked, one query at a time, and what it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from bakeoff.core.figures import CallTime
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.search.exact_search import ExactRankings


class Timed(IntEnum):
    """What is known of an answer's time: all of it was timed in this run, some in an earlier one, some never."""

    NOW = 0
    EARLIER = 1
    NEVER = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """One query answered: the ranking, and what it took. No embedding time where nothing was embedded.

    `kept_embed` and `kept_rerank` are times of earlier runs, where a vector or scores were there already.
    """

    ranking: Ranking
    search_ns: int
    embed_ns: int | None = None
    rerank_ns: int | None = None
    timed: Timed = Timed.NOW
    kept_embed: CallTime | None = None
    kept_rerank: CallTime | None = None

    @property
    def total_ns(self) -> int:
        """Of all its stages, where a time of each is known."""
        kept = (time.nanoseconds for time in (self.kept_embed, self.kept_rerank) if time)
        return self.search_ns + (self.embed_ns or 0) + (self.rerank_ns or 0) + sum(kept)


class Searcher(ABC):
    """Something that can be asked. A new sort of row needs `ask`; the rest is for those that have more to say."""

    @abstractmethod
    def ask(self, query: Query) -> Answer:
        """The ranking of at most `depth` documents for this query."""

    def prefetch(self, queries: Sequence[Query]) -> None:  # noqa: B027 - most have nothing to fetch
        """Called once before the rounds: takes in one go what is not worth a timed request for each query."""

    def begin_round(self, number: int) -> None:  # noqa: B027 - most answer in every round alike
        """Called before each round."""

    @property
    def exact(self) -> bool:
        """Whether it claims to find what exact search finds: then it is held to that."""
        return False

    def exact_search(self) -> ExactRankings | None:
        """The same vectors searched exactly; None where there are no vectors."""
        return None

    def short_lists(self, queries: Sequence[Query], rankings: Mapping[str, Ranking]) -> int:  # noqa: ARG002
        """How many queries got fewer documents than there are, where that is all that can be said."""
        return 0

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Lets go of what it holds."""
