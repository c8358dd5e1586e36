"""Grades that people have in a table → an annotator's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.files import write_json
from bakeoff.tasks.formats.rows import JudgmentColumns, Leniency, read_judgments
from bakeoff.tasks.formats.tables import read_table
from bakeoff.testsets.annotations import Annotation
from bakeoff.testsets.table_columns import COLUMNS, check_labels, found_columns
from bakeoff.testsets.task_folder import TaskFolder


def import_grades(
    folder: TaskFolder, table: Path, who: str, columns: Mapping[str, str], labels: Mapping[str, int], *, force: bool
) -> int:
    """Writes the table's grades as those of `who`, and says how many; each must be of a pair of the task."""
    folder.check_own()
    path = folder.file_of(who)
    if path.exists() and not force:
        raise InputError("exists already", file=path, remedy="--force writes over it, --who names another annotator")
    for field in columns:
        if field not in COLUMNS["judgments"]:
            known = list(COLUMNS["judgments"])
            raise InputError(f"unknown field {field!r}", place="--column", remedy=nearest(field, known))
    named = found_columns("judgments", table, columns)
    check_labels(table, named["grade"], labels)
    documents = {pair[1] for pair in folder.all_pairs()}
    grades = read_judgments(
        read_table(table), JudgmentColumns(**named), labels or None, documents, set(), set(folder.query_ids), Leniency()
    )
    for query, row in grades.items():
        for document, grade in row.items():
            folder.check(query, document, grade, table)
    metadata = {"annotator": path.stem, "kind": "person", "source": table.name}
    write_json(path, Annotation(metadata=metadata, grades=folder.in_order(grades)))
    return sum(map(len, grades.values()))
