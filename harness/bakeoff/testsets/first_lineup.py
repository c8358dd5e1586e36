"""A first line-up for files that are there: columns found by their usual names, checked before it gets its name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bakeoff_providers.errors import InputError
from bakeoff_providers.files import replacing

from bakeoff.lineup.lineup import Lineup
from bakeoff.tasks.formats.tables import read_table
from bakeoff.tasks.load import load_task
from bakeoff.testsets.source_tables import USUAL

QRELS = (".qrels", ".trec", ".txt")
COLUMNS = {
    "documents": ("id", "title", "text"),
    "queries": ("id", "text", "category"),
    "judgments": tuple(USUAL["judgments"]),
}
OPTIONAL = {"title", "category"}


def columns_of(path: Path) -> list[str]:
    """The columns of a table's first row."""
    for _, row in read_table(path).rows:
        return list(row)
    raise InputError("has no rows", file=path, remedy="put at least one row into it")


def found_columns(table: str, path: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What the file calls each column; one that is needed and not found is the user's to name."""
    names = columns_of(path)
    chosen: dict[str, str] = {}
    for column in COLUMNS[table]:
        usual = USUAL[table][column]
        by_name = {name.lower(): name for name in names}
        name = given.get(f"{table}.{column}") or next((by_name[word] for word in usual if word in by_name), "")
        if name and name not in names:
            raise InputError(
                f"has no column {name!r}", file=path, place="--column", remedy=f"it has {', '.join(names)}"
            )
        if not name and column not in OPTIONAL:
            raise InputError(
                f"none of the columns ({', '.join(names)}) is usual for the {column}", file=path,
                remedy=f"name it: --column {table}.{column}={names[0]}",
            )  # fmt: skip
        if name:
            chosen[column] = name
    return chosen


def labels_of(path: Path, column: str) -> list[str]:
    """The labels of a column of grades that are no numbers, in the order of their first row."""
    values = dict.fromkeys(str(row[column]).strip() for _, row in read_table(path).rows if column in row)
    return [] if all(value.lstrip("-").isdecimal() for value in values) else list(values)


def write_lineup(
    out: Path, documents: Path, queries: Path, judgments: Path, *, name: str, given: Mapping[str, str],
    grades: Mapping[str, int],
) -> Path:  # fmt: skip
    """Writes the line-up if it can be read back and its task can be loaded; otherwise nothing."""
    qrels = Path(judgments.name.removesuffix(".gz")).suffix in QRELS
    columns = {"documents": found_columns("documents", documents, given)}
    columns["queries"] = found_columns("queries", queries, given)
    if not qrels:
        columns["judgments"] = found_columns("judgments", judgments, given)
        labels = labels_of(judgments, columns["judgments"]["grade"])
        if unknown := [label for label in labels if label not in grades]:
            example = " ".join(f"--grade {json.dumps(label)}={place}" for place, label in enumerate(reversed(labels)))
            raise InputError(
                f"the grade {unknown[0]!r} is no number", file=judgments, remedy=f"say what each is worth: {example}"
            )
    files = {"documents": documents, "queries": queries, "judgments": judgments}
    places = {table: os.path.relpath(path, out.parent) for table, path in files.items()}
    with replacing(out) as part:
        part.write_text(_text(name, places, columns, grades), encoding="utf-8")
        lineup = Lineup.read(part)
        load_task(lineup.task, out.parent)
    return out


def _text(
    name: str, places: Mapping[str, str], columns: Mapping[str, Mapping[str, str]], grades: Mapping[str, int]
) -> str:
    lines = [
        "# A line-up: what is asked (the task) and who answers (the contenders). `bakeoff validate` checks it.",
        "",
        f"name = {json.dumps(name)}",
        'measures = ["p@5", "recall@10", "mrr", "ndcg@10"]',
        'primary = "ndcg@10"                # decides who wins and who ties',
        "rounds = 3                         # every query is asked this often",
        "",
        "[task]",
        f"name = {json.dumps(name)}",
        'format = "tables"                  # others: docs/tasks.md',
        *(f"{table} = {json.dumps(place, ensure_ascii=False)}" for table, place in places.items()),
        "rel = 1                            # the lowest grade that counts as relevant",
    ]
    if grades:
        pairs = ", ".join(f"{json.dumps(label, ensure_ascii=False)} = {grade}" for label, grade in grades.items())
        lines.append(f"grades = {{ {pairs} }}")
    lines += ["", "[task.columns]                     # what your files call their columns"]
    for table, named in columns.items():
        pairs = ", ".join(f"{column} = {json.dumps(theirs, ensure_ascii=False)}" for column, theirs in named.items())
        lines.append(f"{table} = {{ {pairs} }}")
    return "\n".join([*lines, "", *_CONTENDERS, ""])


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
