"""Outcome → a folder under results/: all files of one run, named by its time and line-up."""

from __future__ import annotations

from pathlib import Path

from harness import results
from harness.formats.trec import qrels_text, run_text
from harness.report.html import page
from harness.report.matrix import markdown
from harness.runner import Outcome
from harness.summary import detail, summarise


def record(outcome: Outcome, out: Path) -> Path:
    """Writes the result and tells where it is."""
    summary = summarise(outcome)
    folder = out / f"{outcome.started:%Y%m%d-%H%M%S}-{outcome.lineup.name}"
    runs = {
        entrant.contender.label: run_text(entrant.rounds[0], entrant.contender.label)
        for entrant in outcome.ran
        if entrant.rounds and entrant.rounds[0]
    }
    results.write(
        folder,
        summary,
        detail(outcome),
        markdown(summary),
        page(summary),
        runs,
        {results.QRELS: qrels_text(outcome.task.judgments), **outcome.extras.files},
    )
    return folder
