"""Scores of all queries as arrays, if `detailed_results.json` holds only the first queries."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from bakeoff_providers.secrets import without_known

from bakeoff.core.arrays import Values
from bakeoff.core.files import read_json
from bakeoff.core.task import Drawn
from bakeoff.results.schema import AGAIN, Content

QUERIES, FOLDER = "all_queries.json", "all_scores"


class AllQueries(msgspec.Struct, frozen=True, kw_only=True):
    """`all_queries.json`: the queries (rows) and measures (columns) of the score tables."""

    texts: dict[str, str]
    drawn: list[Drawn | None]
    measures: list[str]
    clusters: list[str] = []


@dataclass(frozen=True, slots=True)
class AllScores:
    """A table of queries × measures per contender."""

    asked: AllQueries
    tables: Mapping[str, Values]

    def values(self, label: str, measure: str) -> Values | None:
        """One measure of every query; None if it was not stored."""
        if measure not in self.asked.measures:
            return None
        return np.array(self.tables[label][:, self.asked.measures.index(measure)])

    def files(self) -> dict[str, Content]:
        """The files to write by name; arrays are made on demand."""
        queries = without_known(msgspec.json.encode(self.asked).decode())
        return {QUERIES: queries, **{f"{FOLDER}/{label}.npy": _array(table) for label, table in self.tables.items()}}


def read_all_scores(folder: Path, labels: list[str]) -> AllScores | None:
    """Reads the arrays; None if all queries are in `detailed_results.json`, or the result is old."""
    if not (folder / QUERIES).is_file():
        return None
    asked = read_json(folder / QUERIES, AllQueries)
    if len(asked.drawn) != len(asked.texts) or len(asked.clusters) not in (0, len(asked.texts)):
        raise InputError("the numbers of texts and shares differ", file=folder / QUERIES, remedy=AGAIN)
    shape = len(asked.texts), len(asked.measures)
    return AllScores(asked, {label: _table(folder / FOLDER / f"{label}.npy", shape) for label in labels})


def _table(file: Path, shape: tuple[int, int]) -> Values:
    """Memory-mapped, because a comparison reads one column."""
    try:
        table: Values = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # the header is parsed as Python: a damaged one raises anything
        raise InputError(f"unreadable: {error}", file=file, remedy=AGAIN) from None
    if table.shape != shape or table.dtype != np.float64:
        problem = f"an array of {table.shape} and {table.dtype}, not of {shape} and float64"
        raise InputError(problem, file=file, remedy=AGAIN)
    return table


def _array(table: Values) -> Iterator[bytes]:
    buffer = io.BytesIO()
    np.save(buffer, table, allow_pickle=False)
    yield buffer.getvalue()
