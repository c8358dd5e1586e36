"""`--tune-weights`: weights of every fusion by cross-validation over queries, reported by their out-of-fold score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.figures import Section
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.stages import Scored
from bakeoff.search.fusion import FOLDS, GRID, Fusion, FusionWeights, Tuned, fuse, grid, tune
from bakeoff.statistics.averaging import averaging_of
from bakeoff.systems.fused import Fused
from bakeoff.tasks.kinds.base import Answers, Extras, FinishedRun, TaskKind


def check_tunable(lineup: Lineup) -> None:
    """Says before anything runs that there is nothing to tune."""
    if not any(isinstance(contender, Fused) for contender in lineup.contenders):
        raise InputError("--tune-weights needs a [[fusion]] in the line-up", remedy="see docs/ordered.md")


def with_tuned_weights(
    extras: Extras, finished: FinishedRun, ran: Sequence[Scored], kind: TaskKind, depth: int
) -> Extras:
    """Adds a table to the result. The rows of the matrix keep the weights of the line-up: those were not fitted."""
    primary = finished.primary
    averaging = averaging_of([query.drawn for query in finished.task.queries], finished.seed)
    rows, figures = [], {}
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
        rows.append(
            [label, _shown(fusion.weights), f"{given:.3f}", _shown(tuned.weights), f"{held_out:.3f}",
             f"{in_sample:.3f}"]
        )  # fmt: skip
        figures[label] = _figures(tuned, fusion.of, str(primary), (given, held_out, in_sample))
    section = Section(
        title=f"Tuned weights ({primary.label})",
        head=["Fusion", "weights given", "score", "weights tuned", "out-of-fold score", "(in sample)"],
        rows=rows,
        notes=[
            f"{FOLDS}-fold cross-validation over queries, weights in steps of {1 / GRID:g}, seed {finished.seed}. Only "
            "the out-of-fold score may be quoted for tuned weights: each query has weights chosen without it."
        ],
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


def _shown(weights: FusionWeights) -> str:
    return " : ".join(f"{weight:g}" for weight in weights)


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
