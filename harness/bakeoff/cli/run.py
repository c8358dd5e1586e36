"""`bakeoff run` and `bakeoff show`: a line-up and its result."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import (
    MOST_ROUNDS,
    OWN_LINEUP,
    AddressOption,
    AsJson,
    ContendersOption,
    DryRun,
    EngineOption,
    EquivalentWithin,
    LineupArgument,
    MaxCost,
    Offline,
    OutOption,
    ResultArgument,
    VectorsOption,
    Wide,
    check_folder,
    grading_command,
    lineup_path,
    notice,
    parse_settings,
    read_lineup,
    say,
    say_commands,
    shard_folders,
    warn,
)
from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.schema import Summary
    from bakeoff.running.runner import Outcome, Settings


def run(
    lineup: LineupArgument = None,
    contender: ContendersOption = None,
    store: Annotated[list[str] | None, typer.Option(help="Only contenders over this store.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, max=MOST_ROUNDS, help="How often every query is asked.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="An option of the task, as k=5; may be repeated. `bakeoff options KIND` lists them."
        ),
    ] = None,
    out: OutOption = Path("results"),
    offline: Offline = False,
    cache: Annotated[bool, typer.Option(help="Keep vectors on disk and reuse them.")] = True,
    vectors: VectorsOption = None,
    sample_documents: Annotated[
        int | None,
        typer.Option(min=1, help="Only so many documents: all with a grade, the others drawn by the line-up's seed."),
    ] = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    max_cost: MaxCost = None,
    time_hosted: Annotated[
        int, typer.Option(min=0, metavar="N", help="Make N paid calls to each hosted model to time it.")
    ] = 0,
    dry_run: DryRun = False,
    equivalent_within: EquivalentWithin = None,
    tune_weights: Annotated[
        bool,
        typer.Option("--tune-weights", help="Fusions: choose weights by cross-validation and report their score."),
    ] = False,
    charts: Annotated[bool, typer.Option(help="Draw the charts of the page, which takes a few seconds.")] = True,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Run a line-up: fill the matrix, write the result, print the verdict."""
    import shlex
    import sys
    from dataclasses import replace

    from bakeoff.core.progress import showing
    from bakeoff.report.console import Bars
    from bakeoff.results.save import save
    from bakeoff.running.engines import engine_entry
    from bakeoff.running.runner import Settings, vectors_folder
    from bakeoff.running.runner import run as run_lineup
    from bakeoff.running.scoring import Ungraded
    from bakeoff.tasks.load import task_options

    check_folder(out)
    if offline and time_hosted:
        raise InputError("--time-hosted asks hosted models, --offline asks none", remedy="leave one of them out")
    if lineup is None and not OWN_LINEUP.is_file():
        notice(f"no {OWN_LINEUP} here: the built-in line-up is run (`bakeoff init TASK` writes one for an own task)")
    path = lineup_path(lineup)
    chosen = read_lineup(path).narrowed(contender or (), store or ())
    options = task_options(chosen.task, chosen.folder, parse_settings(set_, "k=5"), Path.cwd())
    chosen = replace(
        chosen,
        rounds=rounds or chosen.rounds,
        overrides={**chosen.overrides, **options},
        equivalent_within=equivalent_within or chosen.equivalent_within,
    )
    settings = Settings(
        cache=vectors_folder() if cache else None,
        offline=offline,
        max_cost=max_cost,
        time_hosted=time_hosted,
        progress=Bars(),
        notice=warn,
        tune_weights=tune_weights,
        sample_documents=sample_documents,
        engine=engine_entry(chosen.engine, engine, address),
        vectors=shard_folders(vectors),
    )
    if dry_run:
        _print_plan(chosen, settings)
        return
    command, folders, whole = shlex.join(["bakeoff", *sys.argv[1:]]), [], True
    for one in chosen.per_task():
        try:
            outcome = run_lineup(one, settings)
        except Ungraded as error:
            task = path.parent / one.task if isinstance(one.task, str) else path
            raise InputError(error.problem, remedy=f"grade it first: {grading_command(task, path)}") from None
        if not outcome.ran:
            _fail_without_rows(outcome)
        with showing(settings.progress):
            folders.append(save(outcome, out, command=command))
        failures = outcome.extras.failures
        del outcome  # the report is made from the files, and may need the room
        whole &= _show_and_render(folders[-1], charts=charts, wide=wide, quiet=as_json)
        for failure in failures:
            say(f"error: {failure}", err=True)
        whole &= not failures
        if chosen.tasks and not as_json:
            echo("")  # the next task, or all of them side by side
    if as_json:
        _print_stored(folders, out, several=bool(chosen.tasks))
    elif len(folders) > 1:
        from bakeoff.cli.tasks import tasks

        tasks(folders, out=out)
    if not whole:
        raise typer.Exit(1)


