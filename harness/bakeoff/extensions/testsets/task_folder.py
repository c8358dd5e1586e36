"""A task that is being graded: its documents and queries, every annotator's grades, and the ground truth."""

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
    """A task of any format that can be read, with what people and models say about its pairs.

    Annotations are written beside the file that describes the task, and so are settled grades, into its ground truth:
    documents, queries and judgments that came from elsewhere are never written to.
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
        """A task by name, by its task.toml, the folder that holds one, or the line-up that describes it."""
        path, inline = _description(task_description(source, Path()))
        kind = load_kind(str(path) if inline is None else inline, path.parent if inline else Path())
        if not isinstance(kind, Graded):
            raise InputError(
                f"is a task of kind {kind.name!r}, which has no pairs to grade", file=path, place="kind",
                remedy="a task of kind 'graded' has",
            )  # fmt: skip
        return cls.of(path, kind, kind.task())

    @classmethod
    def of(cls, path: Path, kind: Graded, task: Task) -> TaskFolder:
        """A task that was read already."""
        truth = GroundTruth(grades={})
        if file_exists(kind.ground_truth):
            truth, _ = read_data(kind.ground_truth, GroundTruth)
        if kind.format == FORMAT and not truth.grades:
            truth.grades = {query: dict(grades) for query, grades in task.judgments.items()}  # of its query file
        return cls(path, kind, task, truth)

    def standing(self) -> Fact | None:
        """Whose grades are used, where it is one annotator's alone; which are not yet, where some are not settled."""
        annotators = self.annotators()
        given = {pair for annotation in annotators.values() for pair in annotation.pairs()}
        if waiting := [pair for pair in given if pair[1] not in self.truth.grades.get(pair[0], {})]:
            return fact("testsets.unsettled_grades", grades=len(waiting), annotators=list(annotators), task=self.name)
        return fact("testsets.one_annotator", annotator=next(iter(annotators))) if len(annotators) == 1 else None

    @property
    def name(self) -> str:
        """What a command that goes on with this task is given."""
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
        """Refuses to write into a task that comes with Bakeoff, so that results stay comparable, or that can't be."""
        check_not_built_in(self.path)
        check_writable(self.path.parent, "make room, or copy the task to another disk")

    def check_queries(self, queries: Collection[str]) -> None:
        """Refuses to write queries that leave somebody's grades without theirs."""
        graded = {query for query, row in self.truth.grades.items() if row}
        graded |= {query for annotation in self.annotators().values() for query in annotation.grades}
        if lost := sorted(graded - set(queries)):
            more = f", and {len(lost) - 1} more" if lost[1:] else ""
            raise InputError(
                f"query {lost[0]!r} has grades and would be gone{more}", file=self.path,
                remedy="--add adds to the queries that are there, or choose another --out",
            )  # fmt: skip

    @property
    def annotations(self) -> Path:
        """The folder of the annotators' files."""
        return self.kind.base / "annotations"

    @property
    def scale(self) -> dict[int, str]:
        """The grades that annotators may give, with their names.

        The ground truth's own scale, or the labels of the task's table, or the one that its judgments are on.
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
        """How many pairs there are in all."""
        return len(self._query_places) * len(self._document_places)

    def all_pairs(self) -> list[QueryDocument]:
        """Every query with every document."""
        return [(query, document) for query in self._query_places for document in self._document_places]

    def place(self, pair: QueryDocument) -> tuple[int, int]:
        """The pair's place in the task: the order of everything that is written."""
        return self._query_places[pair[0]], self._document_places[pair[1]]

    def has(self, query: str, document: str) -> bool:
        """Whether the task has this pair."""
        return query in self._query_places and document in self._document_places

    def file_of(self, who: str) -> Path:
        """An annotator's file; a name that would leave the folder, or is taken by ours, is refused."""
        name = re.sub(r"[^\w.+@-]+", "-", who.strip()).strip(".-")
        if not name or f"{name}.json" in (ADJUDICATION, POOL):
            raise InputError(f"{who!r} is no name for an annotator", place="--who", remedy="letters and digits")
        return self.annotations / f"{name}.json"

    def read(self, path: Path) -> Annotation:
        """One annotator's grades, each of a known pair and on the scale."""
        annotation = read_json(path, Annotation)
        for (query, document), grade in annotation.pairs().items():
            self.check(query, document, grade, path)
        return annotation

    def check(self, query: str, document: str, grade: int, file: Path | None = None, place: str = "") -> None:
        """Refuses a grade off the scale and a pair that the task does not have."""
        place = place or f"$.grades.{query}.{document}"
        if not self.has(query, document):
            unknown = f"query {query!r}" if query not in self._query_places else f"document {document!r}"
            remedy = "add it to the task, or leave this grade out"
            raise InputError(f"the task has no {unknown}", file=file, place=place, remedy=remedy)
        if grade not in self.scale or isinstance(grade, bool):
            raise InputError(f"grade {grade} is out of range", file=file, place=place, remedy=one_of(self.scale))

    def annotators(self) -> dict[str, Annotation]:
        """Everyone's grades by name."""
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
        """All entries, in one order."""
        self.check_own()
        ordered = sorted(entries, key=lambda entry: self.place((entry.query_id, str(entry.document_id))))
        write_json(self.annotations / ADJUDICATION, ordered)

    def pool(self) -> list[QueryDocument]:
        """The pairs to grade: those of the pool, or all where nothing was pooled."""
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
        """Settles everyone's grades and writes what `bakeoff run` reads. Grades from elsewhere stay."""
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
        """Takes grades out of the ground truth that no annotator gives any more."""
        given = {pair for annotation in self.annotators().values() for pair in annotation.pairs()}
        for query, document in set(pairs) - given:
            row = self.truth.grades.get(query, {})
            row.pop(document, None)
            if not row:
                self.truth.grades.pop(query, None)

    def in_order(self, rows: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
        """Queries and documents as the task has them: a file must not depend on the order in which grades came."""
        return {
            query: dict(sorted(rows[query].items(), key=lambda item: self._document_places[item[0]]))
            for query in self._query_places
            if query in rows
        }


def check_not_built_in(path: Path) -> None:
    """Refuses a description of a task that comes with Bakeoff, or that would stand among those that do."""
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
    """The file that describes the task, and the description where that file is a line-up."""
    content = read_toml(path, dict[str, Any])
    if "tasks" in content:
        raise InputError("has several tasks", file=path, place="tasks", remedy="name the task.toml of one of them")
    inner = content.get("task")
    if "format" in content or "kind" in content or inner is None:
        return path, None
    if isinstance(inner, str):
        return _description(task_description(inner, path.parent))
    return path, inner
