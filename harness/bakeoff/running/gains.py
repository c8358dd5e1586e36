"""What a second stage added and what it took: the gain in quality for each millisecond."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bakeoff.core.facts import Section, TableCell, column, fact
from bakeoff.running.stages import Scored
from bakeoff.statistics.averaging import task_averaging
from bakeoff.systems.reranked import RerankedRow
from bakeoff.tasks.kinds.base import Extras, FinishedRun


def with_gains(extras: Extras, finished: FinishedRun, ran: Sequence[Scored]) -> Extras:
    """A table of the rows that rerank another; nothing where there are none."""
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
