"""TREC runs through pyarrow's CSV reader: a run of seven million lines in seconds, as integer codes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff_providers.registry import missing_modules
from numpy.typing import NDArray

from bakeoff.evaluation.run_table import Lines, RunTable

COLUMNS = ["query", "q0", "document", "rank", "score", "tag"]
HEAD = 4096  # bytes that show which separator a run has
LONGEST = 64  # bytes of an id; longer ones are left to the ordinary reader
WORD = 8  # bytes that are hashed at once
MASKS = np.array([(1 << 8 * count) - 1 for count in range(WORD + 1)], dtype=np.uint64)
BLANK = np.isin(np.arange(256), list(b" \t\r\v\f\x1c\x1d\x1e\x1f"))
MIX = np.uint64(0x9E3779B97F4A7C15)


def read_run_table(path: Path) -> RunTable | None:
    """None where a line is not plainly six columns, each apart by one space or tab, or where pyarrow is not here.

    The ordinary reader then reads the file, or names the line that is wrong: every mistake has one wording.
    """
    if missing_modules(("pyarrow",), "parquet"):
        return None
    import pyarrow
    from pyarrow import csv

    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
        first = head.partition(b"\n")[0]
        separator = "\t" if first.count(b"\t") == 5 else " "
        if head.startswith((b"\x1f\x8b", b"\xef\xbb\xbf")) or len(first.rstrip(b"\r").split(separator.encode())) != 6:
            return None
        text = pyarrow.dictionary(pyarrow.int32(), pyarrow.utf8())
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=COLUMNS, block_size=1 << 24),
            parse_options=csv.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=csv.ConvertOptions(
                include_columns=["query", "document", "score"],
                column_types={"query": text, "document": pyarrow.large_utf8(), "score": pyarrow.float64()},
                null_values=[],
                strings_can_be_null=False,
                auto_dict_max_cardinality=2**31 - 1,
            ),
        ).unify_dictionaries()
    except (pyarrow.ArrowException, OSError):
        return None
    return _checked(table)


def _checked(table: Any) -> RunTable | None:
    """The table by query; None where something in it must be refused, which the ordinary reader does in words."""
    if not len(table):
        return None
    scores = table["score"].to_numpy()
    if not (np.abs(scores) <= np.finfo(np.float32).max).all():
        return None
    queries = np.concatenate([chunk.indices.to_numpy() for chunk in table["query"].chunks])
    names = table["query"].chunk(0).dictionary.to_pylist()
    if np.count_nonzero(np.diff(queries)) >= len(names):  # a query's lines are apart
        order = np.argsort(queries, kind="stable")
        table, queries, scores = table.take(order), queries[order], scores[order]
    documents = table["document"].combine_chunks()
    marks = _hashes(documents)
    if marks is None or "" in names:
        return None
    marks ^= queries.astype(np.uint64) * MIX
    marks.sort()
    if (marks[1:] == marks[:-1]).any():  # a duplicate, or two hashes that are equal by chance
        return None
    first = np.flatnonzero(np.diff(queries, prepend=-1))

    def codes(ids: Sequence[str]) -> NDArray[np.int32]:
        import pyarrow
        from pyarrow import compute

        places = compute.index_in(documents, pyarrow.array(ids, pyarrow.large_utf8()))
        return np.asarray(places.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int32)

    def ids_of(lines: Lines) -> list[str]:
        return [str(documents[line].as_py()) for line in lines.tolist()]

    starts = np.append(first, len(queries)).astype(np.int64)
    return RunTable([names[code] for code in queries[first].tolist()], starts, scores, codes, ids_of)


def _hashes(documents: Any) -> NDArray[np.uint64] | None:
    """A number for each id, in which every byte counts; None where an id is empty or has white space in it."""
    _, offsets, content = documents.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[documents.offset : documents.offset + len(documents) + 1]
    data = np.concatenate((np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[-1]], np.zeros(WORD, dtype=np.uint8)))
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    if lengths.min() == 0 or lengths.max() > LONGEST or BLANK[data[:-WORD]].any():
        return None
    words = np.lib.stride_tricks.as_strided(data[:WORD].view(np.uint64), (len(data) - WORD + 1,), (1,), writeable=False)
    hashes = lengths.astype(np.uint64)
    for place in range(0, int(lengths.max()), WORD):
        left = np.clip(lengths - place, 0, WORD)  # bytes of the id in this word
        word = words[np.minimum(starts + place, len(words) - 1)]
        word &= MASKS[left]
        hashes = (hashes ^ word) * MIX
        hashes ^= hashes >> np.uint64(29)
    return hashes
