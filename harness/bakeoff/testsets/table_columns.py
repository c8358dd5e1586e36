"""What the columns of a user's tables are: found by their usual names, or named by the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bakeoff_providers.errors import InputError

from bakeoff.tasks.formats.tables import read_table
from bakeoff.testsets.source_tables import USUAL, matched_columns

COLUMNS = {
    "documents": ("id", "title", "text"),
    "queries": ("id", "text", "category", "where"),
    "judgments": tuple(USUAL["judgments"]),
}
OPTIONAL = {"title", "category", "where"}
NUMBERED_BY = {"documents": "bakeoff corpus import", "queries": "bakeoff queries import"}  # these need no ids


def columns_of(path: Path) -> list[str]:
    """The columns of a table's first row."""
    for _, row in read_table(path).rows:
        return list(row)
    raise InputError("has no rows", file=path, remedy="put at least one row into it")


def found_columns(table: str, path: Path, given: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """What the file calls each column; one that is needed and not found is the user's to name."""
    names = columns_of(path)
    usual = {column: words for column, words in USUAL[table].items() if column in COLUMNS[table]}
    chosen = matched_columns(names, given, usual, path)
    for column in COLUMNS[table]:
        if column not in chosen and column not in OPTIONAL:
            free = next((name for name in names if name not in chosen.values()), "…")
            counted = f", or let `{NUMBERED_BY[table]}` number the rows" if column == "id" else ""
            raise InputError(
                f"none of the columns ({', '.join(names)}) is usual for the {column}", file=path,
                remedy=f"name it: --column {prefix}{column}={free}{counted}",
            )  # fmt: skip
    return {column: chosen[column] for column in COLUMNS[table] if column in chosen}


def check_labels(path: Path, column: str, grades: Mapping[str, int]) -> None:
    """Asks what labels are worth, in the order of their first row, where grades are no numbers."""
    labels = list(dict.fromkeys(str(row[column]).strip() for _, row in read_table(path).rows if column in row))
    if all(label.lstrip("-").isdecimal() for label in labels):
        return
    if unknown := [label for label in labels if label not in grades]:
        example = " ".join(f"--grade {json.dumps(label)}={place}" for place, label in enumerate(reversed(labels)))
        raise InputError(
            f"the grade {unknown[0]!r} is no number", file=path, remedy=f"say what each is worth: {example}"
        )
