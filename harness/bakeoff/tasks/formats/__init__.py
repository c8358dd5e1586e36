"""Tasks from files. A new format is one module here and one line below (third parties: `bakeoff.formats`).

Its function gets the task's name, the folder that paths are relative to, and its own options as keyword arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import added

if TYPE_CHECKING:
    from bakeoff.core.task import Task


FORMATS: Registry[Task] = Registry(
    "format",
    "bakeoff.formats",
    {
        "native": "bakeoff.tasks.formats.native:load",
        "beir": "bakeoff.tasks.formats.beir:load",
        "tables": "bakeoff.tasks.formats.tables:load",
        **added("FORMATS"),
    },
    given=("name", "base"),
)
