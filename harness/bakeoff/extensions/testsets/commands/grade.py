"""`bakeoff grade`: grade by people or models, and find the pairs worth grading next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bakeoff_providers.errors import InputError
from typer.core import TyperGroup

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import (
    ColumnOption,
    DryRun,
    Force,
    LabelOption,
    LineupOption,
    MaxCost,
    Offline,
    check_file,
    lineup_path,
    parse_columns,
    parse_labels,
    read_pipe,
    say,
    say_commands,
)
from bakeoff.extensions.testsets.commands.annotate import OpenPage, Port, Who, serve_page, write_truth
from bakeoff.extensions.testsets.commands.pairs_to_grade import (
    AllBelow,
    ChatOption,
    Depth,
    ModelOption,
    ResultOption,
    TaskArgument,
    Ungraded,
    annotator_name,
    chat_askers,
    echo_estimate,
    echo_usage,
    grade_until_decided,
    look_queries,
    pairs_to_grade,
    rankings_for,
)

if TYPE_CHECKING:
    from bakeoff.extensions.testsets.annotations import QueryDocument
    from bakeoff.extensions.testsets.label_next import Candidate
    from bakeoff.extensions.testsets.ppi import CorrectedMean
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.report.grid import Grid


def export_(
    task: TaskArgument,
    out: Annotated[Path, typer.Option(help="The CSV file to write.")] = Path("pairs.csv"),
    lineup: LineupOption = None,
    depth: Depth = 10,
    all_below: AllBelow = 1000,
    offline: Offline = False,
    ungraded: Ungraded = False,
    force: Force = False,
) -> None:
    """Write the pairs to grade to a CSV file.

    Fill in the grade column; `grade import` reads it back.
    """
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.grade_tables import check_table, write_pairs
    from bakeoff.extensions.testsets.task_folder import TaskFolder

    check_table(out)
    check_file(out, force=force)
    folder = TaskFolder.open(task)
    folder.check_own()
    pairs, keep_pool = pairs_to_grade(folder, lineup, depth, all_below, offline, ungraded=ungraded)
    if ungraded and not pairs:
        return
    keep_pool()
    write_pairs(folder, pairs, out)
    scale = ", ".join(f"{grade} {words}" for grade, words in sorted(folder.scale.items(), reverse=True))
    say(f"{pluralise(len(pairs), 'pair')} written: {out}\nfill in the column grade: {scale}")
    say_commands(f"next: bakeoff grade import {folder.name} {out} --who NAME")


def import_(
    task: TaskArgument,
    source: Annotated[
        Path, typer.Argument(callback=read_pipe, help="A table or qrels with a grade per row, or - (a pipe).")
    ],
    who: Who = None,
    column: ColumnOption = None,
    label: LabelOption = None,
    add: Annotated[bool, typer.Option("--add", help="Add to this annotator's grades.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite grades; with --add, only of the same pairs.")
    ] = False,
) -> None:
    """Import one annotator's grades from a table.

    Rows without a grade are left out.
    """
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.grade_tables import import_grades
    from bakeoff.extensions.testsets.task_folder import TaskFolder

    folder = TaskFolder.open(task)
    annotator = annotator_name(who)
    taken = import_grades(folder, source, annotator, parse_columns(column), parse_labels(label), add=add, force=force)
    say(f"{pluralise(taken.new, 'grade')} {'added' if add else 'imported'}: {folder.file_of(annotator)}")
    if taken.empty:
        say(f"without a grade, left out: {pluralise(taken.empty, 'row')}")
    write_truth(folder, folder.name)
    rest = [f"bakeoff grade export {folder.name} --ungraded --out rest.csv"] if taken.empty else []
    say_commands("next: " + "\n      ".join([*rest, f"bakeoff validate {folder.name}"]))


class GradeOrNext(TyperGroup):
    """Makes `pairs` the default subcommand, so that `bakeoff grade TASK` works."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command if none is named."""
        if args and args[0] not in self.commands:
            args = ["pairs", *args]
        return super().parse_args(ctx, args)


grade = Family(cls=GradeOrNext, help="Grade a task's pairs by people or by a model.", no_args_is_help=True)


