"""`bakeoff migrate`: plan a change of embedding model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import JsonOption, LineupOption, MaxCost, MetricsOption, Offline, deliver, lineup_path

if TYPE_CHECKING:
    from bakeoff.results.check import Check

migrate = Family(help="Plan the change from one embedding model to another.", no_args_is_help=True)


@migrate.callback()
def _family() -> None:
    """Keep `plan` a subcommand although it is the only one."""


@migrate.command()
def plan(
    old: Annotated[str, typer.Argument(help="Label of the row in use.")],
    new: Annotated[str, typer.Argument(help="Label of the new row.")],
    lineup: LineupOption = None,
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="Default: the line-up's primary one.")] = None,
    documents: Annotated[
        int | None, typer.Option(min=1, help="Number of documents in production, for the costs.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the order of documents.")] = 42,
    max_cost: MaxCost = None,
    offline: Offline = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Compare quality and cost of each way to migrate.

    The exit code is 1 if the new model is worse.
    """
    from bakeoff.core.paths import vectors_folder
    from bakeoff.evaluation.measures import Measure
    from bakeoff.extensions.production.migrate import plan as advise
    from bakeoff.extensions.production.migrate import sides, ways
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.running.settings import Settings
    from bakeoff.statistics.averaging import task_averaging

    chosen = Lineup.read(lineup_path(lineup))
    by = Measure.parse(measure) if measure else chosen.primary

    def check() -> Check:
        settings = Settings(cache=vectors_folder(), max_cost=max_cost, offline=offline)
        task, index, before, after, texts = sides(chosen, old, new, settings)
        count = documents or len(task.documents)
        compared = ways(task, index, before, after, texts, by, count / len(task.documents), seed)
        return advise(compared, (old, new), by, count, task_averaging(task), chosen.stop_within)

    deliver("migrate", check, as_json=as_json, metrics_file=metrics_file)
