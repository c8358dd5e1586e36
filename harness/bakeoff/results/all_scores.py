"""The scores of every query, as arrays beside `detailed_results.json` where that holds the first queries alone."""

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
    """`all_queries.json`: every query in the task's order, which is that of the rows; the measures are the columns."""

    texts: dict[str, str]
    drawn: list[Drawn | None]
    measures: list[str]
    clusters: list[str] = []


@dataclass(frozen=True, slots=True)
class AllScores:
    """By contender, a table of queries × measures."""

    asked: AllQueries
    tables: Mapping[str, Values]

    def values(self, label: str, measure: str) -> Values | None:
        """Of every query; None for a measure that was not stored."""
        if measure not in self.asked.measures:
            return None
        return np.array(self.tables[label][:, self.asked.measures.index(measure)])

    def files(self) -> dict[str, Content]:
        """What is written, by name; each array is made when its turn comes."""
        queries = without_known(msgspec.json.encode(self.asked).decode())
        return {QUERIES: queries, **{f"{FOLDER}/{label}.npy": _array(table) for label, table in self.tables.items()}}


def read_all_scores(folder: Path, labels: list[str]) -> AllScores | None:
    """None where the result has none: all of its queries are in `detailed_results.json`, or it is an old one."""
    if not (folder / QUERIES).is_file():
        return None
    asked = read_json(folder / QUERIES, AllQueries)
    if len(asked.drawn) != len(asked.texts) or len(asked.clusters) not in (0, len(asked.texts)):
        raise InputError("texts and shares differ in number", file=folder / QUERIES, remedy=AGAIN)
    shape = len(asked.texts), len(asked.measures)
    return AllScores(asked, {label: _table(folder / FOLDER / f"{label}.npy", shape) for label in labels})


def _table(file: Path, shape: tuple[int, int]) -> Values:
    """Mapped, not read: a comparison looks at one column."""
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
