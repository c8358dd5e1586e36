"""Measures contenders into a draft: rounds, resources, and comparison with exact search."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Hashable, Sequence

from bakeoff_providers.errors import StoreError

from bakeoff.core.clock import TimeLimits
from bakeoff.core.facts import fact
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.task import Task
from bakeoff.running.draft import Draft
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.stages import Answered, Compared, Embedding, SecondStage
from bakeoff.running.turns import Turns, take_turns, warm_up
from bakeoff.search.loss import Losses
from bakeoff.systems.base import Given, NotRun, Prepared
from bakeoff.systems.failures import failure_of, reason_of
from bakeoff.systems.reranked import RerankedSearcher
from bakeoff.tasks.kinds.base import TaskKind

log = logging.getLogger(__name__)


class Measuring:
    """Asks all queries and writes the answers into the draft."""

    def __init__(self, draft: Draft, task: Task, kind: TaskKind, embeddings: Embeddings, limits: TimeLimits) -> None:
        self._draft, self._task, self._kind, self._embeddings = draft, task, kind, embeddings
        self._limits = limits

    def ask(self, rows: Sequence[Prepared | Given | NotRun], rounds: int, started: str, before: Machine) -> None:
        """All rounds of all rows that are ready."""
        start, queries = time.perf_counter(), len(self._task.queries)
        turns = warm_up([row for row in rows if isinstance(row, Prepared)], self._task, self._kind, self._limits)
        self._draft.begin(started, before, self._task.judgments)
        for row in turns:
            if isinstance(row, Turns):
                prepared = row.prepared
                self._draft.row(prepared.contender.label, queries).begin(
                    prepared.build, row.cold, *self._took(prepared)
                )
        turns = take_turns(turns, queries, rounds, self._embeddings.progress, self._draft)
        for each in (*rows, *turns):
            if isinstance(each, NotRun):
                self._draft.fail(each.contender.label, each.failure)
            elif isinstance(each, Turns):
                label = each.prepared.contender.label
                self._draft.row(label, queries).end(*self._took(each.prepared))
        self._draft.end(_after(before), time.perf_counter() - start)

    def _took(self, prepared: Prepared) -> tuple[Embedding | None, SecondStage | None]:
        """The resources used so far. Embedders and second stages keep counting."""
        searcher, embedder = prepared.searcher, prepared.embedder
        return (
            None if embedder is None else self._embeddings.embedding(embedder),
            SecondStage.of(searcher) if isinstance(searcher, RerankedSearcher) else None,
        )


def _after(before: Machine) -> Machine:
    try:
        return after_work(before)
    except Exception as error:  # an unreadable load must not lose the result
        log.warning("no load after the work", exc_info=error)
        return before


class ExactComparison:
    """Compares rows with exact search over the same vectors, one after the other."""

    def __init__(self, draft: Draft, task: Task, rows: Sequence[Prepared]) -> None:
        self._draft, self._task = draft, task
        self._prepared = {row.contender.label: row for row in rows}
        self._losses = Losses(task, Counter[Hashable](row.contender.searches for row in rows))
        self._not_exact: set[str] = set()  # rows whose store's claim was false, and rows built on them
        self._found: dict[str, Compared] = {}

    def of(self, answered: Answered) -> Compared:
        """A store with a false claim fails its row and every row built on it."""
        label = answered.contender.label
        self._found[label] = found = self._compare(answered)
        if found.failure is not None:
            self._not_exact.add(label)
        self._draft.row(label, len(self._task.queries)).compare(found)
        return found

    def skip(self, label: str) -> None:
        """Skips a row without answers."""
        if label in self._prepared:
            self._losses.skip(self._prepared[label].contender.searches)

    def end(self) -> dict[str, Compared]:
        """Exact rows over the same vectors that rank differently, once all rows were compared."""
        unlike = {
            label: Compared(self._found[label].loss, self._found[label].short, found)
            for label, found in self._losses.unlike.items()
        }
        for label, compared in unlike.items():
            self._draft.row(label, len(self._task.queries)).compare(compared)
        self._draft.complete()
        return unlike

    def _compare(self, answered: Answered) -> Compared:
        contender = answered.contender
        searcher = self._prepared[contender.label].searcher
        try:
            if wrong := [label for label in contender.made_of if label in self._not_exact]:
                raise StoreError(f"is built on {', '.join(wrong)}, whose store claims to be exact but is not")
            retrieved = answered.retrieved
            if answered.unanswered:
                retrieved = {query: ranking for query, ranking in retrieved.items() if query not in answered.unanswered}
            loss = self._losses.of(contender.searches, contender.label, searcher, retrieved)
            asked = [query for query in self._task.queries if query.id in retrieved]
            return Compared(loss, searcher.short_lists(asked, retrieved))
        except StoreError as error:
            return Compared(failure=failure_of(error))
        except Exception as error:  # a failed diagnostic loses only itself
            log.warning("%s: not compared with exact search", contender.label, exc_info=error)
            return Compared(fault=fact("not_made", part="index_loss", reason=reason_of(error)))
