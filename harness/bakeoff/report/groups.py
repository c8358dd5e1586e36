"""Groups of rows that score alike and share a line in every table, chart and sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from bakeoff.results.schema import Row

LONGEST = 28  # cells of a label on a screen
_FRONT = 16  # of these, before the gap


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
        """The row that represents the group."""
        return self.rows[0]

    @property
    def same_name(self) -> tuple[Row, ...]:
        """The rows that differ from the first only in their store."""
        return tuple(row for row in self.rows if name_without_store(row) == name_without_store(self.first))

    @property
    def others(self) -> int:
        """The number of other names in the group."""
        return len({name_without_store(row) for row in self.rows}) - 1

    @property
    def title(self) -> str:
        """The name and the number of others that score alike."""
        return f"{shorten(self.name)} +{self.others} alike" if self.others else shorten(self.name)

    @property
    def stores(self) -> list[str]:
        """The stores of the rows with the first one's name."""
        return [store_name(row) for row in self.same_name if row.store]


def name_without_store(row: Row) -> str:
    """The contender's name without its store, which has its own column."""
    name = store_name(row)
    return row.label.removesuffix(f"+{name}") if name else row.label


def store_name(row: Row) -> str:
    """The store's name in a row's label, such as `faiss-hnsw` for a store with options."""
    last = row.label.rpartition("+")[2]
    return last if row.store and last.startswith(row.store) else row.store


def group_rows(rows: Sequence[Row], alike: Mapping[str, str]) -> list[RowGroup]:
    """Groups rows in order. `alike` maps a row to the first row with equal scores; default: itself."""
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
    """Each label's group name for tables without a store column. `alike` maps labels to the first equal one.

    Rows with one name in several stores share it, unless their scores differ.
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
    """Shortens a label in the middle, since names differ at both ends."""
    if cell_len(label) <= longest:
        return label
    front = longest * _FRONT // LONGEST
    return f"{_start(label, front)}…{_start(label[::-1], longest - front - 1)[::-1]}"


def _start(text: str, cells: int) -> str:
    kept = text[: max(0, cells)]
    while kept and cell_len(kept) > cells:
        kept = kept[:-1]
    return kept


MOST_LINES = 15  # lines of a page's table or chart; beyond, one per model


def by_model(groups: Sequence[RowGroup]) -> list[list[RowGroup]]:
    """The groups by model, in order: all dimensions and precisions of a model together."""
    models: dict[tuple[str, ...], list[RowGroup]] = {}
    for group in groups:
        row = group.first
        models.setdefault((row.row_type, row.provider, row.model or row.label), []).append(group)
    return list(models.values())


def main_groups(groups: Sequence[RowGroup]) -> list[RowGroup]:
    """The groups a chart shows: all if few, else the first of each model."""
    if len(groups) <= MOST_LINES:
        return list(groups)
    return [several[0] for several in by_model(groups)][:MOST_LINES]
