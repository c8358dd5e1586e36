"""A line-up from beginning to end: prepare every contender, let them take turns, score, decide."""

from __future__ import annotations

import datetime
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from bakeoff_providers.errors import BakeoffError, InputError

from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query, Task
from bakeoff.embedding.preflight import task_warnings
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.metrics import Scores, evaluate, oracle, random_expectation
from bakeoff.lineup.lineup import Lineup
from bakeoff.run.environment import this_machine
from bakeoff.run.prepare import Embeddings, Entrant, Settings, close, prepare, vectors_folder
from bakeoff.run.tuning import check_tunable, tuned_fusions
from bakeoff.search.loss import Losses
from bakeoff.search.searchers import DenseSearcher
from bakeoff.tasks.kinds import load_kind
from bakeoff.tasks.kinds.base import Extras, Kind

__all__ = ["Entrant", "Outcome", "Settings", "run", "vectors_folder"]

WARM_UP = 3  # calls that are made and thrown away after the cold one
TIMED_HOSTED = 30  # queries that a hosted provider is asked one by one for the sake of its latency
TIMED_LOCAL = 100  # and a local one, in each round: its calls are free, but 300 queries in six rows take minutes
DEPTH = 100  # how many documents a query asks for where neither the line-up nor the kind of task says


@dataclass(slots=True)
class Outcome:
    """Everything a run found out, still in arrays; `bakeoff.results.summary` turns it into files."""

    lineup: Lineup
    task: Task
    pieces: int
    entrants: list[Entrant]
    baselines: dict[str, Scores]
    machine: Machine
    started: datetime.datetime
    seconds: float
    warnings: list[str]
    extras: Extras = field(default_factory=Extras)

    @property
    def ran(self) -> list[Entrant]:
        """The contenders that answered."""
        return [entrant for entrant in self.entrants if entrant.not_run is None]

    @property
    def scores(self) -> dict[str, dict[str, list[float]]]:
        """Per-query values by contender and measure, in the order of the task's queries."""
        return {
            entrant.contender.label: {str(measure): values.tolist() for measure, values in entrant.scores.items()}
            for entrant in self.ran
        }


def run(lineup: Lineup, settings: Settings | None = None) -> Outcome:
    """Runs a line-up. A contender that can't run keeps its row and its reason; bad input raises at once."""
    settings = settings or Settings()
    if settings.tune_weights:
        check_tunable(lineup)
    started, start = datetime.datetime.now(datetime.UTC), time.perf_counter()
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    task = kind.task()
    depth = lineup.depth or (len(task.documents) if kind.whole else DEPTH)
    lineup = replace(lineup, depth=depth)
    measures = tuple(dict.fromkeys([*lineup.all_measures(), *map(Measure.parse, kind.measures)]))
    machine = this_machine()
    entrants = [Entrant(contender) for contender in lineup.contenders]
    embeddings = Embeddings(task, depth, settings, lineup.folder)
    scratch = Path(tempfile.mkdtemp(prefix="bakeoff-"))
    try:
        task = kind.judged(task, embeddings)
        prepare(entrants, embeddings, scratch)
        _take_turns(entrants, task, kind, lineup.rounds, settings.progress)
        losses = Losses(task)
        for entrant in entrants:
            if entrant.not_run is None:
                _score(entrant, task, kind, measures, lineup.folder)
                entrant.loss = losses.of(entrant.contender, entrant.searcher, entrant.found)
        outcome = Outcome(
            lineup=lineup,
            task=task,
            pieces=embeddings.pieces or len(task.documents),
            entrants=entrants,
            baselines=_baselines(task, kind, measures),
            machine=after_work(machine),
            started=started,
            seconds=0.0,
            warnings=_warnings(task, lineup, entrants),
        )
        outcome.extras = kind.extras(outcome)
        if settings.tune_weights:
            tuned_fusions(outcome, kind)
    finally:
        close(entrants)
        embeddings.close()
        shutil.rmtree(scratch, ignore_errors=True)
    outcome.seconds = time.perf_counter() - start
    return outcome


