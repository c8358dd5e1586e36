"""What `bakeoff list` says of every plug-in, without importing one: most of them import numpy, and some their engine.

plugin_index.json has it for those that come with Bakeoff; `python -m tests.cli.test_listing` writes it again from
the adapters. Plug-ins of other packages are imported and asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import BrokenPlugin
from bakeoff_providers.needs import Needs
from bakeoff_providers.registry import load_offered, offered

INDEX = Path(__file__).with_suffix(".json")
GROUPS = {
    "provider": "bakeoff.providers",
    "store": "bakeoff.stores",
    "ranker": "bakeoff.rankers",
    "reranker": "bakeoff.rerankers",
    "retriever": "bakeoff.retrievers",
    "row type": "bakeoff.systems",
    "token store": "bakeoff.token_stores",
    "existing index": "bakeoff.existing",
    "vector file": "bakeoff.vector_files",
    "engine": "bakeoff.engines",
    "chat": "bakeoff.chats",
    "query maker": "bakeoff.makers",
    "kind of task": "bakeoff.kinds",
    "format": "bakeoff.formats",
    "measure": "bakeoff.measures",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of the list; a measure's name says whether it takes a cut-off."""

    name: str
    about: str
    needs: Needs

    def to_dict(self) -> dict[str, Any]:
        """For the index; what is left out has its default."""
        needs = {
            field.name: getattr(self.needs, field.name)
            for field in fields(Needs)
            if getattr(self.needs, field.name) != field.default
        }
        return {"about": self.about, **({"needs": needs} if needs else {})}


def listed(name: str, plugin: Any) -> Listed:
    """What a plug-in that is imported says of itself."""
    lines = (plugin.__doc__ or "").splitlines()
    needs = plugin.needs() if hasattr(plugin, "needs") else Needs()  # a format is a function
    cut = getattr(plugin, "cut", "refused")
    return Listed(name if cut == "refused" else f"{name}@k", lines[0] if lines else "", needs)


def plugins() -> dict[str, list[Listed]]:
    """Every plug-in by its sort: those of Bakeoff in the order of their lines, then those of other packages by name."""
    index: dict[str, dict[str, dict[str, Any]]] = json.loads(INDEX.read_text(encoding="utf-8"))
    others = offered(list(GROUPS.values()))
    return {sort: [*_ours(index[sort]), *_theirs(sort, others[group], index[sort])] for sort, group in GROUPS.items()}


def _ours(entries: dict[str, dict[str, Any]]) -> list[Listed]:
    return [Listed(name, entry["about"], _needs(entry.get("needs", {}))) for name, entry in entries.items()]


def _needs(entry: dict[str, Any]) -> Needs:
    fields_: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Needs(**fields_)


def _theirs(sort: str, points: list[Any], ours: dict[str, Any]) -> list[Listed]:
    names = {name.removesuffix("@k") for name in ours}
    theirs = sorted((point for point in points if point.name not in names), key=lambda point: point.name)
    return [_their(sort, point) for point in theirs]


def _their(sort: str, point: Any) -> Listed:
    try:
        return load_offered(point, sort, partial(listed, point.name))
    except BrokenPlugin as error:
        return Listed(point.name, "", Needs(note=str(error)))
