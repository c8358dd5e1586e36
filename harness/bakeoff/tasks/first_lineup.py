"""A first line-up for a task that is there: commented, and checked before it gets its name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bakeoff_providers import PROVIDERS, weights
from bakeoff_providers.files import replacing

from bakeoff.core.clock import SAMPLES_FOR
from bakeoff.core.task import Task
from bakeoff.core.toml_values import toml_value
from bakeoff.lineup.lineup import Lineup
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.ground_truth import GRADES, rel_line
from bakeoff.tasks.load import load_task
from bakeoff.tasks.task_sources import TaskSource

FEWEST_ROUNDS, MOST_ROUNDS = 3, 20


def write_lineup(out: Path, source: TaskSource, grading: str) -> Task:
    """Writes the line-up if it can be read back and its task can be loaded; otherwise nothing.

    `grading` is the command that grades this task, for a line-up whose task nobody has graded.
    """
    with replacing(out) as part:
        part.write_text(_text(source, ""), encoding="utf-8")
        task = load_task(Lineup.read(part).task, out.parent)
        highest = max((grade for row in task.judgments.values() for grade in row.values()), default=max(GRADES))
        source = replace(source, name=task.name) if source.own else source
        grading = "" if any(task.judgments.values()) else grading
        part.write_text(_text(source, grading, highest, _rounds(len(task.queries))), encoding="utf-8")
        Lineup.read(part)
    return task


def missing_weights(lineup: Path) -> list[str]:
    """The commands that get what the models of a line-up can't run without."""
    rows = Lineup.read(lineup).contenders
    named = (PROVIDERS.get(row.provider).needs().weights for row in rows if isinstance(row, EmbeddingRow))
    return [weights.pull_command(name) for name in dict.fromkeys(named) if name and not weights.present(name)]


def _rounds(queries: int) -> int:
    """As many as give few queries a p95 of their own, so that a first verdict has no gaps."""
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, math.ceil(SAMPLES_FOR[95] / max(queries, 1))))


def _text(source: TaskSource, grading: str, highest: int = max(GRADES), rounds: int = FEWEST_ROUNDS) -> str:
    lines = [
        "# A line-up: what is asked (the task) and who answers (the contenders). `bakeoff validate` checks it.",
        "",
        f"name = {toml_value(source.name)}",
        'measures = ["p@5", "recall@10", "mrr", "ndcg@10"]',
        'primary = "ndcg@10"                # decides who wins and who ties',
        f"rounds = {rounds}".ljust(35) + "# every query is asked this often",
    ]
    if grading:
        lines += ["", "# Nobody has graded this task yet. People grade on a page, with --judge llm a model does:"]
        lines += [f"#     {grading}"]
    lines += [""] + ([f"task = {toml_value(source.own)}"] if source.own else _task_lines(source, highest))
    return "\n".join([*lines, "", *_CONTENDERS, ""])


def _task_lines(source: TaskSource, highest: int) -> list[str]:
    """The task described in place; its columns come last, under a head of their own."""
    options = dict(source.options)
    columns = options.pop("columns", {})
    lines = ["[task]", f"name = {toml_value(source.name)}"]
    lines += [f"{key} = {toml_value(value)}" for key, value in options.items()]
    if any(option.name == "rel" for option in FORMATS.options(options["format"])):
        lines.append(rel_line(highest))
    if columns:
        lines += ["", "[task.columns]                     # what your files call their columns"]
        for table, named in columns.items():
            pairs = ", ".join(f"{column} = {toml_value(theirs)}" for column, theirs in named.items())
            lines.append(f"{table} = {{ {pairs} }}")
    return lines


_CONTENDERS: Sequence[str] = (
    "# These need no key and no network.",
    "",
    "[[contender]]",
    'ranker = "bm25"                    # words alone: what every model must beat',
    "",
    "[[contender]]",
    'provider = "minilm"                # bakeoff models pull minilm',
    'store = "faiss"                    # exact search; `bakeoff list` names all stores',
    "",
    "# A hosted model runs when its key is in the environment; --dry-run says what it would cost.",
    "",
    "# [[contender]]",
    '# provider = "openai"              # OPENAI_API_KEY',
    '# model = "text-embedding-3-small"',
    "# dimensions = [1536, 256]         # rows of their own, from one paid pass",
    '# store = "faiss"',
)
