"""TREC runs through polars' CSV reader: a run of seven million lines in about a second, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff_providers.registry import missing_modules

from bakeoff.evaluation.run_table import Lines, RunTable

COLUMNS = ("query", "q0", "document", "rank", "score", "tag")
HEAD = 4096  # bytes that show which separator a run has
BLOCK = 1 << 20  # bytes that are looked through at once: few enough for the cache
SPACE = 32  # this byte and those below it: white space and control characters


def read_run_table(path: Path) -> RunTable | None:
    """None where a line is not plainly six columns, each apart by one space or tab, or where polars is not here.

    The ordinary reader then reads the file, or names the line that is wrong: every mistake has one wording.
    """
    if missing_modules(("polars",), "polars"):
        return None
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(HEAD)
            first = head.partition(b"\n")[0]
            separator = "\t" if first.count(b"\t") == len(COLUMNS) - 1 else " "
            if not first or head.startswith((b"\x1f\x8b", b"\xef\xbb\xbf", b"#")):
                return None
            file.seek(0)
            count = _lines(file)
    except OSError:
        return None
    table = _read(path, separator) if count else None
    return None if table is None or len(table) != count else _checked(table)


def _lines(file: FileIO) -> int | None:
    """How many lines there are; None where bytes that part words stand side by side, or are not six to a line."""
    blanks = newlines = 0
    before = False
    buffer = bytearray(BLOCK)
    while size := file.readinto(buffer):
        block = np.frombuffer(buffer, dtype=np.uint8, count=size)
        blank = block <= SPACE
        if (before and blank[0]) or (blank[1:] & blank[:-1]).any():
            return None
        before = bool(blank[-1])
        blanks += int(np.count_nonzero(blank))
        newlines += int(np.count_nonzero(block == ord("\n")))
    unended = not before
    return newlines + unended if blanks + unended == len(COLUMNS) * (newlines + unended) else None


def _read(path: Path, separator: str) -> Any:
    """Queries, documents and scores; None where a line has another number of columns, or no number for a score."""
    import polars

    types = {name: polars.Float64 if name == "score" else polars.String for name in COLUMNS}
    lines = polars.scan_csv(path, has_header=False, separator=separator, quote_char=None, schema=types)
    try:
        table = lines.select("query", "document", "score", polars.col("tag").is_null()).collect()
    except polars.exceptions.PolarsError:
        return None
    return None if table["tag"].any() else table.drop("tag")


def _checked(table: Any) -> RunTable | None:
    """The table by query; None where something in it must be refused, which the ordinary reader does in words."""
    most = float(np.finfo(np.float32).max)
    if not (-most <= table["score"].min() and table["score"].max() <= most) or table["score"].is_nan().any():
        return None
    groups = table["query"].rle().struct
    if groups.field("value").n_unique() < len(groups.field("value")):  # a query's lines are apart
        table = table.sort("query", maintain_order=True)
        groups = table["query"].rle().struct
    names: list[str] = groups.field("value").to_list()
    starts = np.concatenate(([0], np.cumsum(groups.field("len").to_numpy(), dtype=np.int64)))
    documents = table["document"]
    if _duplicates(documents, starts):
        return None

    def lines_of(queries: Lines, ids: Sequence[str]) -> Lines:
        import polars

        judged = polars.Series(sorted(set(ids)), dtype=polars.String)
        lines = documents.is_in(judged.implode()).arg_true().to_numpy().astype(np.int64)
        owners = np.searchsorted(starts, lines, "right") - 1
        known = dict(zip(zip(owners.tolist(), ids_of(lines), strict=True), lines.tolist(), strict=True))
        return np.array([known.get(pair, -1) for pair in zip(queries.tolist(), ids, strict=True)], dtype=np.int64)

    def ids_of(lines: Lines) -> list[str]:
        return list(documents.gather(lines).to_list())

    return RunTable(names, starts, table["score"].to_numpy(), lines_of, ids_of)


def _duplicates(documents: Any, starts: Lines) -> bool:
    """Whether a query has a document twice. Short hashes are quick to sort; where two are equal, the ids decide."""
    marks = (documents.hash().to_numpy() >> np.uint64(32)).astype(np.uint32)
    for first, last in pairwise(starts.tolist()):
        marks[first:last].sort()
    equal = np.flatnonzero(marks[1:] == marks[:-1]) + 1
    queries = np.searchsorted(starts, equal, "right") - 1
    suspects = np.unique(queries[equal != starts[queries]])  # the first of a query may equal the last of the one before
    return any(documents[first:last].n_unique() < last - first for first, last in _bounds(starts, suspects))


def _bounds(starts: Lines, queries: Lines) -> Iterator[tuple[int, int]]:
    return zip(starts[queries].tolist(), starts[queries + 1].tolist(), strict=True)
