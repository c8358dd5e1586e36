"""`bakeoff corpus-size`: does a bake-off on few documents hold for many?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.commands.options import AsJson, ContendersOption, LineupArgument, MaxCost, Offline, lineup_path, warn

if TYPE_CHECKING:
    from bakeoff.results.corpus_size import CorpusSizes, Point
    from bakeoff.statistics.growth import Extrapolation


def corpus_size(
    lineup: LineupArgument = None,
    contender: ContendersOption = None,
    sizes: Annotated[
        str, typer.Option(help="Numbers of documents, as 1000,3000; all is added. Default: 1, 3, 10, 30 … thousand.")
    ] = "",
    documents: Annotated[int | None, typer.Option(min=1, help="The size to estimate scores for.")] = None,
    offline: Offline = False,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
) -> None:
    """Score nested samples of the corpus: how scores fall with its size, and whether the order holds."""
    import msgspec
    from bakeoff_providers.errors import InputError

    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.results.corpus_size import corpus_sizes
    from bakeoff.running.runner import Settings, vectors_folder

    wanted = [part.strip().replace("_", "") for part in sizes.split(",") if part.strip()]
    if not all(part.isdigit() for part in wanted):
        raise InputError(f"{sizes!r} is not a list of whole numbers", place="--sizes", remedy="write 1000,3000,10000")
    chosen = Lineup.read(lineup_path(lineup)).narrowed(contender or (), ())
    settings = Settings(cache=vectors_folder(), offline=offline, max_cost=max_cost, progress=Bars(), notice=warn)
    found = corpus_sizes(chosen, settings, [int(part) for part in wanted], documents)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    _print(found, documents)


def _print(found: CorpusSizes, documents: int | None) -> None:
    from bakeoff.evaluation.measures import Measure
    from bakeoff.report.console import Figures, console, grid
    from bakeoff.report.notes import task_called

    measure, screen = Measure.parse(found.measure).label, console()
    weighting = f"{found.weighting}, " if found.weighting else ""
    screen.print(
        f"{found.name}: {task_called(found.task)}, {measure} [95%] over {found.queries} queries, {weighting}"
        f"nested samples by seed {found.seed}; every document with a grade is in each of them"
    )
    target = [Figures(f"estimate for {documents:,}")] if documents else []
    table = grid("contender", *(Figures(f"{size:,}") for size in found.sizes), *target)
    for row in sorted(found.rows, key=lambda row: -row.points[-1].mean):
        estimate = [_interval(row.estimate) if row.estimate else "–"] if documents else []
        table.add_row(row.label, *map(_interval, row.points), *estimate)
    screen.print(table)
    for label, reason in found.not_run.items():
        screen.print(f"{label}: not run: {reason}")
    for sentence in found.changes or ["The order of the contenders at the smallest size is that at the largest."]:
        screen.print(sentence)
    if documents and any(row.estimate for row in found.rows):
        screen.print(
            "Estimates: halfway between lines in log N through the means and through their log odds; brackets span "
            "the 95% prediction intervals of both. They assume that further documents are like these."
        )
    elif documents:
        screen.print("No estimate: it needs three sizes or more.")


def _interval(point: Point | Extrapolation) -> str:
    if point.low is None or point.high is None:
        return f"{point.mean:.3f}"
    return f"{point.mean:.3f} [{point.low:.3f}, {point.high:.3f}]"
