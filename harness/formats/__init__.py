"""Tasks from files. A new format is one module here and one line below (third parties: `bakeoff.formats`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_type_hints

import msgspec

from providers.errors import InputError
from providers.registry import Registry

if TYPE_CHECKING:
    from harness.task import Task


class Format(Protocol):
    """Reads a task; each format's own options are its keyword arguments, paths relative to `base`."""

    def __call__(self, name: str, base: Path, **options: Any) -> Task:
        """The task in these files."""


COMMON = ("format", "name", "targets", "chunking")  # what every task may say, whatever its format

FORMATS: Registry[Task] = Registry(
    "format",
    "bakeoff.formats",
    {
        "native": "harness.formats.native:load",
        "beir": "harness.formats.beir:load",
        "tables": "harness.formats.tables:load",
        "ir_datasets": "harness.formats.ir_datasets:load",
        "hub": "harness.formats.hub:load",
    },
)


def load_task(source: str | Mapping[str, Any], base: Path) -> Task:
    """A task by a built-in name, by its task.toml or the folder that holds one, or described in place."""
    from harness.files import read_toml

    if not isinstance(source, str):
        return _load(str(source.get("name", "task")), source, base, None)
    path = task_description(source, base)
    return _load(path.parent.name, read_toml(path, dict[str, Any]), path.parent, path)


def task_description(source: str, base: Path) -> Path:
    """The task.toml that a name, a path or a folder stands for."""
    from harness.shipped import task_file, task_names

    if source.endswith(".toml"):
        return base / source
    own = base / source / "task.toml"
    return own if source not in task_names() and own.is_file() else task_file(source)


def _load(name: str, description: Mapping[str, Any], base: Path, file: Path | None) -> Task:
    options = {key: value for key, value in description.items() if key not in COMMON}
    format_name = description.get("format")
    if not isinstance(format_name, str):
        raise InputError("a task needs a format", file=file, place="format", remedy=f"one of: {FORMATS.names()}")
    targets = _converted("targets", description.get("targets", {}), dict[str, float], file)
    _check_types(format_name, options, file)
    try:
        task = FORMATS.create(format_name, name=str(description.get("name", name)), base=base, **options)
    except TypeError as error:
        raise InputError(f"format {format_name!r}: {error}", file=file, remedy="see docs/tasks.md") from None
    if "chunking" in description:
        from harness.task import Chunking

        chunking = _converted("chunking", description["chunking"], Chunking, file)
        cut = [msgspec.structs.replace(document, chunking=chunking) for document in task.documents]
        task = msgspec.structs.replace(task, documents=cut)
    return msgspec.structs.replace(task, targets=targets)


def _check_types(format_name: str, options: Mapping[str, Any], file: Path | None) -> None:
    """Every option against the type that the format declares for it."""
    FORMATS.check_options(format_name, options)
    declared = get_type_hints(FORMATS.get(format_name))
    for option, value in options.items():
        _converted(option, value, declared.get(option, Any), file)


def _converted(option: str, value: Any, shape: Any, file: Path | None) -> Any:
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        raise InputError(problem, file=file, place=option + place.strip("`").removeprefix("$")) from None
