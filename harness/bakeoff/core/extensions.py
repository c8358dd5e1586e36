"""Extensions: what they add, and how they are found. The core names none of them.

Every package in `bakeoff/extensions/` lists what it adds in its own `__init__`:

- `COMMANDS` of the command line;
- by name `SYSTEMS`, `STORES`, `EXISTING`, `RERANKERS`, `FORMATS`, `KINDS` and `ENGINES`;
- `WORDS` for its facts;
- `API` and `PLUGIN_API`, names of `bakeoff` and of `bakeoff.plugins`;
- `REGISTRIES` of its own, for `bakeoff options`;
- `BEFORE_REMOVAL`, what to call with a scratch folder before it is removed.

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
    """A command: its name, `module:function` (or the Typer of a family), its group in `--help`, and one line on it."""

    name: str
    place: str
    group: str
    summary: str


@cache
def extensions() -> tuple[ModuleType, ...]:
    """The extensions in this installation, by name; without the folder there are none."""
    names = sorted(path.parent.name for path in FOLDER.glob("*/__init__.py"))
    return tuple(import_module(f"bakeoff.extensions.{name}") for name in names)


def added(table: str) -> dict[str, Any]:
    """What extensions add to one table (`KINDS`, `ENGINES`, …), by name."""
    return {name: entry for extension in extensions() for name, entry in getattr(extension, table, {}).items()}


def load_place(place: str) -> Any:
    """What `module:name` names, imported now."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def extension_commands() -> list[Command]:
    """The commands of our own extensions, in the order of their tables."""
    return [command for extension in extensions() for command in getattr(extension, "COMMANDS", ())]


def offered_commands() -> Iterator[Command | BrokenPlugin]:
    """The commands of other packages, or why one can't be loaded. Reading all metadata takes longer than `--help`."""
    if any(_offers_commands(Path(folder)) for folder in dict.fromkeys(sys.path)):
        from bakeoff_providers.registry import load_offered, offered

        for point in offered([COMMANDS_GROUP])[COMMANDS_GROUP]:
            try:
                yield load_offered(point, "command", lambda record: Command(*record))._replace(name=point.name)
            except BrokenPlugin as error:
                yield error


def _offers_commands(folder: Path) -> bool:
    """Whether a distribution in a folder of `sys.path` has entry points of ours, by their text."""
    heading = f"[{COMMANDS_GROUP}]"
    return any(
        heading in file.read_text(encoding="utf-8", errors="replace")
        for file in folder.glob("*.*-info/entry_points.txt")
    )
