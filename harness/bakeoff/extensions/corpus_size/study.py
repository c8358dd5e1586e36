"""Scores by corpus size: nested samples of the same vectors, and estimates for larger corpora."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.measures.base import figure_of
from bakeoff.extensions.corpus_size.growth import Extrapolation, extrapolate
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.running.runner import Outcome, run
from bakeoff.running.settings import Settings
from bakeoff.statistics.averaging import Averaging, task_averaging
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.tests import holm_of_distinct, hypothesis_of
from bakeoff.tasks.load import find_required

SMALLEST = 64  # the smallest sample is at least 1/64 of the corpus


class SizePoint(msgspec.Struct, frozen=True):
    """The mean over the queries at one size, with its interval."""

    documents: int
    mean: float
    low: float | None
    high: float | None


class Growth(msgspec.Struct, frozen=True):
    """One contender at every size, and the estimate at the target size."""

    label: str
    points: list[SizePoint]
    estimate: Extrapolation | None = None


class CorpusSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `bakeoff corpus-size`. `changes` lists overtakings; `weighting` is "traffic" or empty.

    `target` is the size of the estimates.
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
    """Run the whole corpus first, which caches every vector, then its samples."""
    once = replace(lineup, rounds=1)
    whole = run(once, settings)
    total, fewest = len(whole.task.documents), len(find_required(whole.task))
    if fewest == total:
        raise InputError(
            f"all {total:,} documents have a grade, and samples keep all of these, so none is smaller",
            remedy="add documents without a grade: this measures how they compete with graded ones",
        )
    chosen = [*(sizes or usual_sizes(total, fewest)), total]
    if any(not fewest <= size <= total for size in chosen):
        raise InputError(
            f"sizes must be from {fewest} (documents with a grade) to {total}", place="--sizes", remedy="leave it out"
        )
    chosen = sorted(set(chosen))
    lost = {row.contender.label: failure_words(row.failure) for row in whole.not_run}
    scores, ran = {total: _scores(whole)}, [row.contender.label for row in whole.ran]
    name, queries, averaging = whole.task.name, len(whole.task.queries), task_averaging(whole.task, lineup.seed)
    del whole  # frees its corpus and rankings
    for size in chosen[:-1]:
        sample = run(once, replace(settings, sample_documents=size))
        scores[size] = _scores(sample)
        for row in sample.not_run:
            lost.setdefault(row.contender.label, f"with {size:,} documents: {failure_words(row.failure)}")
        del sample
    labels = [label for label in ran if all(label in by_label for by_label in scores.values())]
    tables = {label: np.stack([scores[size][label] for size in chosen]) for label in labels}
    return CorpusSizes(
        name=lineup.name,
        task=name,
        measure=str(lineup.primary),
        queries=queries,
        seed=lineup.seed,
        sizes=chosen,
        rows=[_growth(label, table, chosen, documents, averaging, lineup.primary) for label, table in tables.items()],
        changes=order_changes(tables, chosen, averaging, bounded=lineup.primary.bounded),
        not_run=lost,
        weighting="" if averaging.weights is None else "traffic",
        target=documents,
    )


def usual_sizes(total: int, fewest: int) -> list[int]:
    """Sizes 100, 300, 1,000, 3,000 … from a 64th of the corpus, large enough for every graded document."""
    steps = [step * 10**power for power in range(2, 10) for step in (1, 3)]
    return [size for size in steps if max(fewest, total / SMALLEST) <= size < total]


def order_changes(
    tables: dict[str, Values], sizes: Sequence[int], averaging: Averaging, *, bounded: bool = True
) -> list[str]:
    """Which row overtakes which between sizes, and where the lead is significant.

    Holm's correction covers every size of every distinct pair that changes order, since each is tested for a lead.
    """
    changing: list[tuple[str, str, Values, list[range]]] = []
    for a, b in combinations(tables, 2):
        ahead = np.round([averaging.mean(values) for values in tables[a] - tables[b]], 12)  # no lead by rounding
        stretches = _stretches(ahead)
        if len(stretches) > 1:
            changing.append((a, b, ahead, stretches))
    if not changing:
        return []
    first = np.concatenate([tables[a] for a, _, _, _ in changing])
    second = np.concatenate([tables[b] for _, b, _, _ in changing])
    pairs = [(at, len(first) + at) for at in range(len(first))]
    tested = averaging.differences(np.concatenate((first, second)).T, pairs, bounded=bounded)
    asked = [hypothesis_of(one) for one in differences_of(first, second)]
    shown = (holm_of_distinct(tested.p, asked) <= ALPHA).reshape(len(changing), len(sizes))
    return [
        _overtaking((a, b), ahead, shown[at], sizes, pair)
        for at, (a, b, ahead, stretches) in enumerate(changing)
        for pair in pairwise(stretches)
    ]


def _stretches(ahead: Values) -> list[range]:
    """Split the sizes where the lead changes. A tie belongs to the stretch before it."""
    leads = np.flatnonzero(ahead)
    starts = [0, *(int(after) for before, after in pairwise(leads) if ahead[before] * ahead[after] < 0)]
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(ahead)], strict=True)]


def _overtaking(
    labels: tuple[str, str],
    ahead: Values,
    shown: NDArray[np.bool_],
    sizes: Sequence[int],
    stretches: tuple[range, range],
) -> str:
    """One change of order: where it happened, and the nearest sizes with a significant lead."""
    before, after = stretches
    last, first = max(at for at in before if ahead[at]), after[0]
    loser, winner = labels if ahead[last] > 0 else labels[::-1]
    led = next((sizes[at] for at in reversed(before) if shown[at]), None)
    leads = next((sizes[at] for at in after if shown[at]), None)
    if led and leads:
        sure = f"the queries show {loser} ahead with {led:,} and {winner} ahead with {leads:,}"
    elif led:
        sure = f"the queries show {loser} ahead with {led:,}, and not {winner} after it"
    elif leads:
        sure = f"the queries show {winner} ahead with {leads:,}, and not {loser} before it"
    else:
        sure = "the queries show neither ahead"
    return (
        f"{winner} is behind {loser} with {sizes[last]:,} documents ({-abs(ahead[last]):+.3f}) and ahead with "
        f"{sizes[first]:,} ({abs(ahead[first]):+.3f}): {sure}."
    )


def _scores(outcome: Outcome) -> dict[str, Values]:
    return {row.contender.label: row.scores[outcome.lineup.primary] for row in outcome.ran}


def _growth(
    label: str, table: Values, sizes: Sequence[int], documents: int | None, averaging: Averaging, measure: Measure
) -> Growth:
    low, high = averaging.intervals(table.T, measure.bounded)
    points = [
        SizePoint(
            size, measure.figure(averaging.mean(table[at])), figure_of(measure, low[at]), figure_of(measure, high[at])
        )
        for at, size in enumerate(sizes)
    ]
    if not documents or not measure.bounded:  # estimates need scores from 0 to 1
        return Growth(label, points)
    alike = np.stack([averaging.linear(values) for values in table])
    return Growth(label, points, extrapolate(alike, sizes, documents))
