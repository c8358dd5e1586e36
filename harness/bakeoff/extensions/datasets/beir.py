"""BEIR folders: corpus.jsonl, queries.jsonl and qrels/<split>.tsv, each plain or gzipped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from bakeoff_providers.errors import InputError

from bakeoff.core.task import Task
from bakeoff.tasks.formats.cells import Rows
from bakeoff.tasks.formats.rows import (
    BEIR_COLUMNS,
    DropEmpty,
    DropNegative,
    DropUnknown,
    IgnoreIdenticalIds,
    Leniency,
    Rel,
    Split,
    task_of,
)
from bakeoff.tasks.formats.tables import read_table


def load(
    name: str,
    base: Path,
    folder: Annotated[str, "the folder with corpus.jsonl, queries.jsonl and qrels/"] = ".",
    split: Split = "test",
    rel: Rel = 1,
    drop_negative: DropNegative = False,
    drop_unknown: DropUnknown = False,
    drop_empty: DropEmpty = False,
    ignore_identical_ids: IgnoreIdenticalIds = True,
) -> Task:
    """Loads one split with its judged queries, as is usual; without qrels/, all queries."""
    root = base / folder
    if not root.is_dir():
        raise InputError("is not a folder", file=root, remedy="name a folder with corpus.jsonl, queries.jsonl, qrels/")
    judged = (root / "qrels").is_dir()
    return task_of(
        name,
        read_table(_plain_or_packed(root / "corpus.jsonl")),
        read_table(_plain_or_packed(root / "queries.jsonl")),
        read_table(_split(root / "qrels", split)) if judged else Rows(root, ()),
        BEIR_COLUMNS,
        rel=rel,
        lenient=Leniency(
            drop_negative=drop_negative,
            drop_unknown=drop_unknown,
            drop_empty=drop_empty,
            judged_only=judged,
            ignore_identical_ids=ignore_identical_ids,
        ),
    )


def _split(folder: Path, split: str) -> Path:
    file = _plain_or_packed(folder / f"{split}.tsv")
    if not file.is_file():
        known = sorted(other.name.partition(".tsv")[0] for other in folder.glob("*.tsv*"))
        raise InputError(f"no split {split!r}", file=folder, remedy=f"available splits: {', '.join(known) or 'none'}")
    return file


def _plain_or_packed(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.is_file() and not path.is_file() else path
