"""Judgments from clicks: a grade for every pair that was looked at often enough to be sure of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.files import write_atomic
from bakeoff.extensions.production.click_model import Model, count, fit
from bakeoff.results.check import Check, Gauge
from bakeoff.tasks.search_log import Impression

CUTS = (0.1, 0.3, 0.6)  # attraction from which the grade is 1, 2, 3
WIDEST = 0.3  # an interval of the attraction wider than this is no judgment
SURE = 0.8  # of the belief must be within the bounds of one grade


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
    """Fits the model, grades and writes; pairs that are not sure stay unjudged, and are counted.

    An interval may be narrow and still reach over a cut: then two grades are possible, and neither is written.
    """
    if list(cuts) != sorted(set(cuts)) or not all(0 < cut < 1 for cut in cuts):
        raise InputError(
            f"{list(cuts)} are no rising numbers between 0 and 1", place="--cut", remedy="such as 0.1 0.3 0.6"
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
    looks = ", ".join(f"{value:.2f}" for value in relevance.examined)
    graded = ", ".join(f"grade {grade}: {n}" for grade, n in by_grade.items())
    how = "position-based click model" if model == "position" else "click rate, which trusts every place alike"
    said = [
        f"{len(impressions)} lists, {len(counts.pairs)} pairs of query and document; {how}.",
        *([f"How often each place is looked at, against the first: {looks}."] if model == "position" else []),
        f"{kept} pairs have a grade that is at least {sure:.0%} likely ({graded}); {len(counts.pairs) - kept} stay "
        f"unjudged, {between} of them for being between two grades.",
        f"Written to {out}.",
    ]
    gauges = [Gauge("log_judged_pairs", "Pairs that clicks could grade", float(kept), {"model": model})]
    figures_ = {
        "pairs": len(counts.pairs), "judged": kept, "between_grades": between, "grades": by_grade,
        "examined": relevance.examined.tolist(),
    }  # fmt: skip
    return Check(command="log judge", worse=False, sentences=said, figures=figures_, gauges=gauges)
