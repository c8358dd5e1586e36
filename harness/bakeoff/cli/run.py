"""`bakeoff run` and `bakeoff show`: a line-up and its result."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import (
    LATEST,
    MOST_ROUNDS,
    OWN_LINEUP,
    AddressOption,
    AsJson,
    Baseline,
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
    shard_folders,
    warn,
)
from bakeoff.cli.streams import echo
from bakeoff.core.extensions import collect_entries, load_place
from bakeoff.core.paths import is_draft

if TYPE_CHECKING:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.first_screen import Links
    from bakeoff.results.picks import Limits
    from bakeoff.running.draft import Drafts
    from bakeoff.running.runner import Outcome, Settings


def run(
    lineup: LineupArgument = None,
    contender: ContendersOption = None,
    store: Annotated[list[str] | None, typer.Option(help="Keep only contenders in this store.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, max=MOST_ROUNDS, help="Run every query this many times.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a task option, such as k=5; repeatable. `bakeoff options KIND` lists them."),
    ] = None,
    out: OutOption = Path("results"),
    offline: Offline = False,
    cache: Annotated[bool, typer.Option(help="Keep vectors on disk and reuse them.")] = True,
    vectors: VectorsOption = None,
    sample_documents: Annotated[
        int | None,
        typer.Option(min=1, help="Sample this many documents, including all graded ones."),
    ] = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    max_cost: MaxCost = None,
    time_hosted: Annotated[
        int, typer.Option(min=0, metavar="N", help="Make N paid calls to each hosted model to time it.")
    ] = 0,
    dry_run: DryRun = False,
    baseline: Baseline = "",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if any row did not run.")] = False,
    equivalent_within: EquivalentWithin = None,
    tune_weights: Annotated[
        bool,
        typer.Option("--tune-weights", help="Tune fusion weights by cross-validation."),
    ] = False,
    charts: Annotated[bool, typer.Option(help="Draw the page's charts (takes a few seconds).")] = True,
    as_json: AsJson = False,
) -> None:
    """Run a line-up: fill the matrix, write the result, print the verdict."""
    import sys
    from dataclasses import replace

    from bakeoff.core.progress import showing
    from bakeoff.report.console import Bars
    from bakeoff.report.words import failure_words, words
    from bakeoff.results.save import save
    from bakeoff.running.draft import Drafts
    from bakeoff.running.engines import engine_entry
    from bakeoff.running.runner import Settings, vectors_folder
    from bakeoff.running.runner import run as run_lineup
    from bakeoff.running.scoring import Ungraded
    from bakeoff.tasks.load import task_options

    check_folder(out)
    if offline and time_hosted:
        raise InputError("--time-hosted calls hosted models, --offline forbids it", remedy="leave one of them out")
    if lineup is None and not OWN_LINEUP.is_file():
        notice(f"no {OWN_LINEUP} here; running the built-in line-up (`bakeoff init TASK` writes one for your task)")
    path = lineup_path(lineup)
    chosen = read_lineup(path).with_baseline(baseline).narrow(contender or (), store or ())
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
    folders, whole = [], True
    drafts = Drafts(out.absolute(), shlex.join(["bakeoff", *sys.argv[1:]]), resume=cache)
    settings = replace(settings, drafts=drafts)
    for one in chosen.per_task():
        with _keeping(drafts):
            try:
                outcome = run_lineup(one, settings)
            except Ungraded as error:
                task = path.parent / one.task if isinstance(one.task, str) else path
                raise InputError(error.problem, remedy=f"grade it first: {grading_command(task, path)}") from None
            if not outcome.ran:
                _fail_without_rows(outcome)
            with showing(settings.progress):
                folders.append(save(outcome, out))
        failures = list(map(words, outcome.extras.failures))
        if strict:
            failures += [
                f"{lost.contender.label} did not run: {failure_words(lost.failure)}" for lost in outcome.not_run
            ]
        del outcome  # the report is made from the files, and may need the room
        whole &= _show_and_render(folders[-1], charts=charts, quiet=as_json)
        for failure in failures:
            say(f"error: {failure}", err=True)
        whole &= not failures
        if chosen.tasks and not as_json:
            echo("")  # the next task, or all of them side by side
    over_tasks = _combine_tasks(folders, out, quiet=as_json) if len(folders) > 1 else {}
    if as_json:
        facts = [_collect_facts(folder) for folder in folders]
        _print_json({"folder": None, "over_tasks": None} | over_tasks | {"tasks": facts} if chosen.tasks else facts[0])
    if not whole:
        raise typer.Exit(1)


@contextlib.contextmanager
def _keeping(drafts: Drafts) -> Iterator[None]:
    """Prints where a failed or interrupted run left its draft; deletes a draft without answers."""
    try:
        yield
    finally:
        for draft in drafts.opened:
            if is_draft(draft.folder):
                if draft.has_rows:
                    where = os.path.relpath(draft.folder)
                    remedy = f"  remedy: bakeoff report {shlex.quote(where)} (sends no request)"
                    say(f"the measurements are saved in {where}\n{remedy}, or the same command again", err=True)
                    draft.close()
                else:
                    draft.remove()
        drafts.opened.clear()


def _fail_without_rows(outcome: Outcome) -> NoReturn:
    """Fails with each row's reason, since there is no verdict."""
    from bakeoff.report.brief_notes import needs_sentence
    from bakeoff.report.words import failure_words

    for lost in outcome.not_run:
        say(f"{lost.contender.label}: {failure_words(lost.failure)}", err=True)
    say(f"error: nothing ran: {needs_sentence([lost.failure for lost in outcome.not_run])}", err=True)
    say("  remedy: set a key, or add a local row such as minilm; bakeoff doctor checks what is missing", err=True)
    raise typer.Exit(1)


