"""`bakeoff log`: turn a search log into a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import (
    ColumnOption,
    Force,
    JsonOption,
    LineupOption,
    MetricsOption,
    ResultArgument,
    check_file,
    deliver,
    lineup_path,
    parse_columns,
    read_pipe,
)

if TYPE_CHECKING:
    from bakeoff.extensions.production.search_log import LogColumns
    from bakeoff.results.check import Check

log = Family(help="Turn a search log into a task.", no_args_is_help=True)

LogArgument = Annotated[
    Path, typer.Argument(callback=read_pipe, help="CSV, JSONL, parquet or -; one row per result list.")
]
SampleOption = Annotated[Path, typer.Option(help="The file from `bakeoff log sample`.")]


@log.command("import")
def import_(
    file: LogArgument,
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")] = Path("log.jsonl"),
    drop_personal: Annotated[
        bool, typer.Option("--drop-personal", help="Drop queries with e-mails or long numbers; hash users.")
    ] = False,
    column: ColumnOption = None,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Normalise and count queries; optionally drop personal data."""
    import secrets

    from bakeoff.extensions.production.log_import import import_log

    columns = _check_options(out, column, force)
    deliver(
        "log import",
        lambda: import_log(file, columns, out, drop_personal=drop_personal, salt=secrets.token_hex(16)),
        as_json=as_json,
        metrics_file=metrics_file,
    )


@log.command()
def sample(
    file: LogArgument,
    size: Annotated[int, typer.Option(min=2, help="Number of queries to draw.")] = 150,
    seed: Annotated[int, typer.Option(help="The same seed draws the same queries.")] = 42,
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")] = Path("queries.jsonl"),
    column: ColumnOption = None,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Draw queries from head, torso and tail, weighted by traffic."""
    from collections import Counter

    from bakeoff.core.task import normalise
    from bakeoff.extensions.production.log_sample import sample_log
    from bakeoff.extensions.production.search_log import read_log

    columns = _check_options(out, column, force)
    deliver(
        "log sample",
        lambda: sample_log(
            Counter(normalise(row.query) for row in read_log(file, columns, ("query",))), size, seed, out
        ),
        as_json=as_json,
        metrics_file=metrics_file,
    )


@log.command()
def judge(
    file: LogArgument,
    model: Annotated[
        Literal["position", "ctr"], typer.Option(help="position corrects for position bias; ctr does not.")
    ] = "position",
    places: Annotated[int, typer.Option(min=1, help="Number of ranks to read from each list.")] = 10,
    cut: Annotated[list[float] | None, typer.Option(help="Least attractiveness of a grade; may be repeated.")] = None,
    widest: Annotated[float, typer.Option(min=0, max=1, help="Widest interval that still gives a judgment.")] = 0.3,
    sure: Annotated[float, typer.Option(min=0, max=1, help="Least probability of a grade.")] = 0.8,
    out: Annotated[Path, typer.Option(help="The CSV file to write.")] = Path("judgments.csv"),
    column: ColumnOption = None,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Make judgments from clicks, corrected for position bias."""
    from bakeoff.extensions.production.log_judge import CUTS, judge_log
    from bakeoff.extensions.production.search_log import read_log

    columns = _check_options(out, column, force)
    deliver(
        "log judge",
        lambda: judge_log(
            read_log(file, columns, ("query", "shown", "clicked")), out, model=model, places=places, cuts=cut or CUTS,
            widest=widest, sure=sure,
        ),
        as_json=as_json,
        metrics_file=metrics_file,
    )  # fmt: skip


@log.command()
def matrix(
    result: ResultArgument,
    sample: SampleOption = Path("queries.jsonl"),
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="Default: the deciding measure.")] = None,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Print traffic-weighted means, with intervals and tests."""
    from bakeoff.extensions.production.log_sample import build_matrix, read_sample
    from bakeoff.results.result import load

    drawn, read = read_sample(sample), load(result)
    asked = read.queries
    if wrong := [query for query in [*asked, *drawn] if query not in drawn or query not in asked]:
        raise InputError(
            f"query {wrong[0]!r} is in only one of result and sample", file=result, remedy="run the sample"
        )
    deliver(
        "log matrix",
        lambda: build_matrix(
            {label: read.values(label, measure) for label in read.labels},
            [drawn[query] for query in asked],
            str(read.measure(measure)),
        ),
        as_json=as_json,
        metrics_file=metrics_file,
    )


@log.command()
def replay(
    old: Annotated[str, typer.Argument(help="Label of the contender in use.")],
    new: Annotated[str, typer.Argument(help="Label of the new contender.")],
    lineup: LineupOption = None,
    sample: Annotated[Path | None, typer.Option(help="Sampled queries; default: the task's own.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Compare the top K documents.")] = 10,
    grade: Annotated[int, typer.Option(min=1, help="Number of queries to propose for grading.")] = 50,
    out: Annotated[Path | None, typer.Option(help="Write the pairs worth grading to this CSV file.")] = None,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Compare two contenders' results and list pairs to grade."""
    from bakeoff.core.paths import vectors_folder
    from bakeoff.core.task import Query
    from bakeoff.extensions.production.log_replay import ask
    from bakeoff.extensions.production.log_replay import replay as compare
    from bakeoff.extensions.production.log_sample import read_sample
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.running.settings import Settings
    from bakeoff.statistics.averaging import averaging_of
    from bakeoff.tasks.kinds import load_kind

    chosen = Lineup.read(lineup_path(lineup))
    labels = [contender.label for contender in chosen.contenders]
    for label in (old, new):
        if label not in labels:
            raise InputError(f"there is no contender {label!r}", remedy=f"the line-up has {', '.join(labels)}")
    if old == new:
        raise InputError("both contenders are the same", remedy="name two")
    check_file(out, force=force)
    drawn = read_sample(sample) if sample else {}
    task = load_kind(chosen.task, chosen.folder, chosen.overrides).task()
    queries = [Query(id=query.id, text=query.text) for query in drawn.values()] or list(task.queries)
    weights = {query.id: query.weight for query in drawn.values()}
    if not drawn and averaging_of([query.drawn for query in queries]).weights is not None:
        weights = {query.id: query.drawn.weight for query in queries if query.drawn}

    def check() -> Check:
        answers = ask(chosen, [old, new], queries, k, Settings(cache=vectors_folder()))
        return compare(answers[old], answers[new], queries, weights, k=k, grade=grade, out=out)

    deliver("log replay", check, as_json=as_json, metrics_file=metrics_file)


def _check_options(out: Path, column: list[str] | None, force: bool) -> LogColumns:
    from bakeoff.extensions.production.search_log import LogColumns

    check_file(out, force=force)
    return LogColumns.rename(parse_columns(column))
