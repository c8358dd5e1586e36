"""`bakeoff interleave` and `bakeoff ab`: compare two systems by clicks."""

from __future__ import annotations

from typing import Annotated

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import ColumnOption, JsonOption, MetricsOption, deliver, parse_columns
from bakeoff.extensions.production.commands.log import LogArgument


def interleave(
    log: LogArgument,
    column: ColumnOption = None,
    alpha: Annotated[float, typer.Option(min=1e-6, max=0.5, help="Significance level.")] = 0.05,
    once: Annotated[bool, typer.Option("--once", help="The log is complete and this is the only look.")] = False,
    preference: Annotated[
        float, typer.Option(min=0.001, max=0.999, help="Say how many users show this preference.")
    ] = 0.1,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Compare clicks on two interleaved systems.

    The exit code is 1 if people prefer a, the system in use.
    """
    from bakeoff.extensions.production.search_log import LogColumns
    from bakeoff.extensions.production.traffic import analyse, read_interleaved

    columns = LogColumns.rename(parse_columns(column))
    deliver(
        "interleave",
        lambda: analyse(read_interleaved(log, columns), alpha=alpha, once=once, planned=preference),
        as_json=as_json,
        metrics_file=metrics_file,
    )


def ab(
    log: LogArgument,
    control: Annotated[str, typer.Option(help="The arm in use.")] = "control",
    treatment: Annotated[str, typer.Option(help="The new arm.")] = "treatment",
    metric: Annotated[str, typer.Option("-m", "--metric", help="Per session: click@K, rr or success.")] = "click@10",
    split: Annotated[str, typer.Option(help="The planned split of users, control first.")] = "1:1",
    sequential: Annotated[
        int | None,
        typer.Option(min=1, metavar="USERS", help="Always-valid interval, tightest at this many users."),
    ] = None,
    alpha: Annotated[float, typer.Option(min=1e-6, max=0.5, help="Significance level.")] = 0.05,
    column: ColumnOption = None,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Compare the two arms of an A/B test.

    The exit code is 1 if the treatment is worse or the split is not as planned.
    """
    from bakeoff.extensions.production.search_log import LogColumns
    from bakeoff.extensions.production.traffic import compare_arms

    columns, shares = LogColumns.rename(parse_columns(column)), _parse_split(split)
    deliver(
        "ab",
        lambda: compare_arms(
            log, columns, control=control, treatment=treatment, metric=metric, split=shares, planned=sequential,
            alpha=alpha,
        ),
        as_json=as_json,
        metrics_file=metrics_file,
    )  # fmt: skip


def _parse_split(text: str) -> tuple[float, float]:
    try:
        one, other = (float(part) for part in text.split(":"))
    except ValueError:
        one = other = 0.0
    if not (0 < one < float("inf") and 0 < other < float("inf")):
        raise InputError(f"{text!r} is not a split", place="--split", remedy="write it as 1:1 or 90:10")
    return one, other
