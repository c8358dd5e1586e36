"""`bakeoff grade export` and `bakeoff grade import`: grading in a spreadsheet, and grades that people have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared_options import (
    ColumnOption,
    Force,
    LabelOption,
    LineupOption,
    Offline,
    TaskArgument,
    annotator_name,
    check_file,
    parse_columns,
    parse_labels,
    say,
    say_commands,
)
from bakeoff.extensions.testsets.commands.annotate import Who, write_truth
from bakeoff.extensions.testsets.commands.pairs_to_grade import AllBelow, Depth, Ungraded, pairs_to_grade


def export_(
    task: TaskArgument,
    out: Annotated[Path, typer.Option(help="The table to write, a CSV file.")] = Path("pairs.csv"),
    lineup: LineupOption = None,
    depth: Depth = 10,
    all_below: AllBelow = 1000,
    offline: Offline = False,
    ungraded: Ungraded = False,
    force: Force = False,
) -> None:
    """Write the pairs to grade into a table with an empty column for the grade; `grade import` takes it back."""
    from bakeoff.core.printable import counted
    from bakeoff.extensions.testsets.grade_export import check_table, write_pairs
    from bakeoff.tasks.task_folder import TaskFolder

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
    say(f"{counted(len(pairs), 'pair')} written: {out}\nfill in the column grade: {scale}")
    say_commands(f"next: bakeoff grade import {folder.name} {out} --who NAME")


def import_(
    task: TaskArgument,
    source: Annotated[Path, typer.Argument(help="CSV, TSV, JSON, JSONL, parquet or qrels; one grade in each row.")],
    who: Who = None,
    column: ColumnOption = None,
    label: LabelOption = None,
    add: Annotated[bool, typer.Option("--add", help="Add to the grades that this annotator has.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write over this annotator's grades; with --add, of the same pairs.")
    ] = False,
) -> None:
    """Take grades that somebody gave elsewhere, as those of one annotator; rows without a grade are left out."""
    from bakeoff.core.printable import counted
    from bakeoff.extensions.testsets.grade_import import import_grades
    from bakeoff.tasks.task_folder import TaskFolder

    folder = TaskFolder.open(task)
    annotator = annotator_name(who)
    taken = import_grades(folder, source, annotator, parse_columns(column), parse_labels(label), add=add, force=force)
    say(f"{counted(taken.new, 'grade')} {'added' if add else 'imported'}: {folder.file_of(annotator)}")
    if taken.empty:
        say(f"without a grade, left out: {counted(taken.empty, 'row')}")
    write_truth(folder, folder.name)
    rest = [f"bakeoff grade export {folder.name} --ungraded --out rest.csv"] if taken.empty else []
    say_commands("next: " + "\n      ".join([*rest, f"bakeoff validate {folder.name}"]))
