"""Contenders take turns: cold call, warm-up, then rounds over all queries, so that drift affects all alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bakeoff.core.clock import WARM_UP, TimeLimits, limit_calls
from bakeoff.core.progress import Advance, Progress, steps
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query, Task
from bakeoff.running.draft import Draft, RowLog
from bakeoff.search.answer import Answer, NoAnswer
from bakeoff.systems.base import NotRun, Prepared
from bakeoff.systems.failures import adapter_work, attempt
from bakeoff.tasks.kinds.base import TaskKind

COLD = 10  # times as long as any other query, the first one may take: it may load a model
STRIDE = 100  # queries between two progress updates, which are not timed


class Turns:
    """One contender during the rounds, after its warm-up."""

    def __init__(self, prepared: Prepared, queries: Sequence[Query], kind: TaskKind, limits: TimeLimits) -> None:
        self.prepared, self.queries, self.kind, self.limits = prepared, queries, kind, limits
        with steps(prepared.contender.label, 0), adapter_work(), limit_calls(COLD * limits.query):
            self.cold = prepared.searcher.ask(queries[0])
            for _ in range(WARM_UP):
                prepared.searcher.ask(queries[0])
        with steps(prepared.contender.label, 0), adapter_work():
            prepared.searcher.prefetch(queries)

    def answer_all(self, number: int, advance: Advance, log: RowLog | None) -> NotRun | None:
        """One round. Writing answers is not timed."""
        contender = self.prepared.contender
        if failed := attempt(contender, partial(self.prepared.searcher.begin_round, number)):
            return failed
        for place, query in enumerate(self.queries):
            answered = attempt(contender, partial(self._ask, query))
            if isinstance(answered, NotRun):
                return answered
            if log is not None:
                log.add(number, place, *answered)
            if (place + 1) % STRIDE == 0:
                advance(STRIDE)
        advance(len(self.queries) % STRIDE)
        return None

    def _ask(self, query: Query) -> tuple[Answer, Ranking]:
        try:
            with adapter_work(), limit_calls(self.limits.query):
                answer = self.prepared.searcher.ask(query)
        except NoAnswer as error:
            answer = Answer.missing(error)
        answer = answer.held_to(int(self.limits.query * 1e9))
        refines = self.kind.refines and not answer.limit_ns
        return answer, self.kind.refine(query, answer.ranking) if refines else answer.ranking


def warm_up(prepared: Sequence[Prepared], task: Task, kind: TaskKind, limits: TimeLimits) -> list[Turns | NotRun]:
    """Every contender after its cold call, in the order given."""
    return [attempt(row.contender, partial(Turns, row, task.queries, kind, limits)) for row in prepared]


def take_turns(
    turns: Sequence[Turns | NotRun], queries: int, rounds: int, progress: Progress, draft: Draft | None = None
) -> list[Turns | NotRun]:
    """Runs all rounds. A contender that fails is not queried again. Without a draft, answers are not stored."""
    rows = list(turns)
    with progress("queries", len(rows) * rounds * queries) as advance:
        for number in range(rounds):
            for place, row in enumerate(rows):
                if isinstance(row, NotRun):
                    advance(queries)
                    continue
                label = row.prepared.contender.label
                with steps(label, 0):
                    failed = row.answer_all(number, advance, draft.row(label, queries) if draft else None)
                rows[place] = failed or row
                if draft and not failed:
                    draft.end_round(label, number)
    return rows
