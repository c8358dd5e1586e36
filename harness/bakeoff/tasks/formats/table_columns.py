"""Columns of a user's tables, by common names or as given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bakeoff_providers.errors import InputError

from bakeoff.tasks.formats.cells import Row
from bakeoff.tasks.formats.rows import whole
from bakeoff.tasks.formats.source_tables import USUAL, match_columns
from bakeoff.tasks.formats.tables import read_table

COLUMNS = {
    "documents": ("id", "title", "text"),
    "queries": ("id", "text", "category", "where"),
    "judgments": tuple(USUAL["judgments"]),
}
OPTIONAL = {"title", "category", "where"}
NUMBERED_BY = {"documents": "bakeoff corpus import", "queries": "bakeoff queries import"}  # tables without ids


def columns_of(path: Path) -> list[str]:
    """The columns of a table's first row."""
    for _, row in read_table(path).rows:
        return list(row)
    raise InputError("has no rows", file=path, remedy="put at least one row into it")


def find_columns(table: str, path: Path, given: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """The file's name of each column; raises if a required one must be named."""
    names = columns_of(path)
    usual = {column: words for column, words in USUAL[table].items() if column in COLUMNS[table]}
    chosen = match_columns(names, given, usual, path)
    for column in COLUMNS[table]:
        if column not in chosen and column not in OPTIONAL:
            free = next((name for name in names if name not in chosen.values()), "…")
            counted = f", or let `{NUMBERED_BY[table]}` number the rows" if column == "id" else ""
            raise InputError(
                f"none of the columns ({', '.join(names)}) looks like the {column}", file=path,
                remedy=f"name it: --column {prefix}{column}={free}{counted}",
            )  # fmt: skip
    return {column: chosen[column] for column in COLUMNS[table] if column in chosen}


def label_in(row: Row, column: str) -> str:
    """The label in a grade cell; "" for an empty one or NaN."""
    value = row.get(column)
    return "" if value is None or value != value else str(value).strip()  # NaN is not itself


def complete_labels(path: Path, column: str, grades: Mapping[str, int], *, empty: bool = False) -> dict[str, int]:
    """The grade of each label in a column; empty if all are numbers.

    A number among labels means itself, unless the user gave numbers too. `empty`: cells may be empty.
    """
    labels: dict[str, str] = {}
    for place, row in read_table(path).rows:
        labels.setdefault(label_in(row, column), place)
    if empty:
        labels.pop("", None)
    if "" in labels:
        raise InputError(
            f"{column} is empty", file=path, place=labels[""], remedy="give a grade, or leave the line out"
        )
    numbers = {label: number for label in labels if (number := whole(label)) is not None}
    known = dict(grades) if any(whole(label) is not None for label in grades) else {**grades, **numbers}
    if len(numbers) == len(labels) and not grades:
        return {}
    if unknown := [label for label in labels if label not in known]:
        guessed = not known
        worth = {label: place if guessed else known.get(label, "…") for place, label in enumerate(reversed(labels))}
        example = " ".join(f"--grade {json.dumps(label, ensure_ascii=False)}={worth[label]}" for label in worth)
        problem = f"no --grade for {unknown[0]!r}" if unknown[0] in numbers else f"grade {unknown[0]!r} is not a number"
        raise InputError(
            problem, file=path, place=labels[unknown[0]], remedy=f"give each a number: {example}",
        )  # fmt: skip
    return known
