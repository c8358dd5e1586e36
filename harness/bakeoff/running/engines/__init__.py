"""Where the heavy steps of a run are done. `local` is here; others are in extensions or come by `bakeoff.engines`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.registry import Registry, missing_modules

from bakeoff.core.extensions import added
from bakeoff.core.remote import SharedFolder
from bakeoff.lineup.entries import EngineEntry
from bakeoff.running.settings import Settings

if TYPE_CHECKING:
    from bakeoff.running.engines.base import Engine

BUILTIN = {
    "local": "bakeoff.running.engines.local:Local",
    **added("ENGINES"),
}

ENGINES: Registry[Engine] = Registry("engine", "bakeoff.engines", BUILTIN)


def engine_entry(entry: EngineEntry, name: str | None, address: str | None) -> EngineEntry:
    """The line-up's engine, with what the command line says instead."""
    changed = msgspec.structs.replace(entry, name=name or entry.name, address=address or entry.address)
    if not ENGINES.get(changed.name).on_other_machines and (changed.address or changed.shards):
        able = " or ".join(known for known in ENGINES.names() if ENGINES.get(known).on_other_machines)
        setting, place = ("address", "--address") if changed.address else ("shards", "engine shards")
        raise InputError(
            f"the {changed.name} engine has no {setting}", place=place, remedy=f"add --engine {able}, or remove it"
        )
    return changed


def with_shared_cache(settings: Settings, entry: EngineEntry) -> Settings:
    """Vectors are kept in the cache, or in the copy of a folder that all nodes see; of that, what is asked for."""
    if not entry.shards:
        return settings
    shared = SharedFolder(entry.shards)
    return replace(settings, cache=shared.path, fetch=shared.fetch if shared.remote else None)


def engine_of(entry: EngineEntry) -> Engine:
    """The engine that was asked for; a library that it needs and that is missing is named."""
    kind = ENGINES.get(entry.name)
    if reason := missing_modules(kind.modules, kind.extra):
        raise Unavailable(f"engine {entry.name}: {reason}")
    return ENGINES.create(entry.name, entry=entry)
