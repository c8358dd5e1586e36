"""Formats of tasks. Extensions add data sets by name; other packages add theirs by `bakeoff.formats`.

A format is a function of the task's name, the base folder of paths, and its options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries

if TYPE_CHECKING:
    from bakeoff.core.task import Task


FORMATS: Registry[Task] = Registry(
    "format",
    "bakeoff.formats",
    {
        "native": "bakeoff.tasks.formats.native:load",
        "tables": "bakeoff.tasks.formats.tables:load",
        **collect_entries("FORMATS"),
    },
    given=("name", "base"),
)
