"""`bakeoff plan-queries`: how many queries to label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared_options import latest, say


def plan_queries(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RESULT...]", callback=latest, help="Results to take the spread of scores from, or `latest`."
        ),
    ] = None,
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="Such as ndcg@10.")] = None,
    width: Annotated[float | None, typer.Option(min=1e-6, help="The width of the interval of a difference.")] = None,
    difference: Annotated[float | None, typer.Option(min=1e-6, help="The smallest difference that matters.")] = None,
    power: Annotated[float, typer.Option(min=0.01, max=0.999, help="How often it should be found.")] = 0.8,
    contenders: Annotated[int | None, typer.Option(min=2, help="How many will be compared.")] = None,
    variance: Annotated[
        float | None, typer.Option(min=1e-9, help="The variance of a score, instead of results.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="For a new collection: count from no queries.")] = False,
) -> None:
    """Say how many queries to label for an interval of a chosen width, or to find a chosen difference."""
    from bakeoff.results.compare import read_results
    from bakeoff.results.plan_queries import plan_queries as plan

    planned = plan(
        read_results(results or []),
        measure,
        variance=variance,
        contenders=contenders,
        width=width,
        difference=difference,
        power=power,
        new=new,
    )
    for sentence in planned.sentences:
        say(sentence)
