"""TREC runs and qrels, read as in trec_eval and written so that it reproduces our figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import FileIO
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import missing_modules

from bakeoff.core.files import read_lines
from bakeoff.core.ranking import Floats, Numbers, Ranking, ScoredRun, Wanted
from bakeoff.core.task import Judgments
from bakeoff.evaluation.ranked_grades import POOLED
from bakeoff.tasks.formats.rows import JudgmentCollector, whole

BEIR_HEAD = [b"query-id", b"corpus-id", b"score"]
LARGEST = float(np.finfo(np.float32).max)  # trec_eval keeps scores in single precision

RunScores = Mapping[str, Mapping[str, float]]  # by query and document


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """Query → document → score. The rank column and those after the sixth are ignored, as in trec_eval."""
    run: dict[str, dict[str, float]] = {}
    last, scores = b"", dict[str, float]()  # most lines have the query of the line before
    for number, line in read_lines(path):
        try:
            query, _, document, _, written, _ = line.split(None, 5)
            name, score = document.decode(), float(written)
        except ValueError:
            raise _wrong(line, path, number) from None
        if query != last:
            last, scores = query, run.setdefault(_decode(query, path, number), {})
        if name in scores:
            raise InputError(
                f"duplicate document {name!r} for query {_decode(query, path, number)!r}",
                file=path,
                place=f"line {number}",
                remedy="keep one of the two lines",
            )
        if not -LARGEST <= score <= LARGEST or b"_" in written:
            raise _wrong(line, path, number)
        scores[name] = score
    if not run:
        raise InputError("is empty", file=path, remedy="name a run with at least one line")
    return run


def read_qrels(path: Path, *, sampled: bool = False) -> Judgments:
    """Query → document → grade; of `sampled` judgments, all below 0 are `POOLED`: in the pool, not judged."""
    collector = JudgmentCollector(path, drop_negative=sampled)
    marked: list[tuple[str, str]] = []
    for place, row in qrels_rows(path):
        if sampled and row["grade"] < 0:
            marked.append((row["query"], row["document"]))
        collector.add(place, row["query"], row["document"], row["grade"])
    if not collector.grades:
        raise InputError("has no judgments", file=path, remedy="name qrels with at least one line")
    for query, document in marked:
        if query in collector.grades:
            collector.grades[query].setdefault(document, POOLED)
    return collector.grades


def qrels_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The lines of a qrels file as rows of a table; comments after # are skipped as trec_eval 10 does.

    BEIR's three columns are read too, by the line that heads them.
    """
    in_beir = False
    for number, line in read_lines(path):
        fields = line.split()
        if fields[0].startswith(b"#"):
            continue
        if number == 1 and [field.lower() for field in fields] == BEIR_HEAD:
            in_beir = True
            continue
        if in_beir and len(fields) == 3:
            fields.insert(1, b"0")
        if len(fields) != 4:
            raise _misshapen(
                path,
                number,
                len(fields),
                "that of qrels has 4: query 0 document grade",
                remedy="three columns need BEIR's first line: query-id, corpus-id, score"
                if len(fields) == 3
                else "check that the file is qrels, and that ids have no white space",
            )
        query, _, document, written = fields
        grade = whole(_decode(written, path, number))
        if grade is None:
            raise InputError(
                f"grade {_decode(written, path, number)!r} is not a whole number",
                file=path,
                place=f"line {number}",
                remedy="grades are whole numbers; for a run, give the qrels first",
            )
        yield (
            f"line {number}",
            {"query": _decode(query, path, number), "document": _decode(document, path, number), "grade": grade},
        )


def run_parts(rankings: Mapping[str, Ranking], tag: str) -> Iterator[str]:
    """A run file, query by query, on which trec_eval reproduces our figures.

    trec_eval ignores the rank column, reads scores in single precision and breaks ties by descending id, so tied
    scores are written a single float apart, in our order.
    """
    queries = _encode_ids(rankings)
    documents = _encode_ids({document for ranking in rankings.values() for document in ranking.ids})
    tag = _safe(tag)
    for query, ranking in rankings.items():
        name = queries[query]
        yield "".join(
            f"{name} Q0 {documents[document]} {rank} {score!r} {tag}\n"
            for rank, (document, score) in enumerate(zip(ranking.ids, _apart(ranking.scores), strict=True), start=1)
        )


def _apart(scores: Sequence[float]) -> list[float]:
    """Strictly decreasing scores in single precision."""
    single = np.array(scores, dtype=np.float32)
    for place in np.flatnonzero(single[1:] >= single[:-1]) + 1:
        above = single[place - 1]
        while place < len(single) and single[place] >= above:
            above = single[place] = np.nextafter(above, np.float32(-np.inf))
            place += 1
    lowered: list[float] = single.tolist()
    return lowered


def qrels_text(judgments: Judgments) -> str:
    """A qrels file with the ids as `run_parts` writes them."""
    queries = _encode_ids(judgments)
    documents = _encode_ids({document for grades in judgments.values() for document in grades})
    return "".join(
        f"{queries[query]} 0 {documents[document]} {grade}\n"
        for query, grades in judgments.items()
        for document, grade in grades.items()
    )


