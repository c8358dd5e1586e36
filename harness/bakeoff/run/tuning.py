"""`--tune-weights`: weights of every fusion by cross-validation over queries, reported by their out-of-fold score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.results.schema import Section
from bakeoff.search.fusion import FOLDS, GRID, Tuned, Weights, grid, tune, weighted_rrf

if TYPE_CHECKING:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.run.prepare import Entrant
    from bakeoff.run.runner import Outcome
    from bakeoff.tasks.kinds.base import Kind


def check_tunable(lineup: Lineup) -> None:
    """Says before anything runs that there is nothing to tune."""
    if not any(contender.fusion for contender in lineup.contenders):
        raise InputError("--tune-weights needs a [[fusion]] in the line-up", remedy="see docs/ordered.md")


def tuned_fusions(outcome: Outcome, kind: Kind) -> None:
    """Adds a table to the result. The rows of the matrix keep the weights of the line-up: those were not fitted."""
    primary, seed = outcome.lineup.primary, outcome.lineup.seed
    rows, figures = [], {}
    entrants = {entrant.contender.label: entrant for entrant in outcome.ran}
    for entrant in outcome.ran:
        fusion = entrant.contender.fusion
        if fusion is None:
            continue
        found = tune(
            {weights: _scored(entrant, entrants, weights, outcome, kind) for weights in grid(len(fusion.of))}, seed
        )
        given, held_out = float(entrant.scores[primary].mean()), float(found.out_of_fold.mean())
        label = entrant.contender.label
        rows.append(
            [label, _shown(fusion.weights), f"{given:.3f}", _shown(found.weights), f"{held_out:.3f}",
             f"{found.in_sample:.3f}"]
        )  # fmt: skip
        figures[label] = _figures(found, fusion.of, str(primary), given)
    outcome.extras.figures["tuned_weights"] = figures
    outcome.extras.sections.append(
        Section(
            title=f"Tuned weights ({primary.label})",
            head=["Fusion", "weights given", "score", "weights tuned", "out-of-fold score", "(in sample)"],
            rows=rows,
            notes=[
                f"{FOLDS}-fold cross-validation over queries, weights in steps of {1 / GRID:g}, seed {seed}. Only the "
                "out-of-fold score may be quoted for tuned weights: each query has weights chosen without it."
            ],
        )
    )


def _scored(
    entrant: Entrant, entrants: dict[str, Entrant], weights: Weights, outcome: Outcome, kind: Kind
) -> NDArray[np.float64]:
    fusion = entrant.contender.fusion
    assert fusion is not None
    answered = {}
    for query in outcome.task.queries:
        rankings = [entrants[label].found[query.id] for label in fusion.of]
        fused = weighted_rrf(rankings, weights, fusion.c, fusion.top_n).cut(outcome.lineup.depth or len(rankings[0]))
        answered[query.id] = kind.refine(query, fused)
    primary = outcome.lineup.primary
    return kind.score(entrant, answered, outcome.task, [primary])[primary]


def _shown(weights: Weights) -> str:
    return " : ".join(f"{weight:g}" for weight in weights)


def _figures(found: Tuned, of: tuple[str, ...], primary: str, given: float) -> dict[str, object]:
    return {
        "of": list(of),
        "measure": primary,
        "given": given,
        "weights": list(found.weights),
        "fold_weights": [list(weights) for weights in found.fold_weights],
        "out_of_fold": float(found.out_of_fold.mean()),
        "in_sample": found.in_sample,
        "per_query": found.out_of_fold.tolist(),
    }
