"""`bakeoff plan-queries`: how many queries to label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from bakeoff_providers.errors import InputError

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
    looks: Annotated[int | None, typer.Option(min=2, max=20, help="Plan this many looks; needs --task.")] = None,
    task: Annotated[str | None, typer.Option(help="The task that a plan of looks is written into.")] = None,
) -> None:
    """Say how many queries to label for an interval of a chosen width, or to find a chosen difference."""
    from bakeoff.extensions.testsets.plan_queries import plan_looks
    from bakeoff.extensions.testsets.plan_queries import plan_queries as plan
    from bakeoff.extensions.testsets.plan_report import looks_sentences, terminal
    from bakeoff.report.console import console
    from bakeoff.results.compare import read_results

    if looks is not None and (task is None or difference is None):
        raise InputError("--looks needs --task and --difference", remedy="add --task mine --difference 0.05")
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
    console().print(terminal(planned))
    if looks is None or task is None or difference is None:
        return
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.tasks.looks import write_plan

    folder = TaskFolder.open(task)
    folder.check_own()
    if any(query.drawn or query.cluster for query in folder.task.queries):
        problem = "its queries were drawn by traffic, or share clusters"
        raise InputError(problem, file=folder.path, remedy="plan looks at a plain task")
    by_look = plan_looks(planned, looks)
    path = write_plan(folder.kind.base, folder.query_ids, by_look.queries, planned.measure, difference)
    for sentence in looks_sentences(by_look):
        say(sentence)
    say(f"Written to {path}.")