@grade.command("pairs")
def pairs_(
    task: TaskArgument,
    judge: Annotated[str, typer.Option(help="people (on a local page) or llm.")] = "people",
    model: ModelOption = None,
    set_: ChatOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="llm: answers per model; the majority counts.")] = 1,
    lineup: LineupOption = None,
    depth: Depth = 10,
    all_below: AllBelow = 1000,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    offline: Offline = False,
    who: Who = None,
    port: Port = 0,
    open_page: OpenPage = True,
    ungraded: Ungraded = False,
    sample: Annotated[
        int | None, typer.Option(min=1, help="With people: sample queries for `grade corrected`.")
    ] = None,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="Grade look by look, until the plan of looks decides.")
    ] = False,
) -> None:
    """Pool the contenders' top documents, then grade them.

    The word `pairs` is optional: `bakeoff grade TASK`. There are four more commands (see their --help).
    `bakeoff grade export TASK` writes the same pairs to a table. `bakeoff grade import TASK FILE` imports that table or
    existing grades. `bakeoff grade next TASK` lists the ungraded pairs that would most change the order of the
    contenders. `bakeoff grade corrected TASK` scores by a model's grades, corrected by people's on a sample.
    """
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.task_folder import TaskFolder

    folder = TaskFolder.open(task)
    if judge not in ("llm", "people"):
        raise InputError(f"unknown judge {judge!r}", place="--judge", remedy="llm or people")
    if judge == "people" and (model or repeats > 1):
        raise InputError("--model and --repeats are for --judge llm", remedy="add --judge llm")
    if until_decided:
        if sample is not None or dry_run:
            raise InputError("--until-decided has its own order of queries", remedy="omit --sample and --dry-run")
        if lineup is None:
            lineup = lineup_path(None)

        def grade_pairs(there: TaskFolder, wanted: list[QueryDocument], keep: Callable[[], object]) -> None:
            if judge == "people":
                serve_page(there, who, wanted, port, open_page, keep)
            else:
                _judge(there, wanted, keep, model or ["ollama"], set_, repeats, max_cost, False, offline)

        grade_until_decided(task, lineup, depth, all_below, offline, grade_pairs)
        return
    pairs, keep_pool = pairs_to_grade(folder, lineup, depth, all_below, offline or dry_run, ungraded=ungraded)
    if ungraded and not pairs:
        return
    if sample is not None:
        from bakeoff.extensions.testsets.corrected import sample_pairs

        pairs = sample_pairs(pairs, sample)
    if judge == "people":
        if dry_run:
            say(f"dry run: {pluralise(len(pairs), 'pair')} to grade")
        else:
            serve_page(folder, who, pairs, port, open_page, keep_pool, whole=sample is None and not ungraded)
        return
    _judge(folder, pairs, keep_pool, model or ["ollama"], set_, repeats, max_cost, dry_run, offline)


grade.command("export")(export_)
grade.command("import")(import_)


@grade.command("corrected")
def correct_(
    task: TaskArgument,
    measure: Annotated[
        str | None, typer.Option("-m", "--measure", help="Such as ndcg@10; default: the line-up's.")
    ] = None,
    result: ResultOption = None,
    lineup: LineupOption = None,
    offline: Offline = False,
) -> None:
    """Score by a model's grades, corrected by a human sample."""
    from bakeoff.evaluation.measures import Measure
    from bakeoff.extensions.testsets.corrected import correct, grades_by
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import console

    folder = TaskFolder.open(task)
    by = Measure.parse(measure) if measure else Lineup.read(lineup_path(lineup)).primary
    rel = folder.task.rel
    people, model = grades_by(folder, "person"), grades_by(folder, "model")
    if not model:
        raise InputError(
            "no model graded this task", file=folder.annotations, remedy=f"bakeoff grade {task} --judge llm"
        )
    correction = correct(rankings_for(folder, result, lineup, offline), people, model, by, rel)
    say(
        f"{by.label}: people graded {correction.by_people} of the {correction.queries} queries that the model graded. "
        "The model's scores alone may be biased."
    )
    if any(query.drawn for query in folder.task.queries):
        say("Drawn queries count equally here; these are not means per query asked.")
    for rows in (correction.rows, correction.pairs):
        console().print(
            tabulate_means(
                [(row.what, row.people, row.corrected, row.model_alone) for row in rows], rows is correction.pairs
            )
        )


