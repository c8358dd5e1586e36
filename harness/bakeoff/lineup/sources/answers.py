"""A row of rankings that were made elsewhere: one file, or one for each seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError

from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.sources.base import Source

SEED = "{seed}"


def _rows_of(entry: ContenderEntry) -> list[Contender]:
    files = _by_seed(entry.answers, entry) if isinstance(entry.answers, dict) else _by_pattern(entry.answers, entry)
    name = entry.label or (_name(entry.answers) if isinstance(entry.answers, str) else "")
    if not name:
        raise InputError("these answers need a label", place="label", remedy='for example label = "gru"')
    return [Contender(name, name, answers=files)]


def _by_pattern(pattern: str, entry: ContenderEntry) -> dict[str, str]:
    if bool(entry.seeds) != (SEED in pattern):
        raise InputError("seeds and {seed} go together", place="answers", remedy='answers = "model-{seed}.npy"')
    return {str(seed): pattern.replace(SEED, str(seed)) for seed in entry.seeds} or {"": pattern}


def _by_seed(files: Mapping[str, str], entry: ContenderEntry) -> dict[str, str]:
    if entry.seeds:
        raise InputError("the answers name their seeds already", place="seeds", remedy="remove them")
    for seed in files:
        if not seed.removeprefix("-").isdecimal() or str(int(seed)) != seed:
            raise InputError(f"{seed!r} is not a seed", place="answers", remedy='answers = { 1 = "model-1.npy" }')
    return dict(files)


def _name(pattern: str) -> str:
    return Path(pattern.replace(SEED, "")).stem.rstrip("-_.")


def _entry_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A pattern where one gives exactly these files, otherwise each file with its seed."""
    files: dict[str, str] = row["answers"]
    first = next(iter(files))
    if not first:
        return {"label": row["name"], "answers": files[first]}
    head, _, tail = files[first].rpartition(first)
    for pattern in (files[first].replace(first, SEED), f"{head}{SEED}{tail}"):
        if SEED in pattern and all(pattern.replace(SEED, seed) == file for seed, file in files.items()):
            return {"label": row["name"], "answers": pattern, "seeds": [int(seed) for seed in files]}
    return {"label": row["name"], "answers": files}


ANSWERS = Source(
    key="answers",
    about="file of answers",
    example='answers = "run.trec"',
    takes=frozenset({"seeds"}),
    row_type=lambda _: "given",
    missing=lambda _: None,
    rows_of=_rows_of,
    entry_of=_entry_of,
)
