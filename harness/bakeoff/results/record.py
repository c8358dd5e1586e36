"""Outcome → a folder under results/: all files of one run, named by its time and line-up."""

from __future__ import annotations

from pathlib import Path

from bakeoff.report import report_files
from bakeoff.results import schema as results
from bakeoff.results.summary import detail, summarise
from bakeoff.run.runner import Outcome
from bakeoff.tasks.formats.trec import qrels_text, run_text


def record(outcome: Outcome, out: Path | str, *, command: str = "", pictures: bool = False) -> Path:
    """Writes the result and tells where it is; pictures of the charts take seconds, so they are asked for."""
    summary, detailed = summarise(outcome), detail(outcome)
    summary.command = command
    folder = Path(out) / f"{outcome.started:%Y%m%d-%H%M%S}-{outcome.lineup.name}"
    files = report_files(summary, detailed, pictures=pictures)
    for entrant in outcome.ran:
        if entrant.rounds and entrant.rounds[0]:
            label = entrant.contender.label
            files[f"runs/{label}.trec"] = run_text(entrant.rounds[0], label)
    files[results.QRELS] = qrels_text(outcome.task.judgments)
    results.write(folder, summary, detailed, files | dict(outcome.extras.files))
    return folder
