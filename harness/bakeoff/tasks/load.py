"""Loads a task of any kind by the name, path or table that a user gives, and draws a sample of its documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import REST
from bakeoff_providers.registry import nearest

from bakeoff.core.corpus import collect_documents
from bakeoff.core.files import read_toml
from bakeoff.core.paths import task_description
from bakeoff.core.task import Document, Task, document_blocks, document_ids
from bakeoff.core.toml_values import toml_value
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.kinds import TASK_KINDS, TaskKeys, load_kind


def load_task(source: str | Mapping[str, Any] | Task, base: Path) -> Task:
    """Load a task by built-in name, from a task.toml or its folder, or from an inline description."""
    return load_kind(source, base).task()


def task_options(
    source: str | Mapping[str, Any] | Task, base: Path, given: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """Options set outside the task's file. Paths among them are relative to `folder`."""
    if not given or isinstance(source, Task):
        return {}
    toml_value(given)  # raises on values that TOML can't hold
    description = read_toml(task_description(source, base), dict[str, Any]) if isinstance(source, str) else source
    options = _nest(given, description)
    _check_known(description, options)
    paths = TASK_KINDS.get(str(description.get("kind", "graded"))).paths
    return {key: str(folder / str(value)) if key in paths else value for key, value in options.items()}


def _nest(given: Mapping[str, Any], description: Mapping[str, Any]) -> dict[str, Any]:
    """Sets `labels.mode` as `mode` in the task's table `labels` and keeps its other keys."""
    options: dict[str, Any] = {}
    for key, value in given.items():
        first, *rest = key.split(".")
        if not rest:
            options[first] = value
            continue
        known = options.get(first, description.get(first, {}))
        table = options[first] = dict(known) if isinstance(known, Mapping) else {}
        for part in rest[:-1]:
            inner = table.get(part, {})
            table[part] = dict(inner) if isinstance(inner, Mapping) else {}
            table = table[part]
        table[rest[-1]] = value
    return options


def _check_known(description: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuses an unknown option, naming the kinds of task that have it."""
    kind, format_name = str(description.get("kind", "graded")), description.get("format")
    known = [*TaskKeys.__struct_fields__, *(option.name for option in TASK_KINDS.options(kind))]
    if REST in known:
        if format_name not in FORMATS.names():
            return
        known = [*known, *(option.name for option in FORMATS.options(str(format_name)))]
    for option in given:
        if option not in known:
            has = [
                name for name, _ in TASK_KINDS.load_all() if option in {one.name for one in TASK_KINDS.options(name)}
            ]
            remedy = f"tasks of kind {' and '.join(has)} have it" if has else nearest(option, [*known])
            what = f"a task of kind {kind!r}" + (f" and format {format_name!r}" if format_name else "")
            raise InputError(f"{what} has no option {option!r}", place="--set", remedy=remedy)


def find_required(task: Task) -> set[str]:
    """Documents in every sample: the graded ones and query items."""
    judged = {document for grades in task.judgments.values() for document in grades}
    return judged | {query.excluded for query in task.queries if query.excluded}


def draw_sample(task: Task, documents: int, seed: int) -> Task:
    """Sample ungraded documents by seed; scores are too high on it. Smaller samples are subsets of larger ones."""
    ids, kept = document_ids(task.documents), find_required(task)
    if documents >= len(ids):
        return task
    if documents < len(kept):
        raise InputError(
            f"a sample of {documents} documents can't hold the {len(kept)} that have a grade or are queries",
            place="--sample-documents",
            remedy=f"ask for {len(kept)} or more",
        )
    named = (f"{seed}:{name}".encode(errors="surrogatepass") for name in ids)
    order = np.fromiter(map(xxhash.xxh3_64_intdigest, named), np.uint64, len(ids))
    fixed = np.fromiter((name in kept for name in ids), bool, len(ids))
    rest = np.flatnonzero(~fixed)
    chosen = fixed.copy()
    chosen[rest[np.argsort(order[rest], kind="stable")[: documents - len(kept)]]] = True

    def blocks() -> Iterator[list[Document]]:
        start = 0
        for block in document_blocks(task.documents):
            mask = chosen[start : start + len(block)]
            yield [document for document, wanted in zip(block, mask, strict=True) if wanted]
            start += len(block)

    return msgspec.structs.replace(task, documents=collect_documents(blocks()), drawn_from=len(ids))
