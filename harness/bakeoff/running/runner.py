"""A line-up from beginning to end: prepare every contender, let them take turns, score."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import msgspec
from bakeoff_providers import stopping
from bakeoff_providers.errors import InputError

from bakeoff.core.facts import Fact, fact
from bakeoff.core.machine import Machine, after_work, machine
from bakeoff.core.paths import vectors_folder
from bakeoff.core.progress import showing, steps
from bakeoff.core.task import Task
from bakeoff.embedding.preflight import task_warnings
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.engines import engine_of, with_shared_cache
from bakeoff.running.environment import this_machine
from bakeoff.running.prepare import Preparation, check, check_models
from bakeoff.running.scoring import Scorer, check_dates, check_graded, without_queries
from bakeoff.running.settings import Settings
from bakeoff.running.stage_tables import check_tunable, with_gains, with_tuned_weights
from bakeoff.running.stages import Scored
from bakeoff.running.turns import take_turns
from bakeoff.search.stores.scratch import scratch
from bakeoff.systems.base import NotRun, Prepared
from bakeoff.systems.failures import Additions, attempt
from bakeoff.systems.fused import Fused
from bakeoff.tasks.kinds import TASK_KINDS, load_kind
from bakeoff.tasks.kinds.base import Extras, FinishedRun, TaskKind
from bakeoff.tasks.sample import draw_sample

__all__ = ["NotRun", "Outcome", "Scored", "Settings", "run", "vectors_folder"]

DEPTH = 100  # how many documents a query asks for where neither the line-up nor the kind of task says


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a run found out, still in arrays; `bakeoff.results.save` turns it into files."""

    lineup: Lineup
    task: Task
    chunks: int
    contenders: tuple[Scored | NotRun, ...]
    baselines: Mapping[str, Scores]
    machine: Machine
    started: datetime.datetime
    seconds: float
    warnings: tuple[Fact, ...]
    extras: Extras
    no_verdict: str = ""  # id of why rows can't be compared with each other, where they can't

    def __repr__(self) -> str:
        return f"Outcome({self.lineup.name!r}: {len(self.ran)} rows, {len(self.not_run)} not run, {self.task!r})"

    @property
    def depth(self) -> int:
        """How many places every ranking has at most."""
        return min(self.lineup.depth or DEPTH, self.task.candidates)

    @property
    def ran(self) -> list[Scored]:
        """The contenders that answered."""
        return [row for row in self.contenders if isinstance(row, Scored)]

    @property
    def not_run(self) -> list[NotRun]:
        """The contenders that did not, each with its reason."""
        return [row for row in self.contenders if isinstance(row, NotRun)]

    @property
    def scores(self) -> dict[str, dict[str, list[float]]]:
        """Per-query values by contender and measure, in the order of the task's queries."""
        return {
            row.contender.label: {str(measure): values.tolist() for measure, values in row.scores.items()}
            for row in self.ran
        }


def run(lineup: Lineup, settings: Settings | None = None) -> Outcome:
    """Runs a line-up. A contender that can't run keeps its row and its reason; a bad task raises at once."""
    settings = settings or Settings()
    settings = with_shared_cache(settings, settings.engine or lineup.engine)
    cache = settings.cache and settings.cache.resolve()  # processes elsewhere have another working folder
    settings = replace(settings, cache=cache)
    if settings.tune_weights:
        check_tunable(lineup)
    with showing(settings.progress):
        return _run(lineup, settings)


def _run(lineup: Lineup, settings: Settings) -> Outcome:
    started, start = datetime.datetime.now(datetime.UTC), time.perf_counter()
    before = this_machine() if settings.recorded else machine()
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    task = task_of(kind, lineup, settings)
    depth = depth_of(lineup, kind, task)
    lineup = replace(lineup, depth=depth)
    measures = tuple(dict.fromkeys([*lineup.all_measures(), *map(Measure.parse, kind.measures)]))
    check_dates(task, measures, lineup.file)
    stopping.resume()
    with ExitStack() as stack:
        engine = engine_of(settings.engine or lineup.engine)
        stack.callback(engine.close)
        embeddings = Embeddings(task, depth, settings, lineup.folder, engine, kind.vectors_of)
        folder = stack.enter_context(scratch())
        preparation = stack.enter_context(_closing(Preparation(lineup.contenders, embeddings, folder), embeddings))
        check_models(kind.models, embeddings)
        preparation.leave_out(check(lineup.contenders, embeddings))
        engine.start([*kind.models, *lineup.contenders], settings.cache, settings.vectors)
        task = kind.judge(task, embeddings)
        if settings.graded:
            check_graded(task, settings.notice)
        scorer = Scorer(task, kind, measures, depth, engine, embeddings.embedding, lineup.contenders)
        contenders = _all_scored(preparation, scorer, lineup.rounds, settings)
        afterwards = after_work(before)
        baselines = {} if kind.no_verdict else scorer.baselines()
        ran = [row for row in contenders if isinstance(row, Scored)]
        if settings.graded and (unlabelled := kind.find_unlabelled(ran)):
            task, contenders, baselines = without_queries(unlabelled, task, contenders, baselines)
            ran = [row for row in contenders if isinstance(row, Scored)]
        finished = FinishedRun(task, ran, baselines, lineup.primary, lineup.seed, started, embeddings)
        # They come last: a fault in them must not lose what was paid for.
        additions = Additions()
        extras = additions.attempt("kind_tables", partial(kind.extras, finished), Extras())
        extras = additions.attempt("second_stages", partial(with_gains, extras, finished, ran), extras)
        if settings.tune_weights:
            tuned = partial(with_tuned_weights, extras, finished, ran, kind, depth)
            extras = additions.attempt("tuned_weights", tuned, extras)
        noted: list[Fact] = []
        noted = additions.attempt("task_warnings", partial(_warnings, task, lineup), noted)
        chunks = embeddings.chunks or len(task.documents)
    return Outcome(
        lineup=lineup,
        task=task,
        chunks=chunks,
        contenders=tuple(contenders),
        baselines=baselines,
        machine=afterwards,
        started=started,
        seconds=time.perf_counter() - start,
        warnings=(*noted, *additions.warnings),
        extras=extras,
        no_verdict=kind.no_verdict,
    )