def _take_turns(entrants: Sequence[Entrant], task: Task, kind: Kind, rounds: int, progress: Progress) -> None:
    """Cold call, warm-up, then rounds in which every contender answers every query: drift hits all alike."""
    playing = [entrant for entrant in entrants if entrant.searcher is not None]
    with progress("queries", len(playing) * rounds * len(task.queries)) as advance:
        for entrant in playing:
            _guarded(entrant, partial(_warm_up, entrant, task.queries))
        for _ in range(rounds):
            for entrant in playing:
                if entrant.not_run is None:
                    _guarded(entrant, partial(_answer_all, entrant, task.queries, kind))
                advance(len(task.queries))


def _guarded(entrant: Entrant, step: Callable[[], None]) -> None:
    """A provider that fails in the middle loses its row, not the run."""
    try:
        step()
    except InputError:
        raise
    except BakeoffError as error:
        entrant.not_run = str(error)


def _warm_up(entrant: Entrant, queries: Sequence[Query]) -> None:
    searcher = entrant.searcher
    assert searcher is not None
    cold = searcher.ask(queries[0])
    entrant.timing.cold_embed_ns, entrant.timing.cold_search_ns = cold.embed_ns, cold.search_ns
    for _ in range(WARM_UP):
        searcher.ask(queries[0])
    if isinstance(searcher, DenseSearcher):
        searcher.know(queries[TIMED_LOCAL if searcher.embedder.provider.local else TIMED_HOSTED :])


def _answer_all(entrant: Entrant, queries: Sequence[Query], kind: Kind) -> None:
    assert entrant.searcher is not None
    answered: dict[str, Ranking] = {}
    for query in queries:
        answer = entrant.searcher.ask(query)
        answered[query.id] = kind.refine(query, answer.ranking)
        entrant.found.setdefault(query.id, answer.ranking)
        entrant.timing.search_ns.append(answer.search_ns)
        if answer.embed_ns is not None:
            entrant.timing.embed_ns.append(answer.embed_ns)
        if answer.embed_ns is not None or entrant.embedder is None or query.item:
            entrant.timing.total_ns.append(answer.search_ns + (answer.embed_ns or 0))
    entrant.rounds.append(answered)


def _score(entrant: Entrant, task: Task, kind: Kind, measures: Sequence[Measure], folder: Path) -> None:
    """The mean of the rounds; they are equal unless the contender was not stable, and that is said.

    Answers from files have no rounds: there the mean is over the seeds.
    """
    if files := entrant.contender.answers:
        for seed, file in files.items():
            entrant.seeds[seed], rankings = kind.read(entrant, folder / file, task, measures)
            entrant.rounds = entrant.rounds or [rankings]
        scored = list(entrant.seeds.values())
    else:
        distinct = entrant.rounds[:1] if entrant.stable in (True, None) else entrant.rounds
        scored = [kind.score(entrant, answered, task, measures) for answered in distinct]
    entrant.scores = {measure: np.mean([scores[measure] for scores in scored], axis=0) for measure in measures}


def _baselines(task: Task, kind: Kind, measures: Sequence[Measure]) -> dict[str, Scores]:
    """The rows that no provider made: the ceiling and the floor of every measure on this task, and the kind's own."""
    ids = [query.id for query in task.queries]
    return {
        "oracle": evaluate(oracle(task.judgments, ids, task.candidates), measures, task.rel),
        "random": random_expectation(task.judgments, ids, task.candidates, measures, task.rel),
        **kind.baselines(task, measures),
    }


def _warnings(task: Task, lineup: Lineup, entrants: Sequence[Entrant]) -> list[str]:
    found = task_warnings(task)
    deep = [str(measure) for measure in lineup.measures if (measure.k or 0) > task.candidates]
    if deep:
        found.append(f"{', '.join(deep)}: k is larger than the corpus ({task.candidates} documents)")
    shallow = [str(measure) for measure in lineup.measures if (measure.k or 0) > (lineup.depth or DEPTH)]
    if shallow:
        found.append(f"{', '.join(shallow)}: k is larger than depth = {lineup.depth}: raise depth")
    if lost := task.without_relevant():
        found.append(f"no document is relevant for {', '.join(lost)}: every contender scores 0 there")
    unstable = [entrant.contender.label for entrant in entrants if entrant.stable is False]
    if unstable:
        found.append(f"not stable: {', '.join(unstable)} ranked differently from round to round; means are shown")
    return found
