"""Grades that people have in a table → an annotator's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.files import write_json
from bakeoff.tasks.formats.rows import JudgmentCollector, JudgmentColumns, judgment_rows
from bakeoff.tasks.formats.tables import read_table
from bakeoff.testsets.annotations import Annotation
from bakeoff.testsets.table_columns import COLUMNS, completed_labels, found_columns
from bakeoff.testsets.task_folder import TaskFolder


def import_grades(
    folder: TaskFolder, table: Path, who: str, columns: Mapping[str, str], labels: Mapping[str, int],
    *, add: bool = False, force: bool = False,
) -> int:  # fmt: skip
    """Writes the table's grades as those of `who`, and says how many are new; each must be of a pair of the task.

    `add` keeps those that are there, and `force` lets the table's count where both have one.
    """
    folder.check_own()
    path = folder.file_of(who)
    if path.exists() and not (add or force):
        remedy = "--add adds to it, --force writes over it, --who names another annotator"
        raise InputError("exists already", file=path, remedy=remedy)
    for field in columns:
        if field not in COLUMNS["judgments"]:
            known = list(COLUMNS["judgments"])
            raise InputError(f"unknown field {field!r}", place="--column", remedy=nearest(field, known))
    named = found_columns("judgments", table, columns)
    worth = completed_labels(table, named["grade"], labels)
    before = folder.read(path) if path.exists() else Annotation()
    if add and before.kind == "model":
        raise InputError("holds a model's grades", file=path, remedy="choose another --who")
    collector = JudgmentCollector(table)
    for place, query, document, grade in judgment_rows(read_table(table), JudgmentColumns(**named), worth or None):
        folder.check(query, document, grade, table, place)
        collector.add(place, query, document, grade)
        given = before.grades.get(query, {}).get(document, grade)
        if add and not force and given != grade:
            raise InputError(
                f"{path.stem} gave query {query!r}, document {document!r} a {given} before, here it is a {grade}",
                file=table, place=place, remedy="leave the line out, or --force: the new grade then counts",
            )  # fmt: skip
    grades = collector.grades
    metadata = {"annotator": path.stem, "kind": "person", "source": table.name}
    if add:
        queries = {**before.grades, **grades}
        rows = {query: {**before.grades.get(query, {}), **grades.get(query, {})} for query in queries}
        both = Annotation(metadata=metadata, grades=folder.in_order(rows), notes=before.notes)
        write_json(path, both)
        return len(both.pairs().items() - before.pairs().items())
    write_json(path, Annotation(metadata=metadata, grades=folder.in_order(grades)))
    folder.forget(before.pairs())
    return sum(map(len, grades.values()))
