"""What a second stage added and what it took: the gain in quality for each millisecond."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bakeoff.core.figures import Section
from bakeoff.running.stages import Scored
from bakeoff.statistics.averaging import averaging_of
from bakeoff.systems.reranked import RerankedRow
from bakeoff.tasks.kinds.base import Extras, FinishedRun


def with_gains(extras: Extras, finished: FinishedRun, ran: Sequence[Scored]) -> Extras:
    """A table of the rows that rerank another; nothing where there are none."""
    by_label, primary = {row.contender.label: row for row in ran}, finished.primary
    averaging = averaging_of([query.drawn for query in finished.task.queries], finished.seed)
    rows, figures = [], {}
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
        rows.append(
            [label, f"{before:.3f}", f"{after:.3f}", f"{gain:+.3f}", f"{pair.p:.2g}",
             "–" if milliseconds is None else f"{milliseconds:.2f}", "–" if per is None else f"{per:+.2g}"]
        )  # fmt: skip
        figures[label] = {
            "of": contender.rerank.of, "measure": str(primary), "before": before, "after": after,
            "gain": gain, "low": low, "high": high, "p": pair.p, "median_ms": milliseconds,
            "gain_per_ms": per,
        }  # fmt: skip
    if not rows:
        return extras
    section = Section(
        title=f"What the second stage added ({primary.label})",
        head=["Row", "first stage", "reranked", "gain", "p", "stage p50 ms", "gain per ms"],
        rows=rows,
        notes=["p is that of the paired test of the two rows, not corrected for the other rows of the matrix."],
    )
    return extras.with_table("second_stage", figures, section)
