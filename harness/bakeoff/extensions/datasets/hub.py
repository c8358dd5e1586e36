"""Data sets by Hugging Face name, or in a local folder of the same layout, read by `datasets`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.options import convert
from bakeoff_providers.registry import missing_modules

from bakeoff.core.facts import fact
from bakeoff.core.task import Task
from bakeoff.tasks.formats.cells import Row, Rows
from bakeoff.tasks.formats.rows import (
    BEIR_COLUMNS,
    ColumnNames,
    DropEmpty,
    DropNegative,
    DropUnknown,
    Grades,
    HubRevision,
    IgnoreIdenticalIds,
    Leniency,
    Rel,
    Split,
    task_of,
)

EXTRA = "hub"


class HubPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The location of one table: data set, configuration and split."""

    dataset: Annotated[str, "its name on the hub, or a folder"]
    config: Annotated[str | None, "its configuration"]
    split: Annotated[str, "the split's name"]


def load(
    name: str,
    base: Path,
    dataset: Annotated[str, "its name on the hub, such as mteb/scifact, or a folder with the same layout"],
    split: Split = "test",
    revision: HubRevision = None,
    documents: Annotated[
        dict[str, Any] | None, "where the documents are, if not in configuration corpus", HubPart
    ] = None,
    queries: Annotated[dict[str, Any] | None, "where the queries are, if not in configuration queries", HubPart] = None,
    judgments: Annotated[
        dict[str, Any] | None, "where the judgments are, if not in configuration default", HubPart
    ] = None,
    columns: ColumnNames = None,
    grades: Grades = None,
    rel: Rel = 1,
    drop_negative: DropNegative = False,
    drop_unknown: DropUnknown = False,
    drop_empty: DropEmpty = False,
    ignore_identical_ids: IgnoreIdenticalIds = True,
) -> Task:
    """Load a data set. By default it has MTEB's layout: configurations corpus, queries and default (judgments)."""
    if reason := missing_modules(("datasets",), EXTRA):
        raise InputError("format 'hub' needs a library that is not installed", remedy=reason)
    parts = {
        "documents": _part("documents", documents, HubPart(dataset, "corpus", "corpus")),
        "queries": _part("queries", queries, HubPart(dataset, "queries", "queries")),
        "judgments": _part("judgments", judgments, HubPart(dataset, "default", split)),
    }
    tables = {table: _read(part, base, revision) for table, part in parts.items()}
    task = task_of(
        name,
        **tables,
        columns=BEIR_COLUMNS.rename(columns),
        grades=grades,
        rel=rel,
        lenient=Leniency(
            drop_negative=drop_negative,
            drop_unknown=drop_unknown,
            drop_empty=drop_empty,
            judged_only=True,
            ignore_identical_ids=ignore_identical_ids,
        ),
    )
    asked = sorted({part.dataset for part in parts.values() if not (base / part.dataset).is_dir()})
    if revision or not asked:
        return task
    return msgspec.structs.replace(task, notes=[*task.notes, fact("unpinned", datasets=asked)])


def _part(table: str, given: dict[str, Any] | None, default: HubPart) -> HubPart:
    return convert(table, {**msgspec.to_builtins(default), **(given or {})}, HubPart)


def _read(part: HubPart, base: Path, revision: str | None) -> Rows:
    """A folder next to task.toml takes precedence over the hub."""
    import datasets
    from datasets.exceptions import DatasetNotFoundError

    local = base / part.dataset
    source = f"{part.dataset} {part.config or ''} {part.split}"
    try:
        table = datasets.load_dataset(
            str(local) if local.is_dir() else part.dataset, part.config, split=part.split, revision=revision
        )
    except DatasetNotFoundError as error:
        raise InputError(str(error), place=part.dataset, remedy="check the name, and your access to it") from None
    except ValueError as error:  # an unknown configuration or split; the library lists the known ones
        raise InputError(str(error), place=source) from None
    except (OSError, RuntimeError) as error:
        raise Unavailable(f"{source}: {error}") from error
    except Exception as error:  # damaged files; its errors and its parsers' share no base class
        raise _explain_damage(error, source) from error
    return Rows.of(source, _rows(table, source))


def _rows(table: Any, source: str) -> Iterator[tuple[str, Row]]:
    """Read rows lazily; invalid UTF-8 is found only here."""
    number = 0
    try:
        for number, row in enumerate(table, start=1):
            yield f"row {number}", row
    except Exception as error:  # the library's own errors; those of our readers are raised elsewhere
        raise _explain_damage(error, f"{source}, row {number + 1}") from error


def _explain_damage(error: Exception, place: str) -> InputError:
    why = " ".join(str(error.__cause__ or error).split()) or type(error).__name__
    return InputError(f"can't be read: {why}", place=place, remedy="repair its files, or fetch it again")