def _fail_without_rows(outcome: Outcome) -> NoReturn:
    """There is nothing to write and no verdict; each row's reason is all there is to say."""
    for lost in outcome.not_run:
        say(f"{lost.contender.label}: not run: {lost.reason}", err=True)
    say("error: no contender ran, so there is no result and no verdict", err=True)
    raise typer.Exit(1)


def _show_and_render(folder: Path, *, charts: bool, wide: bool, quiet: bool) -> bool:
    """Whether all was rendered. The figures are safe by now: what goes wrong is said, and can be made again."""
    from bakeoff.report import render
    from bakeoff.report.charts import MISSING

    problems: list[str] = []
    try:
        if not quiet:
            _print_result(folder, wide=wide)
        problems = render(folder, pictures=charts, charts=charts)
    except Exception as error:
        logging.getLogger("bakeoff.report").warning("no report", exc_info=error)
        problems = [f"{type(error).__name__}: {error}"]
    if not quiet:
        say(f"\nWritten to {folder}/")
        _name_page(folder)
    for problem in problems:
        say(problem, err=True)
    if set(problems) - {MISSING}:
        say(f"error: the figures are complete, the report is not\n  remedy: bakeoff report {folder}", err=True)
        return False
    return True


def _print_plan(lineup: Lineup, settings: Settings) -> None:
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid
    from bakeoff.running.plan import plan, plan_sentences

    names = lineup.task_names()
    table = Grid(
        [
            *(["task"] if names else []),
            "rows",
            Figures("texts"),
            Figures("in cache"),
            Figures("tokens (estimate)"),
            Figures("requests"),
            Figures("$"),
            Figures("minutes"),
            "note",
        ]
    )
    plans = [
        ([name], planned)
        for name, one in zip(names or [""], lineup.per_task(), strict=True)
        for planned in plan(one, settings)
    ]
    for name, planned in plans:
        table.add_row(
            *(name if names else []),
            ", ".join(planned.rows),
            str(planned.texts),
            str(planned.cached),
            f"{planned.tokens:,.0f}",
            str(planned.requests),
            "unknown" if planned.usd is None else f"{planned.usd:.6f}",
            _minutes(planned.minutes),
            planned.note,
        )
    console().print(table)
    for sentence in plan_sentences([planned for _, planned in plans], lineup):
        say(sentence)
    where = f" for {len(names)} tasks" if names else ""
    total = sum(planned.usd or 0 for _, planned in plans if not planned.lacks)
    lacking = sum(planned.usd or 0 for _, planned in plans if planned.lacks)
    more = f", and ${lacking:.6f} more if the rows that lack something ran, too" if lacking else ""
    unpriced = [label for _, planned in plans if planned.usd is None and not planned.lacks for label in planned.rows]
    unknown = f", besides what {', '.join(unpriced)} would cost: no price is known" if unpriced else ""
    say(f"in total{where} about ${total:.6f}{unknown}{more}; no service was asked")
    if unpriced and settings.max_cost is not None:
        say("with --max-cost these rows would not run: give price = … in their options")


