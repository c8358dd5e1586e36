"""`bakeoff log`: from what people asked to a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from bakeoff_providers.errors import InputError

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
)

if TYPE_CHECKING:
    from bakeoff.results.check import Check

log = typer.Typer(
    help="From what people asked to a task: import, sample, judge by clicks, replay.", no_args_is_help=True
)

LogArgument = Annotated[Path, typer.Argument(help="The log: CSV, JSONL or parquet, one row per list that was shown.")]
SampleOption = Annotated[Path, typer.Option(help="What `bakeoff log sample` wrote.")]


@log.command("import")
def import_(
    file: LogArgument,
    out: Annotated[Path, typer.Option(help="Where the rows go, as JSONL.")] = Path("log.jsonl"),
    drop_personal: Annotated[
        bool, typer.Option("--drop-personal", help="Drop queries with e-mail addresses or long numbers; hash users.")
    ] = False,
    column: ColumnOption = None,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Normalise and count a log's queries; leave personal data out on request."""
    import secrets

    from bakeoff.extensions.production.log_import import import_log
    from bakeoff.tasks.search_log import LogColumns

    check_file(out, force=force)
    columns = LogColumns.rename(parse_columns(column))
    deliver(
        "log import",
        lambda: import_log(file, columns, out, drop_personal=drop_personal, salt=secrets.token_hex(16)),
        as_json=as_json,
        metrics_file=metrics_file,
    )


@log.command()
def sample(
    file: LogArgument,
    size: Annotated[int, typer.Option(min=2, help="How many queries to draw.")] = 150,
    seed: Annotated[int, typer.Option(help="The same seed draws the same queries.")] = 42,
    out: Annotated[Path, typer.Option(help="Where the queries go, as JSONL.")] = Path("queries.jsonl"),
    column: ColumnOption = None,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Draw queries from head, torso and tail, with the traffic that each stands for."""
    from collections import Counter

    from bakeoff.extensions.production.log_sample import sample_log
    from bakeoff.tasks.search_log import LogColumns, normalise, read_log

    check_file(out, force=force)
    columns = LogColumns.rename(parse_columns(column))
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
        Literal["position", "ctr"], typer.Option(help="position takes out the pull of places; ctr is the plain rate.")
    ] = "position",
    places: Annotated[int, typer.Option(min=1, help="How many places of each list to read.")] = 10,
    cut: Annotated[list[float] | None, typer.Option(help="Attraction from which a grade begins; repeat it.")] = None,
    widest: Annotated[float, typer.Option(min=0, max=1, help="Wider intervals are no judgment.")] = 0.3,
    sure: Annotated[float, typer.Option(min=0, max=1, help="How likely a grade must be to be written.")] = 0.8,
    out: Annotated[Path, typer.Option(help="Where the judgments go, as CSV.")] = Path("judgments.csv"),
    column: ColumnOption = None,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Make judgments of clicks, with the pull of places taken out."""
    from bakeoff.extensions.production.log_judge import CUTS, judge_log
    from bakeoff.tasks.search_log import LogColumns, read_log

    check_file(out, force=force)
    columns = LogColumns.rename(parse_columns(column))
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
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="Default: the one that decided.")] = None,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Print a result's means per query asked, with intervals and tests that know how the queries were drawn."""
    from bakeoff.extensions.production.log_sample import build_matrix, read_sample
    from bakeoff.results.result import load

    drawn, read = read_sample(sample), load(result)
    asked = read.queries
    if wrong := [query for query in [*asked, *drawn] if query not in drawn or query not in asked]:
        raise InputError(
            f"query {wrong[0]!r} is only in one of result and sample", file=result, remedy="run the sample"
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
    old: Annotated[str, typer.Argument(help="The contender in use, by its label.")],
    new: Annotated[str, typer.Argument(help="The contender that may follow it.")],
    lineup: LineupOption = None,
    sample: Annotated[
        Path | None, typer.Option(help="Queries of `bakeoff log sample`; default: the task's own.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How deep to compare.")] = 10,
    grade: Annotated[int, typer.Option(min=1, help="How many queries to propose for grading.")] = 50,
    out: Annotated[Path | None, typer.Option(help="Write the pairs that are worth grading here, as CSV.")] = None,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Put the same queries through two contenders: what changes, and what is worth grading."""
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
