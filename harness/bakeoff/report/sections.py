"""Further tables besides the matrix, with formatted numbers and facts as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from bakeoff.core.facts import Fact, Section, TableCell, TableColumn
from bakeoff.report.numbers import MINUS
from bakeoff.report.words import words

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of formatted text."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str]


def text_table(section: Section) -> TextTable:
    """Formats a section."""
    columns = section.head
    return TextTable(
        words(section.title),
        [" ".join(filter(None, (head_words(column.head), column.unit))) for column in columns],
        [[cell_text(cell, column) for cell, column in zip(row, columns, strict=True)] for row in section.rows],
        [words(note) for note in section.notes],
    )


def head_words(head: Fact | str) -> str:
    """A column heading: a name, or a fact as text."""
    return head if isinstance(head, str) else words(head)


def cell_text(cell: TableCell, column: TableColumn) -> str:
    """Formats a cell. Text, such as a name, is unchanged."""
    if cell is None:
        return UNKNOWN
    if isinstance(cell, str | Fact):
        return head_words(cell)
    if isinstance(cell, int | float):
        return _number(cell, column)
    return _several(cell, column)


def _number(value: float, column: TableColumn) -> str:
    return _plain_number(value, column).replace("-", MINUS)


def _plain_number(value: float, column: TableColumn) -> str:
    sign, digits = "+" if column.signed else "", column.digits
    match column.form:
        case "fixed" | "spread":
            return f"{value:{sign},.{digits}f}"
        case "significant":
            return f"{value:{sign}.{digits}g}"
        case "percent":
            return f"{value:{sign}.{digits}%}"
        case "count":
            return f"{value:,}"
        case "ratio" | "text":
            return f"{value:g}"
        case _:
            assert_never(column.form)


def _several(values: Sequence[float], column: TableColumn) -> str:
    """A mean with its standard deviation, or several numbers."""
    return ("±" if column.form == "spread" else " : ").join(_number(value, column) for value in values)
