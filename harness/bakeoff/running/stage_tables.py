"""Tables that a run adds to its result: gains of rerankers, and cross-validated fusion weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.facts import Section, TableCell, column, fact
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.stages import Scored
from bakeoff.search.fusion import FOLDS, GRID, Fusion, FusionWeights, Tuned, fuse, grid, tune
from bakeoff.statistics.averaging import task_averaging
from bakeoff.systems.fused import Fused
from bakeoff.systems.reranked import RerankedRow
from bakeoff.tasks.kinds.base import Answers, Extras, FinishedRun, TaskKind


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
