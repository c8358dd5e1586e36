"""Judgments from clicks, for every pair that was examined often enough.

A position-based model separates a document's attractiveness from position bias. P(click) = P(the rank is examined) ·
P(the document attracts), both estimated by EM (Chuklin, Markov and de Rijke 2015, ch. 3). Only ratios of examination
are identifiable, so the first rank counts as always examined.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.facts import fact
from bakeoff.core.files import write_atomic
from bakeoff.extensions.production.search_log import Impression
from bakeoff.results.check import Check, Gauge

ITERATIONS = 500
SETTLED = 1e-6
PRIOR = 2.0  # the prior of a pair is worth this many examinations at the log's mean
GRID = 400
BLOCK = 4096  # pairs whose posteriors are in memory at once

Model = Literal["position", "ctr"]


@dataclass(frozen=True, slots=True)
class ClickCounts:
    """How often each pair of query and document was shown and clicked at each rank."""

    pairs: list[tuple[str, str]]
    shown: Values
    clicked: Values


@dataclass(frozen=True, slots=True)
class Attraction:
    """Attractiveness by pair: posterior mean and 95% interval; and how often each rank is examined.

    `bands` is each pair's posterior probability of every grade.
    """

    mean: Values
    low: Values
    high: Values
    examined: Values
    bands: Values


def count(impressions: Sequence[Impression], places: int) -> ClickCounts:
    """Count impressions and clicks in the first `places` ranks."""
    numbers: dict[tuple[str, str], int] = {}
    cells: list[tuple[int, int, bool]] = []
    for impression in impressions:
        clicked = set(impression.clicked)
        for place, document in enumerate(impression.shown[:places]):
            pair = numbers.setdefault((impression.query, document), len(numbers))
            cells.append((pair, place, document in clicked))
    table = np.array(cells, dtype=np.int64).reshape(-1, 3)
    size = len(numbers) * places
    flat: NDArray[np.int64] = table[:, 0] * places + table[:, 1]
    shown = np.bincount(flat, minlength=size).reshape(-1, places).astype(np.float64)
    hit = np.bincount(flat, table[:, 2], size).reshape(-1, places).astype(np.float64)
    return ClickCounts(list(numbers), shown, hit)


def fit(counts: ClickCounts, model: Model = "position", cuts: Sequence[float] = ()) -> Attraction:
    """Estimate the attractiveness of every pair; `ctr` treats every rank as examined."""
    shown, clicked = counts.shown, counts.clicked
    examined = np.ones(shown.shape[1])
    if model == "position":
        examined = _examination(shown, clicked)
    looked = (shown * examined).sum(axis=1)
    overall = float(np.clip(clicked.sum() / looked.sum(), 1e-3, 0.999))
    return _beliefs(shown, clicked, examined, overall, cuts)


def _examination(shown: Values, clicked: Values) -> Values:
    """EM over both unknowns; a rank that was never shown keeps its initial 1 / rank."""
    total = shown.sum(axis=0)
    used = total > 0
    examined = 1 / np.arange(1, shown.shape[1] + 1)
    rate = min(float(clicked.sum()) / max(float((shown * examined).sum()), 1.0), 0.999)
    a, b = PRIOR * rate, PRIOR * (1 - rate)
    attraction = np.full(len(shown), rate)
    skipped, views = shown - clicked, shown.sum(axis=1)
    for _ in range(ITERATIONS):
        unclicked = 1 - attraction[:, None] * examined
        # Not clicked: examined but not attractive, or attractive but not examined.
        looked = clicked + skipped * examined * (1 - attraction[:, None]) / unclicked
        attracted = clicked + skipped * attraction[:, None] * (1 - examined) / unclicked
        attraction = (attracted.sum(axis=1) + a) / (views + a + b)
        new = np.clip(np.divide(looked.sum(axis=0), total, out=examined.copy(), where=used), 1e-6, 1 - 1e-9)
        moved = float(np.abs(new - examined).max())
        examined = new
        if moved < SETTLED:
            break
    return np.asarray(np.minimum(examined / examined[0], 1.0), dtype=np.float64)


def _beliefs(shown: Values, clicked: Values, examined: Values, overall: float, cuts: Sequence[float]) -> Attraction:
    """Each pair's posterior on a grid, given the examination; the prior is the log's mean, worth two examinations."""
    grid = (np.arange(GRID) + 0.5) / GRID
    prior = (PRIOR * overall - 1) * np.log(grid) + (PRIOR * (1 - overall) - 1) * np.log(1 - grid)
    no_click = np.log1p(-np.minimum(np.outer(examined, grid), 1 - 1e-12))
    mean, low, high = (np.empty(len(shown)) for _ in range(3))
    bands, inside = np.empty((len(shown), len(cuts) + 1)), np.searchsorted(cuts, grid, side="right")
    of_band = (inside[:, None] == np.arange(len(cuts) + 1)).astype(np.float64)
    for start in range(0, len(shown), BLOCK):
        part = slice(start, start + BLOCK)
        hits = clicked[part]
        belief = prior + hits.sum(axis=1)[:, None] * np.log(grid) + (shown[part] - hits) @ no_click
        belief = np.exp(belief - belief.max(axis=1, keepdims=True))
        belief /= belief.sum(axis=1, keepdims=True)
        below = np.cumsum(belief, axis=1)
        mean[part], bands[part] = belief @ grid, belief @ of_band
        low[part], high[part] = (
            grid[(below < 0.025).sum(axis=1)],
            grid[np.minimum((below < 0.975).sum(axis=1), GRID - 1)],
        )
    return Attraction(mean, low, high, examined, bands)


CUTS = (0.1, 0.3, 0.6)  # least attractiveness of grades 1, 2, 3
WIDEST = 0.3  # pairs with a wider interval stay unjudged
SURE = 0.8  # least posterior probability of a grade


def judge_log(
    impressions: Sequence[Impression],
    out: Path,
    *,
    model: Model = "position",
    places: int = 10,
    cuts: Sequence[float] = CUTS,
    widest: float = WIDEST,
    sure: float = SURE,
) -> Check:
    """Fit the model, then grade and write the pairs; uncertain ones stay unjudged and are counted.

    A narrow interval may still straddle a cut. Then two grades are possible, and neither is written.
    """
    if list(cuts) != sorted(set(cuts)) or not all(0 < cut < 1 for cut in cuts):
        raise InputError(
            f"{list(cuts)} must increase and lie between 0 and 1", place="--cut", remedy="such as 0.1 0.3 0.6"
        )
    counts = count(impressions, places)
    relevance = fit(counts, model, cuts)
    grades = np.argmax(relevance.bands, axis=1)
    narrow = relevance.high - relevance.low <= widest
    known = narrow & (relevance.bands.max(axis=1) >= sure)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["query", "document", "grade", "attraction", "low", "high", "shown", "clicked"])
    for row in np.flatnonzero(known).tolist():
        query, document = counts.pairs[row]
        figures = [f"{value[row]:.4f}" for value in (relevance.mean, relevance.low, relevance.high)]
        seen = [int(counts.shown[row].sum()), int(counts.clicked[row].sum())]
        table.writerow([query, document, int(grades[row]), *figures, *seen])
    write_atomic(out, text.getvalue())
    kept, between = int(known.sum()), int((narrow & ~known).sum())
    by_grade = {str(grade): int((grades[known] == grade).sum()) for grade in range(len(cuts) + 1)}
    examined = relevance.examined.tolist()
    facts = [
        fact("production.clicks", lists=len(impressions), pairs=len(counts.pairs), model=model),
        *([fact("production.examination", by_rank=examined)] if model == "position" else []),
        fact("production.click_grades", judged=kept, sure=sure, by_grade=list(by_grade.values()),
             unjudged=len(counts.pairs) - kept, between=between),
        fact("written", file=str(out)),
    ]  # fmt: skip
    gauges = [Gauge("log_judged_pairs", "Pairs that clicks could grade", float(kept), {"model": model})]
    figures_ = {
        "pairs": len(counts.pairs), "judged": kept, "between_grades": between, "grades": by_grade,
        "examined": examined,
    }  # fmt: skip
    return Check(command="log judge", worse=False, facts=facts, figures=figures_, gauges=gauges)
