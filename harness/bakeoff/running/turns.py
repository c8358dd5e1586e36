"""Contenders take turns: cold call, warm-up, then rounds in which each answers every query, so drift hits all alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bakeoff.core.clock import WARM_UP
from bakeoff.core.figures import CallTime, Timing
from bakeoff.core.progress import Advance, Progress
from bakeoff.core.ranking import PackedRankings
from bakeoff.core.task import Query, Task
from bakeoff.running.stages import Answered, Rankings
from bakeoff.search.answer import Answer, Timed
from bakeoff.systems.base import NotRun, Prepared
from bakeoff.systems.failures import adapter_work, attempt
from bakeoff.tasks.kinds.base import TaskKind

STRIDE = 100  # queries between two looks at the progress, which is outside of what is timed


class _Turns:
    """One contender's answers while the rounds go on."""

    def __init__(self, prepared: Prepared, queries: Sequence[Query], kind: TaskKind) -> None:
        self.prepared, self.queries, self.kind = prepared, queries, kind
        with adapter_work():
            self._cold = prepared.searcher.ask(queries[0])
            for _ in range(WARM_UP):
                prepared.searcher.ask(queries[0])
            prepared.searcher.prefetch(queries)
        self._rounds: list[PackedRankings] = []
        self._retrieved: Rankings = {}
        self._embed_ns: list[int] = []
        self._search_ns: list[int] = []
        self._total_ns: list[int] = []
        self._rerank_ns: list[int] = []
        self._kept_embed: list[CallTime] = []
        self._kept_rerank: list[CallTime] = []
        self._kept_total_ns: list[int] = []

    def answer_all(self, number: int, advance: Advance) -> None:
        """One round."""
        self.prepared.searcher.begin_round(number)
        retrieved = PackedRankings()
        refined = PackedRankings() if self.kind.refines else retrieved
        for done, query in enumerate(self.queries, start=1):
            with adapter_work():
                answer = self.prepared.searcher.ask(query)
            self._note(answer)
            if done % STRIDE == 0:
                advance(STRIDE)
            retrieved.add(query.id, answer.ranking)
            if refined is not retrieved:
                refined.add(query.id, self.kind.refine(query, answer.ranking))
        advance(len(self.queries) % STRIDE)
        self._retrieved = self._retrieved or retrieved
        first = self._rounds[0] if self._rounds else refined
        self._rounds.append(first if first.same_order(refined) else refined)  # a round like the first is kept once

    def _note(self, answer: Answer) -> None:
        """A total is only known where all of the work was timed."""
        self._search_ns.append(answer.search_ns)
        if answer.embed_ns is not None:
            self._embed_ns.append(answer.embed_ns)
        if answer.rerank_ns is not None:
            self._rerank_ns.append(answer.rerank_ns)
        if answer.kept_embed is not None:
            self._kept_embed.append(answer.kept_embed)
        if answer.kept_rerank is not None:
            self._kept_rerank.append(answer.kept_rerank)
        if answer.timed is Timed.NOW:
            self._total_ns.append(answer.total_ns)
        elif answer.timed is Timed.EARLIER:
            self._kept_total_ns.append(answer.total_ns)

    def finished(self) -> Answered:
        """All rounds."""
        timing = Timing(
            embed_ns=self._embed_ns,
            search_ns=self._search_ns,
            total_ns=self._total_ns,
            rerank_ns=self._rerank_ns,
            cold_embed_ns=self._cold.embed_ns,
            cold_search_ns=self._cold.search_ns,
            kept_embed=self._kept_embed,
            kept_rerank=self._kept_rerank,
            kept_total_ns=self._kept_total_ns,
        )
        return Answered(self.prepared, self._rounds, self._retrieved, timing)


def take_turns(
    prepared: Sequence[Prepared], task: Task, kind: TaskKind, rounds: int, progress: Progress
) -> list[Answered | NotRun]:
    """Every contender's answers, in the order given; one that fails on the way has none."""
    with progress("queries", len(prepared) * rounds * len(task.queries)) as advance:
        turns: list[_Turns | NotRun] = [
            attempt(row.contender, partial(_Turns, row, task.queries, kind)) for row in prepared
        ]
        for number in range(rounds):
            for place, row in enumerate(turns):
                if isinstance(row, _Turns):
                    failed = attempt(row.prepared.contender, partial(row.answer_all, number, advance))
                    turns[place] = failed or row
                else:
                    advance(len(task.queries))
    return [row if isinstance(row, NotRun) else row.finished() for row in turns]