def _encode_ids(ids: Iterable[str]) -> dict[str, str]:
    """Percent-encode white space and a leading # in ids."""
    written: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in ids:
        written[name] = safe = _safe(name)
        if taken.setdefault(safe, name) != name:
            raise InputError(
                f"the ids {name!r} and {taken[safe]!r} are the same in a TREC file ({safe})",
                remedy="rename one of them",
            )
    return written


def _safe(name: str) -> str:
    """Python's and C's notions of white space both count: pytrec_eval splits by the one, trec_eval by the other.

    A leading # would make the line a comment of trec_eval 10.
    """
    if name.split() == [name] and not name.startswith("#"):
        return name
    start = quote("#") if name.startswith("#") else ""
    return start + "".join(
        quote(character) if character.isspace() or character == "%" else character for character in name[bool(start) :]
    )


def _misshapen(path: Path, number: int, columns: int, expected: str, remedy: str) -> InputError:
    return InputError(f"the line has {columns} columns, {expected}", file=path, place=f"line {number}", remedy=remedy)


def _decode(field: bytes, path: Path, number: int) -> str:
    try:
        return field.decode()
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", file=path, place=f"line {number}", remedy="save it as UTF-8") from None


def _wrong(line: bytes, path: Path, number: int) -> InputError:
    """Explain a wrong line of a run; called only after a failure, as runs have millions of lines."""
    fields = line.split()
    if len(fields) < 6:
        return _misshapen(
            path,
            number,
            len(fields),
            "a run's has 6: query Q0 document rank score tag",
            remedy="check that the file is a run; qrels come first on the command line",
        )
    _decode(fields[2], path, number)
    shown = fields[4].decode(errors="replace")
    return InputError(f"score {shown!r} is not a finite number", file=path, place=f"line {number}")


COLUMNS = ("query", "q0", "document", "rank", "score", "tag")
HEAD = 4096  # bytes to detect the separator
BLOCK = 1 << 20  # bytes scanned at once, to fit the CPU cache
SPACE = 32  # this byte and those below it: white space and control characters


def read_plain_run(path: Path, precision: type[np.floating[Any]]) -> ScoredRun | None:
    """Reads a run quickly; None if polars is missing or a line is not six columns separated by one space or tab.

    The ordinary reader then reads the file or reports the wrong line.
    """
    if missing_modules(("polars",), "polars") or not path.is_file():
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
    return None if table is None or len(table) != count else _check_table(table, precision)


def _lines(file: FileIO) -> int | None:
    """The number of lines; None where separators are doubled or columns are not six."""
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
    """Queries, documents and scores; None for a wrong number of columns or a non-numeric score."""
    import polars

    types = {name: polars.Float64 if name == "score" else polars.String for name in COLUMNS}
    lines = polars.scan_csv(path, has_header=False, separator=separator, quote_char=None, schema=types)
    try:
        table = lines.select("query", "document", "score", polars.col("tag").is_null()).collect()
    except polars.exceptions.PolarsError:
        return None
    return None if table["tag"].any() else table.drop("tag")


def _check_table(table: Any, precision: type[np.floating[Any]]) -> ScoredRun | None:
    """The table by query; None if the ordinary reader must report an error."""
    most = float(np.finfo(np.float32).max)
    if not (-most <= table["score"].min() and table["score"].max() <= most) or table["score"].is_nan().any():
        return None
    groups = table["query"].rle().struct
    if groups.field("value").n_unique() < len(groups.field("value")):  # a query's lines are not consecutive
        table = table.sort("query", maintain_order=True)
        groups = table["query"].rle().struct
    names: list[str] = groups.field("value").to_list()
    ends = np.concatenate(([0], np.cumsum(groups.field("len").to_numpy(), dtype=np.int64)))
    documents, scores = table["document"], table["score"].to_numpy().astype(precision, copy=False)
    if _duplicates(documents, ends):
        return None

    def scores_of(rows: Numbers, wanted: Wanted) -> Floats:
        import polars

        distinct = polars.Series(sorted(set(chain.from_iterable(wanted))), dtype=polars.String)
        lines = documents.is_in(distinct.implode()).arg_true().to_numpy()
        owners = (np.searchsorted(ends, lines, "right") - 1).tolist()
        known = dict(zip(zip(owners, ids_of(lines), strict=True), scores[lines].tolist(), strict=True))
        asked = zip(rows.tolist(), wanted, strict=True)
        return np.array([known.get((row, name), np.nan) for row, ids in asked for name in ids], dtype=precision)

    def ids_of(lines: Numbers) -> list[str]:
        return list(documents.gather(lines).to_list())

    return ScoredRun(names, ends, scores, scores_of, ids_of)


def _duplicates(documents: Any, starts: Numbers) -> bool:
    """Whether a query has a duplicate document. Sorts short hashes; ids decide on collisions."""
    marks = (documents.hash().to_numpy() >> np.uint64(32)).astype(np.uint32)
    for first, last in pairwise(starts.tolist()):
        marks[first:last].sort()
    equal = np.flatnonzero(marks[1:] == marks[:-1]) + 1
    queries = np.searchsorted(starts, equal, "right") - 1
    suspects = np.unique(queries[equal != starts[queries]])  # the first of a query may equal the last of the one before
    return any(documents[first:last].n_unique() < last - first for first, last in _bounds(starts, suspects))


def _bounds(starts: Numbers, queries: Numbers) -> Iterator[tuple[int, int]]:
    return zip(starts[queries].tolist(), starts[queries + 1].tolist(), strict=True)