@grade.command("next")
def next_(
    task: TaskArgument,
    n: Annotated[int, typer.Option("--n", min=1, help="Number of pairs to list.")] = 10,
    measure: Annotated[str | None, typer.Option(help="Measure of the order; default: the line-up's.")] = None,
    result: ResultOption = None,
    lineup: LineupOption = None,
    offline: Offline = False,
    page: Annotated[bool, typer.Option("--page", help="Then open a page to grade just these.")] = False,
    who: Who = None,
    port: Port = 0,
    open_page: OpenPage = True,
) -> None:
    """List the ungraded pairs that matter most to the ranking."""
    from bakeoff.evaluation.measures import Measure
    from bakeoff.extensions.testsets.label_next import next_pairs
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars, console
    from bakeoff.report.grid import Grid

    folder = TaskFolder.open(task)
    by = Measure.parse(measure) if measure else Lineup.read(lineup_path(lineup)).primary
    rankings = rankings_for(folder, result, lineup, offline)
    in_look = look_queries(folder)
    candidates = next_pairs(folder.task, rankings, by, n, scale=folder.scale, queries=in_look, progress=Bars())
    if not candidates:
        say("Every pair ranked high enough to matter is graded.")
        return
    table = Grid(["query", "document", "title", "ranked", f"effect of a grade on the order by {by}"])
    table.keys = 2
    for candidate in candidates:
        best = sorted(candidate.ranks.items(), key=lambda item: item[1])
        ranked = ", ".join(f"{label} {rank}" for label, rank in best[:3]) + (", …" if len(best) > 3 else "")
        table.add_row(*candidate.pair, folder.document(candidate.pair[1]).title, ranked, _effect(candidate))
    console().print(table)
    if page:
        serve_page(folder, who, [candidate.pair for candidate in candidates], port, open_page)
    else:
        say("To grade just these: add --page to this command, or import a table with `bakeoff grade import`.")


def _judge(
    folder: TaskFolder, pairs: list[QueryDocument], keep_pool: Callable[[], object], models: list[str],
    options: list[str] | None, repeats: int, max_cost: float | None, dry_run: bool, offline: bool,
) -> None:  # fmt: skip
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.grade import JudgeGrades, check_answerable, estimates_of, grade_all, panel
    from bakeoff.report.console import Bars

    askers = chat_askers(models, options, max_cost, offline)
    try:
        judges = panel(folder, askers, repeats, Bars())
        estimates = estimates_of(judges, pairs)
        if dry_run:
            for judge, estimate in zip(judges, estimates, strict=True):
                say(judge.who)
                echo_estimate(estimate)
            return
        folder.check_own()
        check_answerable(judges, estimates, offline=offline)
        keep_pool()

        def report(judged: JudgeGrades) -> None:
            say(f"{judged.who}: {pluralise(sum(map(len, judged.annotation.grades.values())), 'pair')} graded")
            for pair, why in list(judged.failed.items())[:5]:
                say(f"  no grade for {pair[0]}, {pair[1]}: {why}", err=True)

        try:
            grade_all(judges, pairs, report)
        finally:
            for asker in askers:
                echo_usage(asker.usage)
            if {judge.who for judge in judges} & folder.annotators().keys():  # a judge without grades changes nothing
                write_truth(folder, folder.name)
    finally:
        for asker in askers:
            asker.close()


def _effect(candidate: Candidate) -> str:
    together = f"; with others, could make {candidate.could_lead} the best" if candidate.could_lead else ""
    return _alone(candidate) + together


def _alone(candidate: Candidate) -> str:
    if candidate.swaps:
        first, second = candidate.swaps[0]
        more = f" and {len(candidate.swaps) - 1} more such" if len(candidate.swaps) > 1 else ""
        return f"a {candidate.grade} puts {first} before {second}{more}"
    if candidate.gap is None:
        return "nothing"
    behind, ahead = candidate.gap
    if candidate.closes == float("inf"):
        return f"a {candidate.grade} parts {behind} and {ahead}"
    return f"a {candidate.grade} closes {candidate.closes:.0%} of the gap of {behind} to {ahead}"


def tabulate_means(rows: Sequence[tuple[str, CorrectedMean, CorrectedMean, CorrectedMean]], differences: bool) -> Grid:
    """One row per contender or pair."""
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid

    what = "difference" if differences else "contender"
    table = Grid(
        [
            what,
            Figures("people only [95%]"),
            Figures("corrected [95%]"),
            Figures("model's weight"),
            Figures("model alone, not corrected"),
        ]
    )
    sign = "+" if differences else ""
    for name, people, corrected, model in rows:
        spans = [f"{e.value:{sign}.4f} [{e.low:{sign}.3f}, {e.high:{sign}.3f}]" for e in (people, corrected)]
        table.add_row(Text(name), *spans, f"{corrected.weight:.2f}", f"{model.value:{sign}.4f}")
    return table
