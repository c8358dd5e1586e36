"""Runs a line-up: prepares every contender, lets them take turns, and scores them."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
from bakeoff_providers import stopping
from bakeoff_providers.errors import InputError
from bakeoff_providers.secrets import without_secrets

from bakeoff.core.arrays import our_errstate
from bakeoff.core.clock import limit_calls
from bakeoff.core.facts import Fact, fact
from bakeoff.core.machine import Machine, machine
from bakeoff.core.paths import vectors_folder
from bakeoff.core.progress import Progress, showing, silent, steps
from bakeoff.core.task import Task
from bakeoff.embedding.preflight import task_warnings
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores
from bakeoff.lineup.checks import safe_label
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.draft import SUFFIX, Course, Draft, DraftHead, Drafts, head_of
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.engines import engine_of, with_shared_cache
from bakeoff.running.measuring import ExactComparison, Measuring
from bakeoff.running.prepare import Preparation, check, check_models
from bakeoff.running.scoring import (
    Scorer,
    check_dates,
    check_graded,
    check_tunable,
    with_gains,
    with_tuned_weights,
    without_queries,
)
from bakeoff.running.settings import Settings, this_machine
from bakeoff.running.stages import Answered, Compared, Scored
from bakeoff.search.stores.scratch import scratch
from bakeoff.systems.base import NotRun, Prepared
from bakeoff.systems.failures import Additions, attempt
from bakeoff.tasks.kinds import TASK_KINDS, load_kind
from bakeoff.tasks.kinds.base import Extras, FinishedRun, TaskKind
from bakeoff.tasks.load import draw_sample

__all__ = ["NotRun", "Outcome", "Scored", "Settings", "run", "vectors_folder"]

UNCOMPARED = fact("index_not_compared")
DEPTH = 100  # default depth of rankings


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a run measured, in arrays; `bakeoff.results.save` writes it to files."""

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
    no_verdict: str = ""  # reason id if rows can't be compared with each other
    fingerprint: str = ""  # of the task, if already known
    command: str = ""  # that began the run
    draft: Draft | None = None  # the source of this outcome, until a result is written

    def __repr__(self) -> str:
        return f"Outcome({self.lineup.name!r}: {len(self.ran)} rows, {len(self.not_run)} not run, {self.task!r})"

    @property
    def depth(self) -> int:
        """The maximum length of every ranking."""
        return min(self.lineup.depth or DEPTH, self.task.candidates)

    @property
    def ran(self) -> list[Scored]:
        """The contenders that ran."""
        return [row for row in self.contenders if isinstance(row, Scored)]

    @property
    def not_run(self) -> list[NotRun]:
        """The contenders that did not run, with their reasons."""
        return [row for row in self.contenders if isinstance(row, NotRun)]

    @property
    def scores(self) -> dict[str, dict[str, list[float]]]:
        """Per-query values by contender and measure, in the order of the task's queries."""
        return {
            row.contender.label: {str(measure): values.tolist() for measure, values in row.scores.items()}
            for row in self.ran
        }


def run(lineup: Lineup, settings: Settings | None = None) -> Outcome:
    """Runs a line-up. A contender that can't run keeps a row with the reason. An invalid task raises at once.

    If `settings` has a folder of drafts, an interrupted run is resumed.
    """
    settings = settings or Settings()
    settings = with_shared_cache(settings, settings.engine or lineup.engine)
    cache = settings.cache and settings.cache.resolve()  # other processes have another working folder
    settings = replace(settings, cache=cache)
    if settings.tune_weights:
        check_tunable(lineup)
    with showing(settings.progress, settings.notice):
        return _run(lineup, settings)


