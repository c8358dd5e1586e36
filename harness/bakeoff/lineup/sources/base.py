"""What every source of rows answers: its rows, their type, what they lack here, and the entry they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """Where a row comes from. `key` is the contender's setting that says so, `table` what its entry is called.

    `row_type` is what results call such a row, and names how it is made ready; `missing` what keeps it from running
    here, found without asking any server. `entry_of` gives the entry of a row as a result stores it.
    """

    key: str
    table: str = "contender"
    row_type: Callable[[Contender], str]
    missing: Callable[[Contender], str | None]
    entry_of: Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(RowSource):
    """A source that a [[contender]] names by `key`; `takes` are the other settings that it allows."""

    about: str
    example: str
    takes: frozenset[str]
    rows_of: Callable[[ContenderEntry], list[Contender]]
