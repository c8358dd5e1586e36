"""Outcome → a folder under results/: all figures of one run, named by its time and line-up. Reports come later."""

from __future__ import annotations

from pathlib import Path

from bakeoff.core.files import write_parts
from bakeoff.lineup.labels import safe_label
from bakeoff.results import schema as results
from bakeoff.results.looks import earlier_looks
from bakeoff.results.summary import all_scores, detail, summarise
from bakeoff.running.runner import Outcome
from bakeoff.tasks.formats.trec import qrels_text, run_parts


def save(outcome: Outcome, out: Path | str, *, command: str = "") -> Path:
    """Writes the figures and says where: everything that a report is made from, and nothing that has to be drawn."""
    folder = Path(out) / f"{outcome.started:%Y%m%d-%H%M%S}-{safe_label(outcome.lineup.name)}"
    files: dict[str, results.Content] = {
        f"runs/{row.contender.label}.trec": run_parts(row.rankings, row.contender.label)
        for row in outcome.ran
        if row.rankings
    }
    files[results.QRELS] = qrels_text(outcome.task.judgments)
    if (every := all_scores(outcome)) is not None:
        files |= every.files()
    extras = outcome.extras
    looks = earlier_looks(outcome, Path(out))
    summary, detailed = summarise(outcome, command, looks), detail(outcome, looks)
    written = results.write(folder, summary, detailed, files | dict(extras.files))
    if extras.also:
        for name, content in extras.files.items():
            write_parts(extras.also / name, [content])
    return written
