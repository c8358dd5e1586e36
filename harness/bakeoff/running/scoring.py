"""Answers → per-query scores; tables of rerankers' gains, and of cross-validated fusion weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.facts import Fact, Section, TableCell, column, fact
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores, join, oracle, random_expectation, score_queries
from bakeoff.evaluation.validity import Validity
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.engines import Engine
from bakeoff.running.stages import Answered, Scored
from bakeoff.search.fusion import FOLDS, GRID, Fusion, FusionWeights, Tuned, fuse, grid, tune
from bakeoff.statistics.averaging import task_averaging
from bakeoff.systems.base import Given, NotRun
from bakeoff.systems.fused import Fused
from bakeoff.systems.reranked import RerankedRow
from bakeoff.tasks.kinds.base import Answers, Extras, FinishedRun, TaskKind


class Ungraded(InputError):
    """The task has no grades yet. A command that knows its path adds how to grade it."""


def check_graded(task: Task, notice: Callable[[Fact], None]) -> None:
    """Refuses a task on which every contender would score 0, after the remarks on its files, which may explain it."""
    if len(task.without_relevant()) < len(task.queries):
        return
    for note in task.notes:
        notice(note)
    if not any(task.judgments.values()):
        raise Ungraded(
            f"task {task.name!r} has no grades, so every contender would score 0",
            remedy="grade it first: bakeoff grade, or bakeoff grade import",
        )
    raise InputError(
        f"task {task.name!r}: no document has a grade of {task.rel} or more, so every contender would score 0",
        remedy="check the grades, or lower rel",
    )


def check_dates(task: Task, measures: Sequence[Measure], lineup: str) -> None:
    """Refuses a measure of dates if no query has a date."""
    for measure in measures:
        if measure.reads_dates and not task.time_bound:
            raise InputError(
                f"{measure} is for time-bound queries, and no query of task {task.name!r} has as_of",
                file=lineup or None,
                place="measures",
                remedy="give queries as_of and documents valid_from or valid_to, or leave the measure out",
            )


@dataclass(frozen=True, slots=True)
class Scorer:
    """One task and its measures, for all contenders of a run."""

    task: Task
    kind: TaskKind
    measures: Sequence[Measure]
    depth: int
    engine: Engine
    _validity: Validity | None = field(init=False)

    def __post_init__(self) -> None:
        dated = any(measure.reads_dates for measure in self.measures)
        object.__setattr__(self, "_validity", Validity.of(self.task) if dated else None)

    def read(self, given: Given) -> Scored:
        """Scores answers from files: the mean over seeds."""
        if given.rankings is not None:
            answers = Answers(given.contender, given.rankings, {})
            return Scored(given.contender, self._scored(answers), given.rankings)
        readings = {
            seed: self.kind.read(self.task, given.contender, seed, file, self._undated, self.depth)
            for seed, file in given.files.items()
        }
        first = next(iter(readings.values()))
        scores = self._mean([{**one.scores, **self._dated(one.rankings)} for one in readings.values()])
        return Scored(given.contender, scores, first.rankings, readings=readings)

    def score(self, answered: Answered) -> Scored:
        """The mean over rounds, which differ only for unstable contenders."""
        contender, stable = answered.contender, answered.stable
        distinct = answered.rounds if stable is False else answered.rounds[:1]
        scores = [self._scored(Answers(contender, rankings, answered.retrieved)) for rankings in distinct]
        return Scored(contender, self._mean(scores), answered.rounds[0], answered.retrieved, stable, answered.search)

    def baselines(self) -> dict[str, Scores]:
        """The oracle, the random order, and the kind's own baselines.

        They are cut at the contenders' depth, so that measures without a cut-off are comparable.
        """
        task, ids = self.task, [query.id for query in self.task.queries]
        best, stale = oracle(task.judgments, ids, task.candidates, self.depth), None
        if self._validity is not None:
            best = replace(best, stale=self._validity.in_perfect_rankings(task.judgments, self.depth))
            stale = self._validity.shares()
        chance = random_expectation(task.judgments, ids, task.candidates, self.measures, task.rel, self.depth, stale)
        return {
            "oracle": score_queries(best, self.measures, task.rel),
            "random": chance,
            **self.kind.baselines(task, self.measures, self.depth),
        }

    def _scored(self, answers: Answers) -> Scores:
        """Scores by the engine, unless the kind of task overrides it."""
        task = self.task
        if self.kind.scores_itself:
            return self.kind.score(task, answers, self.measures)
        ids = [query.id for query in task.queries]
        scores = self.engine.score(answers.rankings, task.judgments, ids, self._undated, task.rel)
        return {**scores, **self._dated(answers.rankings)}

    @property
    def _undated(self) -> list[Measure]:
        return [measure for measure in self.measures if not measure.reads_dates]

    def _dated(self, rankings: Mapping[str, Ranking]) -> Scores:
        """Measures of dates, which engines and kinds of task do not compute."""
        if self._validity is None:
            return {}
        ranked = join(rankings, self.task.judgments, [query.id for query in self.task.queries])
        dated = [measure for measure in self.measures if measure.reads_dates]
        return score_queries(replace(ranked, stale=self._validity.in_rankings(rankings)), dated, self.task.rel)

    def _mean(self, scores: Sequence[Scores]) -> Scores:
        return {measure: np.mean([values[measure] for values in scores], axis=0) for measure in self.measures}


def without_queries(
    left_out: Collection[str], task: Task, rows: Sequence[Scored | NotRun], baselines: Mapping[str, Scores]
) -> tuple[Task, list[Scored | NotRun], dict[str, Scores]]:
    """Task and scores without these queries. Rankings stay complete."""
    kept = np.array([query.id not in left_out for query in task.queries])

    def cut(scores: Scores) -> Scores:
        return {measure: values[kept] for measure, values in scores.items()}

    narrowed = msgspec.structs.replace(
        task,
        queries=[query for query in task.queries if query.id not in left_out],
        judgments={query: grades for query, grades in task.judgments.items() if query not in left_out},
    )
    cut_rows = [replace(row, scores=cut(row.scores)) if isinstance(row, Scored) else row for row in rows]
    return narrowed, cut_rows, {name: cut(scores) for name, scores in baselines.items()}


def with_gains(extras: Extras, finished: FinishedRun, ran: Sequence[Scored]) -> Extras:
    """Add a table of reranked rows, if any."""
    by_label, primary = {row.contender.label: row for row in ran}, finished.primary
    averaging = task_averaging(finished.task, finished.seed)
    rows: list[list[TableCell]] = []
    figures = {}
    for row in ran:
        contender = row.contender
        if not isinstance(contender, RerankedRow) or contender.rerank.of not in by_label or row.search is None:
            continue
        scores = {"after": row.scores[primary], "before": by_label[contender.rerank.of].scores[primary]}
        (pair,) = averaging.pairs(scores, bounded=primary.bounded)
        mean = averaging.mean(scores["before"])
        before = primary.figure(mean)
        after = primary.figure(averaging.mean(scores["after"]))
        gain = after - before  # of the figures that are shown, as are the ends of the interval
        low, high = (None if end is None else primary.figure(mean + end) - before for end in (pair.low, pair.high))
        samples = row.search.timing.rerank_ns
        milliseconds = float(np.median(samples)) / 1e6 if samples else None
        per = gain / milliseconds if milliseconds else None
        label = contender.label
        rows.append([label, before, after, gain, pair.p, milliseconds, per])
        figures[label] = {
            "of": contender.rerank.of, "measure": str(primary), "before": before, "after": after,
            "gain": gain, "low": low, "high": high, "p": pair.p, "median_ms": milliseconds,
            "gain_per_ms": per,
        }  # fmt: skip
    if not rows:
        return extras
    section = Section(
        title=fact("second_stage", measure=primary.label),
        head=[
            column("row"),
            column("first_stage", "fixed"),
            column("reranked", "fixed"),
            column("gain", "fixed", signed=True),
            column("p", "significant", 2),
            column("stage_p50", "fixed", 2, unit="ms"),
            column("gain_per_ms", "significant", 2, signed=True),
        ],
        rows=rows,
        notes=[fact("uncorrected_p")],
    )
    return extras.with_table("second_stage", figures, section)


def check_tunable(lineup: Lineup) -> None:
    """Raise before the run if there is nothing to tune."""
    if not any(isinstance(contender, Fused) for contender in lineup.contenders):
        raise InputError("--tune-weights needs a [[fusion]] in the line-up", remedy="see docs/concepts/kind-ordered.md")


def with_tuned_weights(
    extras: Extras, finished: FinishedRun, ran: Sequence[Scored], kind: TaskKind, depth: int
) -> Extras:
    """Add a table to the result. Rows of the matrix keep the line-up's weights, which are not fitted."""
    primary = finished.primary
    averaging = task_averaging(finished.task, finished.seed)
    rows: list[list[TableCell]] = []
    figures = {}
    by_label = {row.contender.label: row for row in ran}
    for row in ran:
        if not isinstance(row.contender, Fused) or not by_label.keys() >= set(row.contender.made_of):
            continue
        fusion = row.contender.fusion
        parts = [by_label[label] for label in fusion.of]
        tuned = tune(
            {weights: _scores(row, parts, fusion, weights, finished, kind, depth) for weights in grid(len(fusion.of))},
            averaging,
            finished.seed,
        )
        given, held_out = (
            primary.figure(averaging.mean(values)) for values in (row.scores[primary], tuned.out_of_fold)
        )
        in_sample = primary.figure(tuned.in_sample)
        label = row.contender.label
        rows.append([label, fusion.weights, given, tuned.weights, held_out, in_sample])
        figures[label] = _figures(tuned, fusion.of, str(primary), (given, held_out, in_sample))
    section = Section(
        title=fact("tuned_weights", measure=primary.label),
        head=[
            column("fusion"),
            column("weights_given", "ratio"),
            column("score", "fixed"),
            column("weights_tuned", "ratio"),
            column("out_of_fold", "fixed"),
            column("in_sample", "fixed"),
        ],
        rows=rows,
        notes=[fact("cross_validation", folds=FOLDS, step=1 / GRID, seed=finished.seed)],
    )
    return extras.with_table("tuned_weights", figures, section)


def _scores(
    row: Scored,
    parts: Sequence[Scored],
    fusion: Fusion,
    weights: FusionWeights,
    finished: FinishedRun,
    kind: TaskKind,
    depth: int,
) -> NDArray[np.float64]:
    """Per-query values of the primary measure under these weights."""
    rankings = {}
    for query in finished.task.queries:
        retrieved = [part.retrieved[query.id] for part in parts]
        fused = fuse(retrieved, fusion, weights).cut(depth)
        rankings[query.id] = kind.refine(query, fused)
    answers = Answers(row.contender, rankings, row.retrieved)
    return kind.score(finished.task, answers, [finished.primary])[finished.primary]


def _figures(
    tuned: Tuned, of: tuple[str, ...], primary: str, figures: tuple[float, float, float]
) -> Mapping[str, object]:
    given, held_out, in_sample = figures
    return {
        "of": list(of),
        "measure": primary,
        "given": given,
        "weights": list(tuned.weights),
        "fold_weights": [list(weights) for weights in tuned.fold_weights],
        "out_of_fold": held_out,
        "in_sample": in_sample,
        "per_query": tuned.out_of_fold.tolist(),
    }
