"""Where judgments come from. A new kind of task is one module here and one line below (others: `bakeoff.kinds`)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import Registry

from bakeoff.core.task import Task
from bakeoff.tasks.description import task_description
from bakeoff.tasks.formats import converted

if TYPE_CHECKING:
    from bakeoff.tasks.kinds.base import TaskKind

TASK_KINDS: Registry[TaskKind] = Registry(
    "kind of task",
    "bakeoff.kinds",
    {
        "graded": "bakeoff.tasks.kinds.graded:Graded",
        "reference": "bakeoff.tasks.kinds.reference:Reference",
        "ordered": "bakeoff.tasks.kinds.ordered:Ordered",
        "single": "bakeoff.tasks.kinds.single:Single",
        "profiles": "bakeoff.tasks.kinds.profiles:Profiles",
    },
)


def load_kind(
    source: str | Mapping[str, Any] | Task, base: Path, overrides: Mapping[str, Any] | None = None
) -> TaskKind:
    """A task's kind with its settings: by a built-in name, by the path of a task.toml, described in place, or made."""
    from bakeoff.core.files import read_toml
    from bakeoff.tasks.kinds.graded import InMemory

    if isinstance(source, Task):
        return InMemory(source)
    if not isinstance(source, str):
        return _load(str(source.get("name", "task")), {**source, **(overrides or {})}, base, None)
    path = task_description(source, base)
    return _load(path.parent.name, {**read_toml(path, dict[str, Any]), **(overrides or {})}, path.parent, path)


def _load(name: str, description: Mapping[str, Any], base: Path, file: Path | None) -> TaskKind:
    options = {key: value for key, value in description.items() if key not in ("kind", "name", "targets")}
    kind = str(description.get("kind", "graded"))
    try:
        targets = converted("targets", description.get("targets", {}), dict[str, float])
        given = {**options, "name": str(description.get("name", name)), "base": base, "targets": targets}
        TASK_KINDS.check_options(kind, given)
        try:
            inspect.signature(TASK_KINDS.get(kind)).bind(**given)
        except TypeError as error:
            raise InputError(f"a task of kind {kind!r}: {error}", remedy=f"see docs/{kind}.md") from None
        _check_types(kind, options)
        return TASK_KINDS.create(kind, **given)
    except InputError as error:
        raise InputError(error.problem, file=error.file or file, place=error.place, remedy=error.remedy) from None


def _check_types(kind: str, options: Mapping[str, Any]) -> None:
    """Every option against the type that the kind declares for it; those without a declaration the kind checks."""
    declared = get_type_hints(TASK_KINDS.get(kind).__init__)
    extra = {
        parameter.name
        for parameter in inspect.signature(TASK_KINDS.get(kind)).parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD
    }
    for option, value in options.items():
        if option in declared and option not in extra:
            converted(option, value, declared[option])
