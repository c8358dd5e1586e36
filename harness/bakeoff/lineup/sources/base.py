"""What every source of rows answers: which settings it takes, its rows, and the entry that a row was made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry


@dataclass(frozen=True, slots=True)
class Source:
    """One source. `key` is the setting of a [[contender]] that names it, `takes` are the others that it allows.

    `entry_of` is the inverse of `rows_of` for a single row, given as a result stores it.
    """

    key: str
    about: str
    example: str
    takes: frozenset[str]
    rows_of: Callable[[ContenderEntry], list[Contender]]
    entry_of: Callable[[Mapping[str, Any]], dict[str, Any]]
