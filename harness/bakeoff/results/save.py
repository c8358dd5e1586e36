"""Writes an outcome to a folder under results/, named by time and line-up. Reports come later."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec

from bakeoff.core.arrays import our_errstate
from bakeoff.core.files import write_parts
from bakeoff.core.progress import Progress, silent
from bakeoff.lineup.checks import safe_label
from bakeoff.results import schema as results
from bakeoff.results.looks import earlier_looks
from bakeoff.results.summary import FAULT, all_scores, bare_summary, detail, summarise
from bakeoff.running.runner import Outcome, finish
from bakeoff.systems.failures import Additions
from bakeoff.tasks.formats.trec import qrels_text, run_parts

NO_DETAIL = results.Detailed(queries={}, titles={}, contenders=[], baselines={})


def save(outcome: Outcome, out: Path | str, *, command: str = "") -> Path:
    """Writes the figures and returns the folder. Nothing is rendered here.

    A fault loses only its part, which the result records. The draft is removed if nothing is missing.
    """
    command = command or outcome.command
    folder = Path(out) / f"{outcome.started:%Y%m%d-%H%M%S}-{safe_label(outcome.lineup.name)}"
    additions, extras = Additions(), outcome.extras
    with our_errstate():
        files: dict[str, results.Content] = {
            f"runs/{row.contender.label}.trec": run_parts(row.rankings, row.contender.label)
            for row in outcome.ran
            if row.rankings
        }
        files[results.QRELS] = (qrels_text(judgments) for judgments in [outcome.task.judgments])
        if (every := additions.attempt("all_scores", partial(all_scores, outcome), None)) is not None:
            files |= every.files()
        looks = additions.attempt("looks", partial(earlier_looks, outcome, Path(out)), None)
        detailed = additions.attempt("details", partial(detail, outcome, looks), NO_DETAIL)
        try:
            summary = summarise(outcome, command, looks)
        except Exception as error:  # measurements must survive a fault in what is derived from them
            summary = bare_summary(outcome, command, error)
        summary = msgspec.structs.replace(summary, warnings=[*summary.warnings, *additions.warnings])
        written = results.write(folder, summary, detailed, files | dict(extras.files))
    if extras.also:
        for name, content in extras.files.items():
            write_parts(extras.also / name, [content])
    if outcome.draft and summary.verdict.without_verdict != FAULT:
        outcome.draft.remove()
    return written


def save_draft(folder: Path, progress: Progress = silent) -> Path:
    """Writes the result of a draft into the folder next to it."""
    outcome = finish(folder, progress)
    try:
        return save(outcome, folder.parent)
    finally:
        if outcome.draft:
            outcome.draft.close()
