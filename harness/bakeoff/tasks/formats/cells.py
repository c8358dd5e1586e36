"""Tables and cells: one set of rules for ids and texts in all formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

BLOCK = 4096  # rows per block

Row = Mapping[str, Any]
Numbered = Iterator[tuple[str, Row]]


class Block(NamedTuple):
    """Consecutive rows with their places, for errors."""

    rows: Sequence[Row]
    place: Callable[[int], str]

    def pairs(self) -> Numbered:
        """Each row with its place."""
        return ((self.place(number), row) for number, row in enumerate(self.rows))


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: its source, and its rows in blocks."""

    source: Path | str
    blocks: Iterable[Block]

    @classmethod
    def of(cls, source: Path | str, pairs: Iterable[tuple[str, Row]]) -> Rows:
        """Builds blocks from single rows, each with its place."""
        return cls(source, _blocks(pairs))

    @property
    def rows(self) -> Numbered:
        """One by one, each with its place."""
        return (pair for block in self.blocks for pair in block.pairs())


def _blocks(pairs: Iterable[tuple[str, Row]]) -> Iterator[Block]:
    rest = iter(pairs)
    while part := list(islice(rest, BLOCK)):
        yield Block([row for _, row in part], _places([place for place, _ in part]))


def _places(places: list[str]) -> Callable[[int], str]:
    """The places of a block's rows. Numbered places are computed, as readers keep them as long as ids."""
    name, _, first = places[0].rpartition(" ")
    if first.isdecimal() and places == [f"{name} {number}" for number in range(int(first), int(first) + len(places))]:
        return partial(_format_place, name, int(first))
    return places.__getitem__


def _format_place(name: str, first: int, number: int) -> str:
    return f"{name} {first + number}"


def column_of(row: Row, column: str, table: Rows, place: str) -> Any:
    """The cell of a required column."""
    if column not in row:
        raise InputError(
            f"there is no column {column!r}",
            file=table.source,
            place=place,
            remedy=f"{nearest(column, list(row))} Name columns under [columns]: see docs/reference/tasks.md",
        )
    return row[column]


def id_of(row: Row, column: str, table: Rows, place: str) -> str:
    """An id: text, or a whole number."""
    value = column_of(row, column, table, place)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{column} is {value!r}, not text or a whole number", file=table.source, place=place)
    if not value.strip():
        raise InputError(f"{column} is empty", file=table.source, place=place)
    return value


def text_of(value: Any, column: str, table: Rows, place: str) -> str:
    """A stripped string; an empty cell gives ""."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{column} is {value!r}, not text", file=table.source, place=place)
    return value.strip()
