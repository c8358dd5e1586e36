"""A task being graded: its documents and queries, every annotator's grades, and the ground truth."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bakeoff_providers.errors import InputError

from bakeoff.core.data_files import read_data
from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import check_writable, file_exists, read_json, read_text, read_toml, write_json
from bakeoff.core.paths import default_lineup, root, task_description, task_names
from bakeoff.core.task import Document, Query, Task, document_ids
from bakeoff.extensions.testsets.annotations import (
    ADJUDICATION,
    AdjudicatedPair,
    Annotation,
    QueryDocument,
    SettledGrades,
    settle,
)
from bakeoff.tasks.formats.native import FORMAT, drop_repeated_grades
from bakeoff.tasks.ground_truth import GRADES, HIGHEST, GroundTruth, one_of
from bakeoff.tasks.kinds import load_kind
from bakeoff.tasks.kinds.graded import Graded
from bakeoff.tasks.looks import POOL, Pool

T = TypeVar("T")
YES_OR_NO = {1: "relevant", 0: "not relevant"}


@dataclass(slots=True)
class TaskFolder:
    """A task of any readable format, with the grades of people and models.

    Annotations and settled grades are written next to the task's description. Documents, queries and judgments
    from elsewhere are never changed.
    """

    path: Path
    kind: Graded
    task: Task
    truth: GroundTruth
    _query_places: dict[str, int] = field(init=False)
    _document_places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._query_places = {query.id: place for place, query in enumerate(self.task.queries)}
        self._document_places = {name: place for place, name in enumerate(document_ids(self.task.documents))}

    @classmethod
    def open(cls, source: str) -> TaskFolder:
        """Opens a task by name, by its task.toml or folder, or by the line-up that describes it."""
        path, inline = _description(task_description(source, Path()))
        kind = load_kind(str(path) if inline is None else inline, path.parent if inline else Path())
        if not isinstance(kind, Graded):
            raise InputError(
                f"is a task of kind {kind.name!r}, which has no pairs to grade", file=path, place="kind",
                remedy="use a task of kind 'graded'",
            )  # fmt: skip
        return cls.of(path, kind, kind.task())

    @classmethod
    def of(cls, path: Path, kind: Graded, task: Task) -> TaskFolder:
        """A folder for a task that is already loaded."""
        truth = GroundTruth(grades={})
        if file_exists(kind.ground_truth):
            truth, _ = read_data(kind.ground_truth, GroundTruth)
        if kind.format == FORMAT and not truth.grades:
            truth.grades = {query: dict(grades) for query, grades in task.judgments.items()}  # of its query file
        return cls(path, kind, task, truth)

    def standing(self) -> Fact | None:
        """A fact if only one annotator's grades are used, or if some are not settled yet."""
        annotators = self.annotators()
        given = {pair for annotation in annotators.values() for pair in annotation.pairs()}
        if waiting := [pair for pair in given if pair[1] not in self.truth.grades.get(pair[0], {})]:
            return fact("testsets.unsettled_grades", grades=len(waiting), annotators=list(annotators), task=self.name)
        return fact("testsets.one_annotator", annotator=next(iter(annotators))) if len(annotators) == 1 else None

    @property
    def name(self) -> str:
        """The task's name as an argument of the next command."""
        return str(self.path.parent if self.path.name == "task.toml" else self.path)

    @property
    def truth_path(self) -> Path:
        """Where settled grades are written."""
        return self.kind.ground_truth

    def query(self, name: str) -> Query:
        """A query by its id."""
        return self.task.queries[self._query_places[name]]

    def document(self, name: str) -> Document:
        """A document by its id."""
        return self.task.documents[self._document_places[name]]

    @property
    def query_ids(self) -> list[str]:
        """All queries in the task's order."""
        return list(self._query_places)

    def check_own(self) -> None:
        """Refuses to change a built-in task, so that results stay comparable, or a folder that can't be written to."""
        check_not_built_in(self.path)
        check_writable(self.path.parent, "make room, or copy the task to another disk")

    def check_queries(self, queries: Collection[str]) -> None:
        """Refuses to remove queries that have grades."""
        graded = {query for query, row in self.truth.grades.items() if row}
        graded |= {query for annotation in self.annotators().values() for query in annotation.grades}
        if lost := sorted(graded - set(queries)):
            more = f", and {len(lost) - 1} more" if lost[1:] else ""
            raise InputError(
                f"query {lost[0]!r} has grades and would be removed{more}", file=self.path,
                remedy="use --add to keep the existing queries, or choose another --out",
            )  # fmt: skip

    @property
    def annotations(self) -> Path:
        """The folder of the annotators' files."""
        return self.kind.base / "annotations"

    @property
    def scale(self) -> dict[int, str]:
        """The grades that annotators may give, with their names.

        From the ground truth, the labels of the task's table, or the range of its judgments.
        """
        if own := self.truth.scale(self.truth_path):
            return own
        labels = self.kind.options.get("grades") or {}
        if labels and all(0 <= grade <= HIGHEST for grade in labels.values()):
            return {grade: str(label) for label, grade in labels.items()}
        highest = max((grade for row in self.task.judgments.values() for grade in row.values()), default=max(GRADES))
        if highest <= 1:
            return dict(YES_OR_NO)
        return dict(GRADES) if highest <= max(GRADES) else {grade: f"grade {grade}" for grade in range(highest + 1)}

    @property
    def guidelines(self) -> str:
        """The task's own instructions for annotators, if it has any."""
        path = self.kind.base / "GUIDELINES.md"
        return read_text(path) if path.is_file() else ""

    @property
    def size(self) -> int:
        """The number of all pairs."""
        return len(self._query_places) * len(self._document_places)

    def all_pairs(self) -> list[QueryDocument]:
        """Every query with every document."""
        return [(query, document) for query in self._query_places for document in self._document_places]

    def place(self, pair: QueryDocument) -> tuple[int, int]:
        """The pair's position in the task, by which files are ordered."""
        return self._query_places[pair[0]], self._document_places[pair[1]]

    def has(self, query: str, document: str) -> bool:
        """Whether the task has this pair."""
        return query in self._query_places and document in self._document_places

    def file_of(self, who: str) -> Path:
        """An annotator's file. Refuses names that leave the folder or clash with ours."""
        name = re.sub(r"[^\w.+@-]+", "-", who.strip()).strip(".-")
        if not name or f"{name}.json" in (ADJUDICATION, POOL):
            raise InputError(f"{who!r} can't be an annotator's name", place="--who", remedy="use letters and digits")
        return self.annotations / f"{name}.json"

    def read(self, path: Path) -> Annotation:
        """One annotator's grades, checked against the task and the scale."""
        annotation = read_json(path, Annotation)
        for (query, document), grade in annotation.pairs().items():
            self.check(query, document, grade, path)
        return annotation

    def check(self, query: str, document: str, grade: int, file: Path | None = None, place: str = "") -> None:
        """Refuses grades outside the scale and unknown pairs."""
        place = place or f"$.grades.{query}.{document}"
        if not self.has(query, document):
            unknown = f"query {query!r}" if query not in self._query_places else f"document {document!r}"
            remedy = "add it to the task, or leave this grade out"
            raise InputError(f"the task has no {unknown}", file=file, place=place, remedy=remedy)
        if grade not in self.scale or isinstance(grade, bool):
            raise InputError(f"grade {grade} is out of range", file=file, place=place, remedy=one_of(self.scale))

    def annotators(self) -> dict[str, Annotation]:
        """All annotators' grades by name."""
        files = sorted(self.annotations.glob("*.json")) if self.annotations.is_dir() else []
        return {path.stem: self.read(path) for path in files if path.name not in (ADJUDICATION, POOL)}

    def read_adjudications(self) -> list[AdjudicatedPair]:
        """The adjudicated pairs so far."""
        path = self.annotations / ADJUDICATION
        entries = read_json(path, list[AdjudicatedPair]) if path.exists() else []
        for entry in entries:
            self.check(entry.query_id, str(entry.document_id), entry.grade, path)
        return entries

    def write_adjudicated(self, entries: Iterable[AdjudicatedPair]) -> None:
        """Writes all entries in a fixed order."""
        self.check_own()
        ordered = sorted(entries, key=lambda entry: self.place((entry.query_id, str(entry.document_id))))
        write_json(self.annotations / ADJUDICATION, ordered)

    def pool(self) -> list[QueryDocument]:
        """The pairs to grade: the pool, or all pairs if nothing was pooled."""
        path = self.annotations / POOL
        if not path.exists():
            return self.all_pairs()
        pool = read_json(path, Pool)
        for query, documents in pool.pairs.items():
            for document in documents:
                if not self.has(query, document):
                    raise InputError(
                        f"the task has no pair {query}, {document}", file=path,
                        remedy="queries or documents changed: remove this file and run `bakeoff grade` again",
                    )  # fmt: skip
        return [(query, document) for query, documents in pool.pairs.items() for document in documents]

    def write_truth(self) -> SettledGrades:
        """Settles all grades and writes the ground truth. Imported grades are kept."""
        self.check_own()
        truth = settle(self.annotators(), self.read_adjudications())
        grades = {query: dict(row) for query, row in self.truth.grades.items()}
        for (query, document), grade in truth.grades.items():
            grades.setdefault(query, {})[document] = grade
        self.truth.grades = self.in_order(grades)
        names = {str(number): words for number, words in self.scale.items()}
        self.truth.metadata |= {
            "pairs": sum(map(len, self.truth.grades.values())),
            "scale": names,
            "graded_by_model": len(truth.by_model),
        }
        if self.kind.format == FORMAT:
            drop_repeated_grades(self.kind.base / self.kind.options["queries"])
        write_json(self.truth_path, self.truth)
        return truth

    def forget(self, pairs: Collection[QueryDocument]) -> None:
        """Removes grades from the ground truth that no annotator gives now."""
        given = {pair for annotation in self.annotators().values() for pair in annotation.pairs()}
        for query, document in set(pairs) - given:
            row = self.truth.grades.get(query, {})
            row.pop(document, None)
            if not row:
                self.truth.grades.pop(query, None)

    def in_order(self, rows: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
        """Grades in the task's order, so that files do not depend on the order of grading."""
        return {
            query: dict(sorted(rows[query].items(), key=lambda item: self._document_places[item[0]]))
            for query in self._query_places
            if query in rows
        }


def check_not_built_in(path: Path) -> None:
    """Refuses the description of a built-in task, and paths among the built-in tasks."""
    here = path.resolve()
    shipped = [(root() / folder).resolve() for folder in ("queries", "lineups")]
    if here != default_lineup().resolve() and not set(shipped) & set(here.parents):
        return
    if (name := here.parent.name) in task_names():
        remedy = f"copy it first: bakeoff queries copy {name} my-{name}"
        raise InputError("is a built-in task, which is never written to", file=path, remedy=remedy)
    raise InputError(
        "is among the built-in tasks, which are never written to", file=path, remedy="choose another folder"
    )


def _description(path: Path) -> tuple[Path, dict[str, Any] | None]:
    """The file that describes the task, and the description if that file is a line-up."""
    content = read_toml(path, dict[str, Any])
    if "tasks" in content:
        raise InputError("has several tasks", file=path, place="tasks", remedy="name the task.toml of one of them")
    inner = content.get("task")
    if "format" in content or "kind" in content or inner is None:
        return path, None
    if isinstance(inner, str):
        return _description(task_description(inner, path.parent))
    return path, inner