def finish(folder: Path, progress: Progress = silent) -> Outcome:
    """The outcome of a draft, without asking any query. Incomplete rows count as not run."""
    draft = Draft.open(folder)
    try:
        if not draft.has_rows:
            raise InputError("no row of this draft is complete", file=folder, remedy="run its line-up again")
        head = draft.head
        settings = Settings(
            cache=Path(head.cache) if head.cache else None,
            offline=True,
            progress=progress,
            tune_weights=head.tune_weights,
            vectors=tuple(map(Path, head.vectors)),
            sample_documents=head.sample_documents,
            drafts=Drafts(folder.parent),
        )
        with showing(progress):
            return _run(_lineup_of(head, folder), settings, draft)
    except BaseException:
        draft.close()
        raise


def _lineup_of(head: DraftHead, folder: Path) -> Lineup:
    """The line-up of a draft, read again."""
    named = [one for one in Lineup.read(head.file).per_task() if one.name == head.name]
    rows = {row.label: row for one in named for row in one.contenders}
    if not named or not rows.keys() >= set(head.labels):
        raise _changed(folder)
    return replace(
        named[0],
        contenders=tuple(rows[label] for label in head.labels),
        rounds=head.rounds,
        overrides=head.overrides,
        baseline=head.baseline,
        equivalent_within=head.equivalent_within,
    )


def _changed(folder: Path) -> InputError:
    remedy = "restore the line-up and its task, or run it again"
    return InputError("its line-up or task has changed since", file=folder, remedy=remedy)


def _run(lineup: Lineup, settings: Settings, left: Draft | None = None) -> Outcome:
    """A whole run, or the rest of one whose draft is given."""
    started, start = datetime.datetime.now(datetime.UTC), time.perf_counter()
    before = this_machine() if settings.recorded else machine()
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    task = task_of(kind, lineup, settings)
    depth = depth_of(lineup, kind, task)
    lineup = replace(lineup, depth=depth)
    measures = tuple(dict.fromkeys([*lineup.all_measures(), *map(Measure.parse, kind.measures)]))
    check_dates(task, measures, lineup.file)
    fingerprint = task.fingerprint() if settings.drafts else ""
    stopping.resume()
    with ExitStack() as stack:
        stack.enter_context(limit_calls(lineup.limits.build))
        engine = engine_of(settings.engine or lineup.engine)
        stack.callback(engine.close)
        embeddings = Embeddings(task, depth, settings, lineup.folder, engine, kind.vectors_of)
        folder = stack.enter_context(scratch())
        preparation = Preparation(lineup.contenders, embeddings, folder, lineup.limits)
        stack.callback(embeddings.close)
        stack.callback(preparation.close)
        if left is not None and left.head.question != head_of(lineup, fingerprint, before, 0).question:
            raise _changed(left.folder)
        draft = left or _open_draft(lineup, settings, fingerprint, started, before)
        if draft is None:
            draft = Draft(folder / "draft", DraftHead(name=lineup.name))
            stack.callback(draft.close)
        course = draft.course
        asks = left is None and not course.whole
        if asks:
            check_models(kind.models, embeddings)
            preparation.leave_out(check(lineup.contenders, embeddings))
            engine.start([*kind.models, *lineup.contenders], settings.cache, settings.vectors)
            judged = kind.judge(task, embeddings)
        else:
            judged = msgspec.structs.replace(task, judgments=draft.judgments())
        if judged.judgments != task.judgments:
            fingerprint = ""
        task = judged
        if settings.graded:
            check_graded(task, settings.notice)
        scorer = Scorer(task, kind, measures, depth, engine)
        done: dict[str, Scored | NotRun] = {
            row.contender.label: attempt(row.contender, partial(scorer.read, row)) for row in preparation.given()
        }
        rows = preparation.all() if asks else []
        if any(isinstance(row, Prepared) for row in rows) and not course.ended:
            measuring = Measuring(draft, task, kind, embeddings, lineup.limits)
            measuring.ask(rows, lineup.rounds, started.isoformat(), before)
            course = draft.course
        done |= {row.contender.label: row for row in rows if isinstance(row, NotRun)}
        comparison = ExactComparison(draft, task, [row for row in rows if isinstance(row, Prepared)]) if asks else None
        with our_errstate():
            contenders = _score_all(lineup, draft, course, scorer, comparison, done)
            additions = Additions()
            none: dict[str, Scores] = {}
            baselines = none if kind.no_verdict else additions.attempt("baselines", scorer.baselines, none)
            ran = [row for row in contenders if isinstance(row, Scored)]
            if settings.graded and (unlabelled := kind.find_unlabelled(ran)):
                task, contenders, baselines = without_queries(unlabelled, task, contenders, baselines)
                ran, fingerprint = [row for row in contenders if isinstance(row, Scored)], ""
            if course.sessions:
                started = datetime.datetime.fromisoformat(course.sessions[course.timed].started)
                before = course.sessions[course.timed].machine
            finished = FinishedRun(task, ran, baselines, lineup.primary, lineup.seed, started, embeddings)
            # Last, because a fault here must not lose paid answers.
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
        machine=course.ended.machine if course.ended else before,
        started=started,
        seconds=time.perf_counter() - start if asks or not course.ended else course.ended.seconds,
        warnings=(*noted, *additions.warnings),
        extras=extras,
        no_verdict=kind.no_verdict,
        fingerprint=fingerprint,
        command=draft.head.command,
        draft=draft if settings.drafts else None,
    )


