"""The pairs to grade as a table that a spreadsheet opens; an import of grades takes it back."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from pathlib import Path

from bakeoff_providers.errors import InputError

from bakeoff.core.files import write_atomic
from bakeoff.core.printable import printable
from bakeoff.tasks.annotations import QueryDocument
from bakeoff.tasks.task_folder import TaskFolder

HEADS = ("grade", "query_text", "title", "text", "query", "document")
LONGEST = 500  # characters of a text: what fits a cell that people read
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # beginnings of a formula
_TEXT = "'"  # before a cell: what follows is text


def check_table(path: Path) -> None:
    """Refuses at the start a name that an import would not read as CSV."""
    if path.suffix.lower() != ".csv":
        raise InputError("the table of pairs is CSV", file=path, place="--out", remedy="let its name end in .csv")


def write_pairs(folder: TaskFolder, pairs: Sequence[QueryDocument], path: Path) -> None:
    """One row a pair with an empty grade; nothing tells who found it, or what others gave."""
    table = io.StringIO(newline="")
    writer = csv.writer(table, quoting=csv.QUOTE_ALL)
    writer.writerow(HEADS)
    for query, name in pairs:
        document = folder.document(name)
        texts = folder.query(query).text, document.title, document.text
        writer.writerow(["", *(as_cell(_start(text)) for text in texts), as_cell(query), as_cell(name)])
    write_atomic(path, table.getvalue().encode("utf-8-sig"))  # without the mark Excel takes it for another encoding


def as_cell(text: str) -> str:
    """The text as no spreadsheet runs it; one that begins with the sign for text gets another, so none is lost."""
    return f"{_TEXT}{text}" if text.startswith((*_FORMULA, _TEXT)) else text


def ids_by_cell(ids: Collection[str], head: Collection[str]) -> dict[str, str]:
    """The ids whose cells read otherwise; in a table that was not written here an id as it is comes first."""
    exported = set(HEADS) <= set(head)
    cells = {as_cell(name): name for name in ids if as_cell(name) != name}
    return {cell: name for cell, name in cells.items() if exported or cell not in ids}


def _start(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
