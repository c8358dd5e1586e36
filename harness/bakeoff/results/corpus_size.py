"""Scores against the size of the corpus: nested samples from the same vectors, and what they come to beyond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import Outcome, run
from bakeoff.running.settings import Settings
from bakeoff.statistics.averaging import WEIGHTED, Averaging, averaging_of
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.growth import Extrapolation, extrapolate
from bakeoff.tasks.sample import needed

SMALLEST = 64  # the smallest sample is at least this part of the corpus


class Point(msgspec.Struct, frozen=True):
    """The mean over the queries at one size, with its interval."""

    documents: int
    mean: float
    low: float | None
    high: float | None


class Growth(msgspec.Struct, frozen=True):
    """One contender at every size, and the estimate at the size that was asked for."""

    label: str
    points: list[Point]
    estimate: Extrapolation | None = None


class CorpusSizes(msgspec.Struct, frozen=True, kw_only=True):
    """What `bakeoff corpus-size` found; `changes` say who overtakes whom, `weighting` what counts as a query.

    `target` is the size that estimates are for.
    """

    name: str
    task: str
    measure: str
    queries: int
    seed: int
    sizes: list[int]
    rows: list[Growth]
    changes: list[str]
    not_run: dict[str, str] = {}
    weighting: str = ""
    target: int | None = None


def corpus_sizes(
    lineup: Lineup, settings: Settings, sizes: Sequence[int] = (), documents: int | None = None
) -> CorpusSizes:
    """Runs all documents first, so that every vector is there, and then ever smaller samples of them."""
    once = replace(lineup, rounds=1)
    whole = run(once, settings)
    total, fewest = len(whole.task.documents), len(needed(whole.task))
    chosen = [*(sizes or usual_sizes(total, fewest)), total]
    if any(not fewest <= size <= total for size in chosen):
        raise InputError(
            f"sizes must be from {fewest} (documents with a grade) to {total}", place="--sizes", remedy="leave it out"
        )
    chosen = sorted(set(chosen))
    smaller = {size: _scores(run(once, replace(settings, sample_documents=size))) for size in chosen[:-1]}
    scores = {**smaller, total: _scores(whole)}
    ran = [row.contender.label for row in whole.ran]
    labels = [label for label in ran if all(label in by_label for by_label in scores.values())]
    tables = {label: np.stack([scores[size][label] for size in chosen]) for label in labels}
    averaging = averaging_of([query.drawn for query in whole.task.queries], lineup.seed)
    return CorpusSizes(
        name=lineup.name,
        task=whole.task.name,
        measure=str(lineup.primary),
        queries=len(whole.task.queries),
        seed=lineup.seed,
        sizes=chosen,
        rows=[_growth(label, table, chosen, documents, averaging) for label, table in tables.items()],
        changes=order_changes(tables, chosen, averaging),
        not_run={row.contender.label: row.reason for row in whole.not_run},
        weighting="" if averaging.weights is None else WEIGHTED,
        target=documents,
    )


def usual_sizes(total: int, fewest: int) -> list[int]:
    """1, 3, 10, 30 … thousand, from a 64th of the corpus on, and never fewer than hold what is judged."""
    steps = [step * 10**power for power in range(2, 10) for step in (1, 3)]
    return [size for size in steps if max(fewest, total / SMALLEST) <= size < total]


def order_changes(tables: dict[str, Values], sizes: Sequence[int], averaging: Averaging) -> list[str]:
    """Whoever is behind at the smallest size and ahead at the largest, and whether the queries show it there."""
    sentences = []
    for a, b in combinations(tables, 2):
        first, last = (averaging.mean(tables[a][at] - tables[b][at]) for at in (0, -1))
        if first * last >= 0:
            continue
        loser, winner = (a, b) if first > 0 else (b, a)
        differences = np.stack([tables[winner][at] - tables[loser][at] for at in (0, -1)], axis=1)
        shown = int(np.count_nonzero(averaging.p_zero(differences) <= ALPHA))
        sure = {2: "shown at both sizes", 1: "shown at one of them only", 0: "within chance at both"}[shown]
        sentences.append(
            f"{winner} is behind {loser} with {sizes[0]:,} documents ({-abs(first):+.3f}) and ahead with {sizes[-1]:,} "
            f"({abs(last):+.3f}): {sure}."
        )
    return sentences


def _scores(outcome: Outcome) -> dict[str, Values]:
    return {row.contender.label: row.scores[outcome.lineup.primary] for row in outcome.ran}


def _growth(label: str, table: Values, sizes: Sequence[int], documents: int | None, averaging: Averaging) -> Growth:
    low, high = averaging.intervals(table.T)
    points = [
        Point(size, averaging.mean(table[at]), _finite(low[at]), _finite(high[at])) for at, size in enumerate(sizes)
    ]
    if not documents:
        return Growth(label, points)
    alike = np.stack([averaging.linear(values) for values in table])
    return Growth(label, points, extrapolate(alike, sizes, documents))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
