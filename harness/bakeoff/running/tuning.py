"""`--tune-weights`: weights of every fusion by cross-validation over queries, reported by their out-of-fold score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.facts import Section, TableCell, column, fact
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.stages import Scored
from bakeoff.search.fusion import FOLDS, GRID, Fusion, FusionWeights, Tuned, fuse, grid, tune
from bakeoff.statistics.averaging import averaging_of
from bakeoff.systems.fused import Fused
from bakeoff.tasks.kinds.base import Answers, Extras, FinishedRun, TaskKind


def check_tunable(lineup: Lineup) -> None:
    """Says before anything runs that there is nothing to tune."""
    if not any(isinstance(contender, Fused) for contender in lineup.contenders):
        raise InputError("--tune-weights needs a [[fusion]] in the line-up", remedy="see docs/concepts/kind-ordered.md")


def with_tuned_weights(
    extras: Extras, finished: FinishedRun, ran: Sequence[Scored], kind: TaskKind, depth: int
) -> Extras:
    """Adds a table to the result. The rows of the matrix keep the weights of the line-up: those were not fitted."""
    primary = finished.primary
    averaging = averaging_of([query.drawn for query in finished.task.queries], finished.seed)
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
