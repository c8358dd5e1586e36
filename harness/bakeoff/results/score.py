"""Scores TREC runs like trec_eval, with intervals, and with significance tests for several runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import PairedDifference
from bakeoff.core.ranking import ScoredRun
from bakeoff.core.task import Judgments
from bakeoff.evaluation.measures import Measure, deepest
from bakeoff.evaluation.measures.grammar import measures_of
from bakeoff.evaluation.score import Scores, join, score_queries
from bakeoff.results.schema import QRELS, SUMMARY, read_summary
from bakeoff.statistics.best_set import best_set
from bakeoff.statistics.columns import table_of
from bakeoff.statistics.compare import compare
from bakeoff.statistics.constants import SEED
from bakeoff.statistics.small_samples import mean_intervals
from bakeoff.tasks.formats.trec import RunScores, read_plain_run, read_qrels, read_run

Precision = Literal["double", "single"]
SCORE_MEASURES = ("ndcg@10", "map", "mrr", "p@10", "recall@100")
NAMED = 3  # queries in a note


@dataclass(frozen=True, slots=True)
class ScoredRuns:
    """Every run on every measure: values per query, means with intervals, and all pairs of runs.

    `best` is the 95% confidence set of the best run, by measure.
    """

    queries: list[str]
    measures: list[Measure]
    runs: dict[str, Scores]
    intervals: dict[str, dict[Measure, tuple[float, float]]]
    pairs: dict[Measure, list[PairedDifference]] = field(default_factory=dict)
    best: dict[Measure, list[str]] = field(default_factory=dict)
    notes: list[Fact] = field(default_factory=list)
    precision: Precision = "double"
    rel: int = 1

    def mean(self, run: str, measure: Measure) -> float:
        """The mean."""
        return measure.aggregate(self.runs[run][measure])


def score(
    judgments: Judgments | Path | str,
    runs: Mapping[str, RunScores | Path | str],
    measures: Sequence[Measure | str] = SCORE_MEASURES,
    *,
    rel: int | None = None,
    answered: bool = False,
    precision: Precision = "double",
    seed: int = SEED,
) -> ScoredRuns:
    """Scores every judged query (trec_eval's -c), or only those that every run answered (its default).

    `precision` is that of sorting: double as in trec_eval 10, or single as in earlier versions and
    pytrec_eval. Judgments are grades by query and document, runs scores by query and document; each may be a TREC
    file too. `rel` is 1 by default, or the task's if the judgments come from a result.
    """
    chosen = _measures(measures)
    if isinstance(judgments, (str, Path)):
        rel = rel or task_rel(Path(judgments))
        judgments = read_qrels(Path(judgments))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        read = dict(zip(runs, pool.map(partial(_read, precision), runs.values()), strict=True))
    return _score(judgments, read, chosen, rel=rel or 1, answered=answered, precision=precision, seed=seed)


def task_rel(qrels: Path) -> int | None:
    """The lowest relevant grade of the result that these judgments belong to; qrels themselves can't say it."""
    return read_summary(qrels.parent).task.rel if qrels.name == QRELS and (qrels.parent / SUMMARY).is_file() else None


def _read(precision: Precision, run: RunScores | Path | str) -> ScoredRun:
    """Reads a run with the fast reader, or else with the general one."""
    kept = np.float32 if precision == "single" else np.float64
    if not isinstance(run, (str, Path)):
        return ScoredRun.of(run, kept)
    return read_plain_run(Path(run), kept) or ScoredRun.of(read_run(Path(run)), kept)


def _measures(given: Sequence[Measure | str]) -> list[Measure]:
    parsed = [[measure] if isinstance(measure, Measure) else measures_of(measure) for measure in given]
    return list(dict.fromkeys(measure for measures in parsed for measure in measures))


def _score(
    judgments: Judgments,
    runs: Mapping[str, ScoredRun],
    measures: Sequence[Measure],
    *,
    rel: int,
    answered: bool,
    precision: Precision,
    seed: int,
) -> ScoredRuns:
    queries = [query for query in judgments if not answered or all(query in run for run in runs.values())]
    if not queries:
        raise InputError("no judged query is in every run", remedy="check that runs and qrels name queries alike")
    for name, run in runs.items():
        if not any(query in run for query in judgments):
            raise InputError(f"{name} answers no judged query", remedy="check that runs and qrels name queries alike")
    depth = deepest(tuple(measures))

    def evaluate(run: ScoredRun) -> Scores:
        return score_queries(join(run, judgments, queries, depth), measures, rel)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        scores = dict(zip(runs, pool.map(evaluate, runs.values()), strict=True))
    by_measure = {measure: {name: values[measure] for name, values in scores.items()} for measure in measures}
    pairs = (
        {measure: compare(values, bounded=measure.bounded) for measure, values in by_measure.items()}
        if len(runs) > 1
        else {}
    )
    return ScoredRuns(
        queries=queries,
        measures=list(measures),
        runs=scores,
        intervals={name: _intervals(values, seed) for name, values in scores.items()},
        pairs=pairs,
        best={measure: _best_set(by_measure[measure], measure, seed) for measure in pairs},
        precision=precision,
        rel=rel,
        notes=_notes(judgments, runs, queries, rel, answered=answered),
    )


def _best_set(values: Mapping[str, Values], measure: Measure, seed: int) -> list[str]:
    """The runs that may be best, by mean."""
    found = best_set(table_of(list(values.values())), bounded=measure.bounded, seed=seed)
    inside = [run for run, within in zip(values, found.within, strict=True) if within]
    return sorted(inside, key=lambda run: -round(float(values[run].mean()), 12))


def run_names(paths: Sequence[Path]) -> list[str]:
    """Short, distinct names of the runs: file names, or whole paths if those are equal."""
    short = [path.name.removesuffix(".gz").removesuffix(".trec").removesuffix(".run") for path in paths]
    names = [str(path) if short.count(name) > 1 else name for path, name in zip(paths, short, strict=True)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"the run {min(twice)} is given twice", remedy="name every run once")
    return names


def _intervals(scores: Scores, seed: int) -> dict[Measure, tuple[float, float]]:
    bounded = [measure.bounded for measure in scores]
    low, high = mean_intervals(np.stack(list(scores.values()), axis=1), bounded=bounded, seed=seed)
    return {
        measure: (measure.figure(float(low[at])), measure.figure(float(high[at]))) for at, measure in enumerate(scores)
    }


def _notes(
    judgments: Judgments, runs: Mapping[str, ScoredRun], queries: Sequence[str], rel: int, *, answered: bool
) -> list[Fact]:
    """Notes on the figures."""
    notes = []
    if len(queries) < len(judgments):
        notes.append(fact("left_out", queries=len(judgments) - len(queries), judged=len(judgments)))
    for name, run in runs.items():
        lacking = [query for query in queries if query not in run]
        if lacking and not answered:
            notes.append(fact("run_lacks", run=name, count=len(lacking), named=lacking[:NAMED], of=len(queries)))
        if extra := [query for query in run if query not in judgments]:
            notes.append(fact("run_unjudged", run=name, count=len(extra), named=extra[:NAMED]))
    if lost := [query for query in queries if not any(grade >= rel for grade in judgments[query].values())]:
        notes.append(fact("nothing_relevant", count=len(lost), queries=lost[:NAMED]))
    return notes
