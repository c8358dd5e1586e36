"""A line-up as TOML: read from a file, and written from what a result stores, so that it reads back the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff.core.files import read_toml
from bakeoff.core.toml_values import toml_value
from bakeoff.lineup.entries import LineupFile
from bakeoff.lineup.keys import table_of
from bakeoff.lineup.variables import Unset, fill_lineup

_SETTINGS = (
    "name",
    "task",
    "overrides",
    "measures",
    "primary",
    "depth",
    "rounds",
    "seed",
    "equivalent_within",
    "role",
    "bases",
    "engine",
    "categories",
)


def read_lineup_file(path: Path) -> tuple[LineupFile, Unset]:
    """The file's content, its shape checked and its variables filled in, and the rows that name one that is not set."""
    unset: Unset = {}
    return read_toml(path, LineupFile, lambda content: fill_lineup(content, unset)), unset


def lineup_text(lineup: Mapping[str, Any]) -> str:
    """The file for `Lineup.to_dict()`, one table for each row: `bakeoff run` gives the same rows, in the same order."""
    lines = _lines({key: lineup.get(key) for key in _SETTINGS})
    for row in lineup["contenders"]:
        heading, entry = table_of(row)
        lines += ["", f"[[{heading}]]", *_lines(entry)]
    return "\n".join(lines) + "\n"


def _lines(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {toml_value(value)}" for key, value in settings.items() if value is not None]
