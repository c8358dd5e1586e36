"""The stages of a contender after preparation: answered, scored. All are frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
from bakeoff_providers.base import ModelCard, Role

from bakeoff.calls.paid import Usage
from bakeoff.core.facts import Fact, Failure
from bakeoff.core.figures import Loss, Timing
from bakeoff.core.ranking import Ranking
from bakeoff.embedding.preflight import names_in_answers, service_warnings
from bakeoff.evaluation.score import Scores
from bakeoff.search.loss import Unlike
from bakeoff.systems.base import Build, System
from bakeoff.systems.reranked import RerankedSearcher
from bakeoff.tasks.kinds.base import Reading

Rankings = Mapping[str, Ranking]  # by query id


@dataclass(frozen=True, slots=True)
class Embedding:
    """The cost of a row's vectors. Rows that share an embedder share it.

    `asked_anew`: queries were embedded in every round.
    """

    card: ModelCard
    local: bool
    asked_anew: bool
    needs_network: bool
    usage: Mapping[Role, Usage]
    warnings: Sequence[Fact]
    lengths: tuple[float, float] | None
    cut: tuple[int, int] | None = None
    answered_as: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SecondStage:
    """The cost of reranking; no dollars if the price is unknown."""

    usage: Usage
    searches: int  # now or when the scores were bought
    usd: float | None
    local: bool
    warnings: Sequence[Fact] = ()
    answered_as: Sequence[str] = ()

    @classmethod
    def of(cls, searcher: RerankedSearcher) -> SecondStage:
        """The cost so far. The searcher keeps counting."""
        usage, reranker = searcher.usage, searcher.reranker
        usd = 0.0 if reranker.local else reranker.cost(usage.tokens, searcher.searches)
        warnings, names = service_warnings(reranker), names_in_answers(reranker)
        return cls(usage, searcher.searches, usd, reranker.local, warnings, names)


class Compared(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A contender compared with exact search. `failure` fails its row, `fault` only this comparison."""

    loss: Loss | None = None
    short: int = 0
    unlike: Unlike | None = None
    failure: Failure | None = None
    fault: Fact | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """Measurements of a contender queried in this run."""

    build: Build
    timing: Timing
    embedding: Embedding | None = None
    loss: Loss | None = None
    second_stage: SecondStage | None = None
    short: int = 0  # queries with shorter lists than there are documents for, where no loss can be known
    unlike: Unlike | None = None
    not_compared: Fact | None = None  # why nothing is known of a loss, where that is not the row's own nature

    def beside(self, compared: Compared) -> Search:
        """Adds the comparison with exact search."""
        return replace(
            self, loss=compared.loss, short=compared.short, unlike=compared.unlike, not_compared=compared.fault
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """A contender that completed all rounds; `retrieved` is the first round before the kind's own stages."""

    contender: System
    rounds: Sequence[Rankings]  # one whose order is that of the first is the first
    retrieved: Rankings
    search: Search
    compared: Compared | None = None  # None until it was held to exact search
    unanswered: frozenset[str] = frozenset()  # queries without a ranking in the first round

    @property
    def stable(self) -> bool | None:
        """Whether every round gave the same order; unknown after a single one."""
        return all(one is self.rounds[0] for one in self.rounds) if len(self.rounds) > 1 else None


@dataclass(frozen=True, slots=True)
class Scored:
    """A contender that ran: `search` if it was queried here, `readings` by seed if its answers came from files."""

    contender: System
    scores: Scores
    rankings: Rankings
    retrieved: Rankings = field(default_factory=dict)
    stable: bool | None = None
    search: Search | None = None
    readings: Mapping[str, Reading] = field(default_factory=dict)
