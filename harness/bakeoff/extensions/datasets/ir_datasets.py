"""Data sets by ir_datasets name, such as `beir/scifact/test`. The library downloads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.registry import missing_modules, nearest

from bakeoff.core.task import Task
from bakeoff.tasks.formats.cells import Row, Rows
from bakeoff.tasks.formats.rows import (
    ColumnNames,
    Columns,
    DocumentColumns,
    DropEmpty,
    DropNegative,
    DropUnknown,
    JudgmentColumns,
    Leniency,
    QueryColumns,
    Rel,
    task_of,
)

COLUMNS = Columns(
    DocumentColumns(id="doc_id"), QueryColumns(id="query_id"), JudgmentColumns("query_id", "doc_id", "relevance")
)

EXTRA = "ir-datasets"


def load(
    name: str,
    base: Path,  # noqa: ARG001 - the library keeps its files in a folder of its own
    dataset: Annotated[str, "its name in ir_datasets, such as beir/scifact/test"],
    columns: ColumnNames = None,
    rel: Rel = 1,
    drop_negative: DropNegative = False,
    drop_unknown: DropUnknown = False,
    drop_empty: DropEmpty = False,
    ignore_identical_ids: Annotated[bool | None, "as for beir; default: only if the name begins with beir/"] = None,
) -> Task:
    """Load one data set. Queries are those with judgments, or all if it has no qrels."""
    if reason := missing_modules(("ir_datasets",), EXTRA):
        raise InputError("format 'ir_datasets' needs a library that is not installed", remedy=reason)
    import ir_datasets

    try:
        data_set = ir_datasets.load(dataset)
    except KeyError:
        raise InputError(
            f"unknown data set {dataset!r}", place="dataset", remedy=nearest(dataset, list(ir_datasets.registry))
        ) from None
    if lacking := [part for part in ("docs", "queries") if not getattr(data_set, f"has_{part}")()]:
        raise InputError(f"{dataset!r} has no {', '.join(lacking)}", place="dataset", remedy="name one of its subsets")
    judged = data_set.has_qrels()
    try:
        return task_of(
            name,
            _table(f"{dataset} docs", data_set.docs_iter(), "title", "text"),
            _table(f"{dataset} queries", data_set.queries_iter(), "", "text"),
            _table(f"{dataset} qrels", data_set.qrels_iter() if judged else (), "", ""),
            COLUMNS.rename(columns),
            rel=rel,
            lenient=Leniency(
                drop_negative=drop_negative,
                drop_unknown=drop_unknown,
                drop_empty=drop_empty,
                judged_only=judged,
                ignore_identical_ids=dataset.startswith("beir/")
                if ignore_identical_ids is None
                else ignore_identical_ids,
            ),
        )
    except (OSError, RuntimeError) as error:  # a failed download
        raise Unavailable(f"{dataset}: {error}") from error


def _table(source: str, records: Any, title: str, text: str) -> Rows:
    return Rows.of(source, _readable(source, _rows(records, title, text)))


def _readable(source: str, rows: Iterator[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
    """Explain the library's error over a damaged file."""
    try:
        yield from rows
    except (OSError, RuntimeError):
        raise
    except Exception as error:
        problem = f"ir_datasets can't read it: {type(error).__name__}: {error}"
        remedy = "remove its files from the library's folder (~/.ir_datasets), to fetch them again"
        raise InputError(problem, file=source, remedy=remedy) from None


def _rows(records: Any, title: str, text: str) -> Iterator[tuple[str, Row]]:
    """Named tuples as rows. Without a text field, the library's default_text is used."""
    for number, record in enumerate(records, start=1):
        row = record._asdict()
        if text and text not in row:
            row[text] = record.default_text()
            row.pop(title, None)  # default_text has it already
        yield f"record {number}", row
