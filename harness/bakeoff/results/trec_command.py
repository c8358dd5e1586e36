"""The command lines with which trec_eval gives the figures of a result: written into it, so that anyone can check."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.measures.base import options_of
from bakeoff.tasks.kinds import TASK_KINDS

QRELS_FILE, RUN_FILE = "judgments.qrels", "runs/{}.trec"


def trec_commands(task: Task, measures: Sequence[Measure], depth: int, labels: Sequence[str]) -> list[str]:
    """One line for each threshold and cut that trec_eval takes as an option; none where a kind scores otherwise.

    Every line is for the first contender; the others' run files are beside its own.
    """
    if not labels or TASK_KINDS.get(task.kind).scores_itself:
        return []
    commands: dict[tuple[int, int | None], list[str]] = {}
    for measure in measures:
        if (name := _name(measure, depth)) is not None:
            rel = measure.options.get("rel") or task.rel
            cut = measure.k if measure.k and measure.trec_cut_name is None else None  # mrr@10 is -M 10 -m recip_rank
            commands.setdefault((rel, cut), []).append(name)
    files = f"{QRELS_FILE} {shlex.quote(RUN_FILE.format(labels[0]))}"
    options = {(rel, cut): f"-l {rel}" + (f" -M {cut}" if cut else "") for rel, cut in commands}
    return [
        f"trec_eval -c {options[key]} {' '.join(f'-m {name}' for name in names)} {files}"
        for key, names in commands.items()
    ]


def _name(measure: Measure, depth: int) -> str | None:
    """What trec_eval calls a measure; None where it has none, or where an option makes it another one."""
    defaults = options_of(type(measure))
    if any(value != defaults[option] for option, value in measure.options.items() if option != "rel"):
        return None
    if measure.trec_cut_name and (measure.k or not measure.trec_name):
        return f"{measure.trec_cut_name}.{measure.k or depth}"
    return measure.trec_name
