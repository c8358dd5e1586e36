"""Export pairs to grade as a spreadsheet, and import grades from a table as an annotator's file."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.files import write_atomic, write_json
from bakeoff.core.printable import printable
from bakeoff.core.task import document_ids
from bakeoff.extensions.testsets.annotations import Annotation, QueryDocument
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.tasks.formats.cells import Row, Rows
from bakeoff.tasks.formats.rows import JudgmentCollector, JudgmentColumns, judgment_rows, whole
from bakeoff.tasks.formats.table_columns import COLUMNS, columns_of, complete_labels, find_columns, label_in
from bakeoff.tasks.formats.tables import read_table

HEADS = ("grade", "query_text", "title", "text", "query", "document")
LONGEST = 500  # characters of a text in a cell
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # prefixes of a formula
_TEXT = "'"  # prefix that makes a cell text


def check_table(path: Path) -> None:
    """Refuse a name that an import would not read as CSV."""
    if path.suffix.lower() != ".csv":
        raise InputError("the table of pairs is CSV", file=path, place="--out", remedy="choose a name ending in .csv")


def write_pairs(folder: TaskFolder, pairs: Sequence[QueryDocument], path: Path) -> None:
    """Write one row per pair with an empty grade, without contenders or others' grades."""
    table = io.StringIO(newline="")
    writer = csv.writer(table, quoting=csv.QUOTE_ALL)
    writer.writerow(HEADS)
    for query, name in pairs:
        document = folder.document(name)
        texts = folder.query(query).text, document.title, document.text
        writer.writerow(["", *(as_cell(_start(text)) for text in texts), as_cell(query), as_cell(name)])
    write_atomic(path, table.getvalue().encode("utf-8-sig"))  # Excel needs the BOM to detect UTF-8


def as_cell(text: str) -> str:
    """Escape formulas with a leading apostrophe; a leading apostrophe is doubled, so none is lost."""
    return f"{_TEXT}{text}" if text.startswith((*_FORMULA, _TEXT)) else text


def ids_by_cell(ids: Collection[str], head: Collection[str]) -> dict[str, str]:
    """Map escaped cells back to ids; in tables from elsewhere, an exact id takes precedence."""
    exported = set(HEADS) <= set(head)
    cells = {as_cell(name): name for name in ids if as_cell(name) != name}
    return {cell: name for cell, name in cells.items() if exported or cell not in ids}


def _start(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


MOST = 10  # invalid rows to list


class ImportedGrades(NamedTuple):
    """Number of new grades, and of rows without one."""

    new: int
    empty: int


def import_grades(
    folder: TaskFolder, table: Path, who: str, columns: Mapping[str, str], labels: Mapping[str, int],
    *, add: bool = False, force: bool = False,
) -> ImportedGrades:  # fmt: skip
    """Write the table's grades as those of `who`. Each must belong to a pair of the task; empty rows are counted.

    `add` keeps existing grades; with `force`, the table's replace those of the same pairs.
    """
    folder.check_own()
    path = folder.file_of(who)
    if path.exists() and not (add or force):
        remedy = "--add adds to it, --force overwrites it, --who names another annotator"
        raise InputError("exists already", file=path, remedy=remedy)
    for field in columns:
        if field not in COLUMNS["judgments"]:
            known = list(COLUMNS["judgments"])
            raise InputError(f"unknown field {field!r}", place="--column", remedy=nearest(field, known))
    before = folder.read(path) if path.exists() else Annotation()
    if add and before.kind == "model":
        raise InputError("holds a model's grades", file=path, remedy="choose another --who")
    reader = _Reader(folder, table, columns, labels, path.stem, before if add and not force else Annotation())
    grades, empty = reader.grades(), reader.empty
    metadata = {"annotator": path.stem, "kind": "person", "source": table.name}
    if add:
        queries = {**before.grades, **grades}
        rows = {query: {**before.grades.get(query, {}), **grades.get(query, {})} for query in queries}
        both = Annotation(metadata=metadata, grades=folder.in_order(rows), notes=before.notes)
        write_json(path, both)
        return ImportedGrades(len(both.pairs().items() - before.pairs().items()), empty)
    write_json(path, Annotation(metadata=metadata, grades=folder.in_order(grades)))
    folder.forget(before.pairs())
    return ImportedGrades(sum(map(len, grades.values())), empty)


class _Reader:
    """Reads a table of grades row by row, so that all invalid rows are reported at once."""

    def __init__(
        self, folder: TaskFolder, table: Path, columns: Mapping[str, str], labels: Mapping[str, int],
        who: str, kept: Annotation,
    ) -> None:  # fmt: skip
        self._folder, self._table, self._who, self._kept = folder, table, who, kept
        named = find_columns("judgments", table, columns)
        self._columns, self._grade = JudgmentColumns(**named), named["grade"]
        mistyped = not labels and _mostly_numbers(table, self._grade)  # no scale of labels
        self._worth = None if mistyped else complete_labels(table, self._grade, labels, empty=True) or None
        head = columns_of(table)
        self._queries = ids_by_cell(set(folder.query_ids), head)
        self._documents = ids_by_cell(set(document_ids(folder.task.documents)), head)
        self._collector = JudgmentCollector(table)
        self.empty = 0

    def grades(self) -> dict[str, dict[str, int]]:
        """All grades, or an error that lists every invalid row."""
        wrong: list[InputError] = []
        for place, row in read_table(self._table).rows:
            if not label_in(row, self._grade):
                self.empty += 1
                continue
            try:
                self._take(place, row)
            except InputError as error:
                wrong.append(error)
        if wrong:
            raise _together(wrong)
        if not self._collector.grades:
            raise InputError(f"no row has a {self._grade}", file=self._table, remedy="fill in at least one")
        return self._collector.grades

    def _take(self, place: str, row: Row) -> None:
        label = label_in(row, self._grade)
        if self._worth is None and whole(label) is None:
            raise InputError(
                f"the grade {label!r} is not a number", file=self._table, place=place, remedy="correct the cell"
            )
        table = Rows.of(self._table, [(place, row)])
        for _, query, document, grade in judgment_rows(table, self._columns, self._worth):
            query, document = self._queries.get(query, query), self._documents.get(document, document)
            self._folder.check(query, document, grade, self._table, place)
            given = self._kept.grades.get(query, {}).get(document, grade)
            if given != grade:
                raise InputError(
                    f"{self._who} gave query {query!r}, document {document!r} a {given}, and here a {grade}",
                    file=self._table, place=place, remedy="remove the line, or take the new grade with --force",
                )  # fmt: skip
            self._collector.add(place, query, document, grade)


def _mostly_numbers(table: Path, column: str) -> bool:
    """Whether more than half of the grades are numbers; other values are then typos."""
    given = [label for _, row in read_table(table).rows if (label := label_in(row, column))]
    return 2 * sum(whole(label) is not None for label in given) > len(given)


def _together(wrong: Sequence[InputError]) -> InputError:
    """Join errors into one, with a line for each."""
    first, *others = wrong
    lines = [first.problem, *(f"  {error.place}: {error.problem}" for error in others[: MOST - 1])]
    if len(wrong) > MOST:
        lines.append(f"  and {len(wrong) - MOST} more")
    remedies = dict.fromkeys(error.remedy for error in wrong if error.remedy)
    return InputError("\n".join(lines), file=first.file, place=first.place, remedy="; ".join(remedies))