def _show_and_render(folder: Path, *, charts: bool, quiet: bool) -> bool:
    """Prints and renders the result; False if a renderer failed. The figures are already saved."""
    from bakeoff.report import render
    from bakeoff.report.charts import MISSING

    problems: list[str] = []

    def make() -> None:
        problems.extend(render(folder, pictures=charts, charts=charts))

    steps: list[Callable[[], None]] = [make] if quiet else [partial(_print_result, folder, made_now=True), make]
    for step in steps:
        try:
            step()
        except Exception as error:
            logging.getLogger("bakeoff.report").warning("no report", exc_info=error)
            problems.append(f"{type(error).__name__}: {error}")
    for problem in problems:
        say(problem, err=True)
    if set(problems) - {MISSING}:
        say(f"error: the figures are saved, but the report is incomplete\n  remedy: bakeoff report {folder}", err=True)
        return False
    return True


def _print_plan(lineup: Lineup, settings: Settings) -> None:
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.words import failure_words, words
    from bakeoff.running.plan import plan

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
            failure_words(planned.failure) if planned.failure else words(planned.note) if planned.note else "",
        )
    console().print(table)
    listed = {label for _, planned in plans for label in planned.rows}
    if absent := [contender.label for contender in lineup.contenders if contender.label not in listed]:
        say(f"not listed, because they embed nothing: {', '.join(absent)}")
    warned = [(planned.rows, warning) for _, planned in plans for warning in planned.warnings]
    for warning in dict.fromkeys(f"warning: {', '.join(rows)}: {words(fact)}" for rows, fact in warned):
        say(warning)
    where = f" for {len(names)} tasks" if names else ""
    total = sum(planned.usd or 0 for _, planned in plans if not planned.failure)
    lacking = sum(planned.usd or 0 for _, planned in plans if planned.failure)
    more = f", and ${lacking:.6f} more if the rows with missing requirements ran" if lacking else ""
    unpriced = [label for _, planned in plans if planned.usd is None and not planned.failure for label in planned.rows]
    unknown = f", besides what {', '.join(unpriced)} would cost: no price is known" if unpriced else ""
    say(f"in total{where} about ${total:.6f}{unknown}{more}; no request was sent")
    if unpriced and settings.max_cost is not None:
        say("with --max-cost these rows would not run: give price = … in their options")


def _minutes(estimate: float | None) -> str:
    """Estimated minutes, marked as an estimate."""
    if estimate is None:
        return "–"
    return "0" if estimate == 0 else "<0.1" if estimate < 0.1 else f"~{estimate:.1f}"