def depth_of(lineup: Lineup, kind: TaskKind, task: Task) -> int:
    """How many documents a query asks for."""
    return lineup.depth or (len(task.documents) if kind.needs_full_ranking else DEPTH)


def task_of(kind: TaskKind, lineup: Lineup, settings: Settings) -> Task:
    """The kind's task, or the sample of its documents that was asked for; the rows fit it as its kind wants."""
    task = kind.task()
    kind.check_contenders(task, lineup.contenders, lineup.folder)
    if kind.about:
        task = msgspec.structs.replace(task, about=kind.about)
    if settings.graded:
        task = kind.at_look(task)
    if settings.sample_documents is None:
        return task
    if not kind.can_be_sampled:
        able = ", ".join(repr(name) for name, other in TASK_KINDS.load_all() if other.can_be_sampled)
        raise InputError(
            f"a task of kind {kind.name!r} is about all of its documents",
            place="--sample-documents",
            remedy=f"sample only tasks of kind {able}",
        )
    return draw_sample(task, settings.sample_documents, lineup.seed)


@contextmanager
def _closing(preparation: Preparation, embeddings: Embeddings) -> Iterator[Preparation]:
    try:
        yield preparation
    finally:
        preparation.close()
        embeddings.close()


def _all_scored(preparation: Preparation, scorer: Scorer, rounds: int, settings: Settings) -> list[Scored | NotRun]:
    """Files first, since they cost nothing and may be wrong; then everyone who has to be asked, in turns."""
    done: dict[str, Scored | NotRun] = {}
    for given in preparation.given():
        done[given.contender.label] = attempt(given.contender, partial(scorer.read, given))
    rows = preparation.all()
    asked = [row for row in rows if isinstance(row, Prepared)]
    done |= {row.contender.label: row for row in rows if isinstance(row, NotRun)}
    for row in rows:
        if not isinstance(row, Prepared):
            scorer.skip(row.contender)
    answers = take_turns(asked, scorer.task, scorer.kind, rounds, settings.progress)
    with steps("scoring: contenders", len(asked)) as advance:
        for prepared, answered in zip(asked, answers, strict=True):
            contender = prepared.contender
            if isinstance(answered, NotRun):
                scorer.skip(contender)
                done[contender.label] = answered
            else:
                done[contender.label] = attempt(contender, partial(scorer.score, answered))
            advance(1)
    return scorer.with_disagreements([done[row.contender.label] for row in rows])


def _warnings(task: Task, lineup: Lineup) -> list[Fact]:
    warnings = task_warnings(task)
    deep = [str(measure) for measure in lineup.measures if (measure.k or 0) > task.candidates]
    if deep:
        warnings.append(fact("k_beyond_corpus", measures=deep, documents=task.candidates))
    shallow = [str(measure) for measure in lineup.measures if (measure.k or 0) > (lineup.depth or DEPTH)]
    if shallow:
        warnings.append(fact("k_beyond_depth", measures=shallow, depth=lineup.depth))
    if task.drawn_from:
        warnings.append(
            fact("sampled_documents", documents=len(task.documents), drawn_from=task.drawn_from, seed=lineup.seed)
        )
    weighted = [row.label for row in lineup.contenders if isinstance(row, Fused) and len(set(row.fusion.weights)) > 1]
    if weighted:
        warnings.append(fact("weights_as_given", labels=weighted))
    if task.graded_by_model:
        grades = sum(map(len, task.judgments.values()))
        warnings.append(fact("graded_by_model", by_model=task.graded_by_model, grades=grades))
    if identical := sum(bool(query.identical) for query in task.queries):
        warnings.append(fact("identical_ids", queries=identical))
    dated = [str(measure) for measure in lineup.measures if measure.reads_dates]
    if dated and (bound := sum(bool(query.as_of) for query in task.queries)) < len(task.queries):
        warnings.append(fact("dated_measures", measures=dated, dated=bound, queries=len(task.queries)))
    if lost := task.without_relevant():
        warnings.append(fact("without_relevant", queries=lost))
    return warnings