def _minutes(estimate: float | None) -> str:
    """A guess, and marked as one."""
    if estimate is None:
        return "–"
    return "0" if estimate == 0 else "<0.1" if estimate < 0.1 else f"~{estimate:.1f}"


def _name_page(folder: Path) -> None:
    """Where the page is and how to open it: the last lines, where the eye is."""
    import shlex

    from bakeoff.report import PAGE

    page = folder / PAGE
    if page.is_file():
        say_commands(f"The page: {page}\nOpen it:  bakeoff report {shlex.quote(str(folder))} --open")
    else:
        say_commands(f"Make the page: bakeoff report {shlex.quote(str(folder))}")


def _print_stored(folders: list[Path], out: Path, *, several: bool) -> None:
    """One document, however many tasks: each task's result, and what holds over all of them where there are more."""
    if not several:
        _print_json(_stored(folders[0]))
        return
    from bakeoff.cli.tasks import SUMMARY, save_side_by_side

    folder = save_side_by_side(folders, out)[1] if len(folders) > 1 else None
    over_tasks = json.loads((folder / SUMMARY).read_bytes()) if folder else None
    summary = {"folder": str(folder) if folder else None, "tasks": [_stored(one) for one in folders]}
    _print_json(summary | {"over_tasks": over_tasks})


def _stored(folder: Path) -> dict[str, Any]:
    """The stored figures as they are, with the folder that holds them: for scripts."""
    from bakeoff.report import PAGE
    from bakeoff.results.schema import SUMMARY, read_summary

    read_summary(folder)  # a damaged result is said, not printed
    page = folder / PAGE
    content = {"folder": str(folder), "page": str(page) if page.is_file() else None}
    figures: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
    return content | figures


def _print_json(content: dict[str, Any]) -> None:
    echo(json.dumps(content, ensure_ascii=False, indent=2))


def show(
    result: ResultArgument,
    p50: Annotated[float | None, typer.Option(min=0, help="Limit: median milliseconds from query to results.")] = None,
    p95: Annotated[float | None, typer.Option(min=0, help="Limit: milliseconds of 95% of the queries.")] = None,
    cost: Annotated[float | None, typer.Option(min=0, help="Limit: dollars for a million documents.")] = None,
    query_cost: Annotated[float | None, typer.Option(min=0, help="Limit: dollars for a thousand queries.")] = None,
    index: Annotated[float | None, typer.Option(min=0, help="Limit: megabytes of the index.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Limit: no network.")] = False,
    equivalent_within: EquivalentWithin = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Print the verdict and the matrix of a result, and the choice within limits where some are given."""
    if as_json:
        _print_json(_stored(result))
        return
    from bakeoff.results.recommend import Limits, choose, timing_doubt

    summary = _print_result(result, wide=wide, equivalent_within=equivalent_within)
    limits = Limits(
        p50_ms=p50,
        p95_ms=p95,
        usd_per_million=cost,
        usd_per_thousand_queries=query_cost,
        index_mb=index,
        offline=offline,
    )
    if limits != Limits():
        choice = choose(summary.rows, summary.verdict, limits)
        timed = p50 is not None or p95 is not None
        doubts = [timing_doubt(row) for row in summary.rows if timed and row.label == choice.label]
        say(f"\nWithin these limits: {choice.sentence}{''.join(doubts)}")
    echo("")
    _name_page(result)


def _print_result(folder: Path, *, wide: bool, equivalent_within: float | None = None) -> Summary:
    """What `run` and `show` print alike: the verdict and the matrix of a stored result."""
    from bakeoff.report.console import console
    from bakeoff.report.terminal import terminal
    from bakeoff.results.schema import read_summary

    if equivalent_within:
        from bakeoff.results.standings import restated

        summary = restated(folder, equivalent_within)
    else:
        summary = read_summary(folder)
    console().print(terminal(summary, wide=wide))
    return summary
