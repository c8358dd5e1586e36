"""Extensions: what they add, and how they are found. The core names none of them.

Every package in `bakeoff/extensions/` lists what it adds in its own `__init__`:

- `COMMANDS` of the command line;
- by name `SYSTEMS`, `STORES`, `EXISTING`, `RETRIEVERS`, `RERANKERS`, `FORMATS`, `KINDS`, `MEASURES` and `ENGINES`;
- `WORDS` for its facts;
- `API` and `PLUGIN_API`, names of `bakeoff` and of `bakeoff.plugins`;
- `REGISTRIES` for `bakeoff options`;
- `ISOLATION`, what creates adapters in their own processes;
- `BEFORE_REMOVAL`, what to call with a scratch folder before it is removed;
- `TASK_HEALTH`, what `validate` calls with a task, and `AFTER_INIT`, what `init` calls with a new line-up;
- `SCHEMAS`, structs of files that have a JSON Schema;
- `SEVERAL_RESULTS` and `SEVERAL_TASKS`, what `report` calls with several results, and `run` with those of its tasks.

Other packages offer commands by the entry point `bakeoff.commands`, and the rest by those of the registries.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bakeoff_providers.errors import BrokenPlugin

FOLDER = Path(__file__).parent.parent / "extensions"
COMMANDS_GROUP = "bakeoff.commands"


class Command(NamedTuple):
    """A command: name, `module:function` (or a Typer for a family), group in `--help`, and a one-line summary."""

    name: str
    place: str
    group: str
    summary: str


@cache
def extensions() -> tuple[ModuleType, ...]:
    """The installed extensions by name. None if the folder is missing."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
    return tuple(import_module(f"bakeoff.extensions.{name}") for name in names)


def collect_entries(table: str) -> dict[str, Any]:
    """The entries that extensions add to a table such as `KINDS` or `ENGINES`, by name."""
    return {name: entry for extension in extensions() for name, entry in getattr(extension, table, {}).items()}


def load_place(place: str) -> Any:
    """Imports what `module:name` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def extension_commands() -> list[Command]:
    """The commands of our own extensions, in the order of their tables."""
    return [command for extension in extensions() for command in getattr(extension, "COMMANDS", ())]


def load_plugin_commands() -> Iterator[Command | BrokenPlugin]:
    """The commands of other packages, or the error if one can't be loaded."""
    if any(_offers_commands(Path(folder)) for folder in dict.fromkeys(sys.path)):
        from bakeoff_providers.registry import find_entry_points, load_offered

        for point in find_entry_points([COMMANDS_GROUP])[COMMANDS_GROUP]:
            try:
                yield load_offered(point, "command", lambda record: Command(*record))._replace(name=point.name)
            except BrokenPlugin as error:
                yield error


def _offers_commands(folder: Path) -> bool:
    """Whether a distribution in this `sys.path` folder has a Bakeoff entry point. Searches the text of its metadata."""
    heading = f"[{COMMANDS_GROUP}]"
    return any(
        heading in file.read_text(encoding="utf-8", errors="replace")
        for file in folder.glob("*.*-info/entry_points.txt")
    )
