"""Rows that score alike share a line, in every table, chart and sentence: which rows, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from bakeoff.results.schema import Row

LONGEST = 28  # cells of a label on a screen
_FRONT = 16  # of which before the gap


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows with the same score on every query, in the order of the line-up.

    `name` is the first row's, without its store unless the stores of its model differ in score.
    """

    name: str
    rows: tuple[Row, ...]
    parted: bool = False

    @property
    def first(self) -> Row:
        """The row that stands for all."""
        return self.rows[0]

    @property
    def same_name(self) -> tuple[Row, ...]:
        """The rows that differ from the first in their store alone."""
        return tuple(row for row in self.rows if name_without_store(row) == name_without_store(self.first))

    @property
    def others(self) -> int:
        """How many other names score alike."""
        return len({name_without_store(row) for row in self.rows}) - 1

    @property
    def title(self) -> str:
        """The name, and how many others score alike."""
        return f"{shorten(self.name)} +{self.others} alike" if self.others else shorten(self.name)

    @property
    def stores(self) -> list[str]:
        """The stores of the rows with the first one's name."""
        return [store_name(row) for row in self.same_name if row.store]


def name_without_store(row: Row) -> str:
    """The contender without its store, which has a column of its own."""
    name = store_name(row)
    return row.label.removesuffix(f"+{name}") if name else row.label


def store_name(row: Row) -> str:
    """What a row's label calls its store: a store with other options may be `faiss-hnsw`."""
    last = row.label.rpartition("+")[2]
    return last if row.store and last.startswith(row.store) else row.store


def group_rows(rows: Sequence[Row], alike: Mapping[str, str]) -> list[RowGroup]:
    """The rows by the first one that each scores like (`alike`; itself where it is absent or empty), in their order."""
    members: dict[str, list[Row]] = {}
    for row in rows:
        members.setdefault(alike.get(row.label) or row.label, []).append(row)
    homes: dict[str, set[str]] = {}
    for first, group in members.items():
        for row in group:
            homes.setdefault(name_without_store(row), set()).add(first)
    return [_make_group(group, parted=len(homes[name_without_store(group[0])]) > 1) for group in members.values()]


def _make_group(rows: Sequence[Row], *, parted: bool) -> RowGroup:
    first = rows[0]
    return RowGroup(first.label if parted else name_without_store(first), tuple(rows), parted)


def group_names(alike: Mapping[str, str]) -> dict[str, str]:
    """By label its group's name, without a column of stores; `alike` has the first label that each scores like.

    Rows of one name in several stores are called by that name, unless it has rows that score otherwise.
    """
    names = {label: label.rpartition("+")[0] or label for label in alike}
    homes: dict[str, list[str]] = {}
    for label, first in alike.items():
        homes.setdefault(names[label], []).append(first)
    return {
        label: shorten(names[first] if len(homes[names[first]]) > 1 and len(set(homes[names[first]])) == 1 else first)
        for label, first in alike.items()
    }


def shorten(label: str, longest: int = LONGEST) -> str:
    """A label that fits, cut in the middle: names differ at both ends."""
    if cell_len(label) <= longest:
        return label
    front = longest * _FRONT // LONGEST
    return f"{_start(label, front)}…{_start(label[::-1], longest - front - 1)[::-1]}"


def _start(text: str, cells: int) -> str:
    kept = text[: max(0, cells)]
    while kept and cell_len(kept) > cells:
        kept = kept[:-1]
    return kept


MOST_LINES = 15  # lines of a page's table or chart; of more, one for each model


def by_model(groups: Sequence[RowGroup]) -> list[list[RowGroup]]:
    """The groups of each model in their order: one model at several dimensions and precisions belongs together."""
    models: dict[tuple[str, ...], list[RowGroup]] = {}
    for group in groups:
        row = group.first
        models.setdefault((row.row_type, row.provider, row.model or row.label), []).append(group)
    return list(models.values())


def main_groups(groups: Sequence[RowGroup]) -> list[RowGroup]:
    """What a chart has room for: all of a few; of many the first of each model."""
    if len(groups) <= MOST_LINES:
        return list(groups)
    return [several[0] for several in by_model(groups)][:MOST_LINES]