def _open_draft(
    lineup: Lineup, settings: Settings, fingerprint: str, started: datetime.datetime, before: Machine
) -> Draft | None:
    """The draft that this run resumes, or a new one; None if drafts are off."""
    drafts = settings.drafts
    if drafts is None:
        return None
    head = head_of(lineup, fingerprint, before, settings.time_hosted)
    draft = drafts.left(head.question, head.means) if drafts.resume else None
    if draft is not None:
        settings.notice(fact("resumed", draft=str(draft.folder), whole=draft.course.whole))
    else:
        head = msgspec.structs.replace(
            head,
            sample_documents=settings.sample_documents,
            tune_weights=settings.tune_weights,
            cache=str(settings.cache) if settings.cache else None,
            vectors=[str(folder.resolve()) for folder in settings.vectors],
            command=without_secrets(drafts.command),
        )
        draft = Draft(drafts.folder / f"{started:%Y%m%d-%H%M%S}-{safe_label(lineup.name)}{SUFFIX}", head)
    drafts.opened.append(draft)
    return draft


def depth_of(lineup: Lineup, kind: TaskKind, task: Task) -> int:
    """The depth of rankings."""
    return lineup.depth or (len(task.documents) if kind.needs_full_ranking else DEPTH)


def task_of(kind: TaskKind, lineup: Lineup, settings: Settings) -> Task:
    """The kind's task, or the requested sample of it. Checks the rows against the kind."""
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


def _score_all(
    lineup: Lineup,
    draft: Draft,
    course: Course,
    scorer: Scorer,
    comparison: ExactComparison | None,
    done: Mapping[str, Scored | NotRun],
) -> list[Scored | NotRun]:
    """Scores every row from the draft. Rows asked by this process are compared with exact search."""
    scored = dict(done)
    queries = [query.id for query in scorer.task.queries]
    waiting = [row for row in lineup.contenders if row.label not in done]
    with steps("scoring: contenders", len(waiting)) as advance:
        for contender in waiting:
            answered = draft.read(contender, queries, course)
            if isinstance(answered, Answered):
                compared = comparison.of(answered) if comparison else answered.compared or Compared(fault=UNCOMPARED)
                whole = replace(answered, search=answered.search.beside(compared))
                scored[contender.label] = (
                    NotRun(contender, compared.failure)
                    if compared.failure
                    else attempt(contender, partial(scorer.score, whole))
                )
            else:
                scored[contender.label] = NotRun(contender, answered)
                if comparison:
                    comparison.skip(contender.label)
            advance(1)
    for label, compared in (comparison.end() if comparison and course.sessions else {}).items():
        row = scored[label]
        if isinstance(row, Scored) and row.search:
            scored[label] = replace(row, search=row.search.beside(compared))
    return [scored[contender.label] for contender in lineup.contenders]


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
    if weighted := [row.label for row in lineup.contenders if row.weighted]:
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
