"""Kinds of task: where judgments come from. `graded` is here; others are in extensions or other packages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import convert
from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries
from bakeoff.core.paths import task_description
from bakeoff.core.task import Task

if TYPE_CHECKING:
    from bakeoff.tasks.kinds.base import TaskKind

TASK_KINDS: Registry[TaskKind] = Registry(
    "kind of task",
    "bakeoff.kinds",
    {
        "graded": "bakeoff.tasks.kinds.graded:Graded",
        **collect_entries("KINDS"),
    },
    given=("name", "base", "targets"),
)


class TaskKeys(msgspec.Struct, frozen=True):
    """Keys of every task, in addition to its kind's options."""

    kind: Annotated[str, "where judgments come from"] = "graded"
    name: Annotated[str, "name of the task; default: its folder's name"] = ""
    about: Annotated[str, "description in one sentence, shown in every report"] = ""
    targets: Annotated[dict[str, float], 'targets by measure: { "p@5" = 0.7 }'] = {}


def load_kind(
    source: str | Mapping[str, Any] | Task, base: Path, overrides: Mapping[str, Any] | None = None
) -> TaskKind:
    """The configured kind of a task: by name, path of a task.toml, inline table, or Task."""
    from bakeoff.core.files import read_toml
    from bakeoff.tasks.kinds.graded import InMemory

    if isinstance(source, Task):
        return InMemory(source)
    if not isinstance(source, str):
        return _load(str(source.get("name", "task")), {**source, **(overrides or {})}, base, None)
    path = task_description(source, base)
    described = {**read_toml(path, dict[str, Any]), **(overrides or {})}
    return _load(path.absolute().parent.name, described, path.parent, path)


def _load(name: str, description: Mapping[str, Any], base: Path, file: Path | None) -> TaskKind:
    options = {key: value for key, value in description.items() if key not in TaskKeys.__struct_fields__}
    try:
        targets = convert("targets", description.get("targets", {}), dict[str, float])
        kind = str(description.get("kind", "graded"))
        TASK_KINDS.check_options(kind, options, whole=True)
        called = str(description.get("name", name))
        made = TASK_KINDS.create(kind, name=called, base=base, targets=targets, **options)
        made.about = " ".join(convert("about", description.get("about", ""), str).split())
        return made
    except InputError as error:
        raise InputError(error.problem, file=error.file or file, place=error.place, remedy=error.remedy) from None
