"""Tasks from files. A new format is one module here and one line below (third parties: `bakeoff.formats`).

Its function gets the task's name, the folder that paths are relative to, and its own options as keyword arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.core.task import Task


FORMATS: Registry[Task] = Registry(
    "format",
    "bakeoff.formats",
    {
        "native": "bakeoff.tasks.formats.native:load",
        "beir": "bakeoff.tasks.formats.beir:load",
        "tables": "bakeoff.tasks.formats.tables:load",
        "ir_datasets": "bakeoff.tasks.formats.ir_datasets:load",
        "hub": "bakeoff.tasks.formats.hub:load",
        "mteb": "bakeoff.tasks.formats.mteb:load",
    },
)


def check_types(format_name: str, options: Mapping[str, Any]) -> None:
    """Every option against the type that the format declares for it."""
    FORMATS.check_options(format_name, options)
    declared = get_type_hints(FORMATS.get(format_name))
    for option, value in options.items():
        converted(option, value, declared.get(option, Any))


def converted(option: str, value: Any, shape: Any) -> Any:
    """A value of a task.toml in the shape that it must have."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        raise InputError(problem, place=option + place.strip("`").removeprefix("$")) from None