def _links(folder: Path, *, made_now: bool) -> Links:
    """The next commands for a result, which they call `latest` if it is the newest."""
    from bakeoff.report.first_screen import Links

    is_latest = made_now and folder.resolve().parent == Path("results").resolve()
    name = LATEST if is_latest else shlex.quote(str(folder))
    return Links(f"bakeoff report {name} --open", f"bakeoff show {name} --full", f"{folder}/")


def _combine_tasks(folders: list[Path], out: Path, *, quiet: bool) -> dict[str, Any]:
    """Runs the extensions' analyses over all tasks of a run."""
    places = collect_entries("SEVERAL_TASKS").values()
    return {name: found for place in places for name, found in load_place(place)(folders, out, quiet=quiet).items()}


def _collect_facts(folder: Path, *, equivalent_within: float | None = None, baseline: str = "") -> dict[str, Any]:
    """The facts for scripts, with their folder and format number. `text` may change."""
    import msgspec

    from bakeoff.report import PAGE
    from bakeoff.report.verdict_words import advice, verdict_sentences
    from bakeoff.results.current import current_summary

    summary = current_summary(folder, equivalent_within=equivalent_within, baseline=baseline)
    page = folder / PAGE
    content = {"folder": str(folder), "page": str(page) if page.is_file() else None}
    text = [*verdict_sentences(summary), *advice(summary)]
    return {**content, **msgspec.to_builtins(summary), "text": text}


def _print_json(content: dict[str, Any]) -> None:
    echo(json.dumps(content, ensure_ascii=False, indent=2))


def show(
    result: ResultArgument,
    p50: Annotated[float | None, typer.Option(min=0, help="Limit the median latency per query, in ms.")] = None,
    p95: Annotated[float | None, typer.Option(min=0, help="Limit the p95 latency per query, in ms.")] = None,
    cost: Annotated[float | None, typer.Option(min=0, help="Limit the price of a million documents, in $.")] = None,
    query_cost: Annotated[
        float | None, typer.Option(min=0, help="Limit the price of a thousand queries, in $.")
    ] = None,
    index: Annotated[float | None, typer.Option(min=0, help="Limit the index size, in MB.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Keep only rows that run offline.")] = False,
    baseline: Baseline = "",
    equivalent_within: EquivalentWithin = None,
    full: Annotated[bool, typer.Option("--full", help="Print all figures.")] = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Print a result's verdict on one screen; with limits, also the best row within them."""
    if as_json:
        _print_json(_collect_facts(result, equivalent_within=equivalent_within, baseline=baseline))
        return
    from bakeoff.results.picks import Limits

    limits = Limits(
        p50_ms=p50,
        p95_ms=p95,
        usd_per_million=cost,
        usd_per_thousand_queries=query_cost,
        index_mb=index,
        offline=offline,
    )
    _print_result(
        result, full=full or wide, wide=wide, limits=limits, equivalent_within=equivalent_within, baseline=baseline
    )


def _print_result(
    folder: Path,
    *,
    made_now: bool = False,
    full: bool = False,
    wide: bool = False,
    limits: Limits | None = None,
    equivalent_within: float | None = None,
    baseline: str = "",
) -> None:
    """Prints a stored result's first screen, or all of it, for `run` and `show`."""
    from bakeoff.report.console import console
    from bakeoff.report.first_screen import FirstScreen
    from bakeoff.report.terminal import terminal
    from bakeoff.report.verdict_words import choice_sentence
    from bakeoff.results.current import current_summary
    from bakeoff.results.picks import Limits, choose

    summary = current_summary(folder, equivalent_within=equivalent_within, baseline=baseline)
    choice = ""
    if limits not in (None, Limits()):
        choice = f"Within these limits: {choice_sentence(summary, choose(summary.rows, summary.verdict, limits))}"
    if not full:
        console().print(FirstScreen(summary, _links(folder, made_now=made_now), choice))
        return
    console().print(terminal(summary, wide=wide))
    if choice:
        say(f"\n{choice}")
