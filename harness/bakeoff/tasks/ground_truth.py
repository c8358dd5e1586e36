"""`ground_truth.json`: the settled grades of a task of any format."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.data_files import read_data
from bakeoff.core.facts import Fact
from bakeoff.core.files import check_keys_once
from bakeoff.core.task import Task, document_ids

FILE = "ground_truth.json"  # beside the task's description, unless that names another
GRADES = {3: "direct match", 2: "related", 1: "tangential", 0: "none"}
HIGHEST = 9  # a grade is one key on the grading page


def rel_line(highest: int = max(GRADES)) -> str:
    """The `rel` line of a new task, by its highest grade.

    On the scale above, related and direct matches are relevant; on any other, all grades above 0, as in trec_eval.
    """
    if highest == max(GRADES):
        return "rel = 2 # relevant = grade ≥ 2"
    return "rel = 1 # relevant = grade ≥ 1"


class GroundTruth(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Query → document → grade; `metadata.scale` names the possible grades."""

    metadata: dict[str, Any] = {}
    grades: dict[str, dict[str, int]]

    @property
    def graded_by_model(self) -> int:
        """The number of grades given only by models."""
        number = self.metadata.get("graded_by_model")
        return number if isinstance(number, int) else 0

    def scale(self, file: Path) -> dict[int, str] | None:
        """The names of the grades, if the file has any."""
        if (own := self.metadata.get("scale")) is None:
            return None
        try:
            scale = msgspec.convert(own, dict[int, str], strict=False)
        except msgspec.ValidationError:
            scale = {}
        if not scale or not all(0 <= grade <= HIGHEST for grade in scale):
            raise InputError(
                f"must name grades from 0 to {HIGHEST}", file=file, place="$.metadata.scale",
                remedy='for example {"0": "none", "1": "relevant"}',
            )  # fmt: skip
        return scale


def read_truth(path: Path, queries: Collection[str], documents: Collection[str]) -> tuple[GroundTruth, list[Fact]]:
    """The file with grades checked against scale and task, and its unknown keys."""
    check_keys_once(path)
    truth, notes = read_data(path, GroundTruth)
    scale = truth.scale(path) or GRADES
    for query, grades in truth.grades.items():
        if query not in queries:
            raise InputError(
                f"unknown query {query!r}", file=path, place="$.grades",
                remedy='add it or remove its grades; if the file belongs elsewhere, name yours: ground_truth = "…"',
            )  # fmt: skip
        for document, grade in grades.items():
            where = f"$.grades.{query}.{document}"
            if document not in documents:
                raise InputError(
                    "this document is not in the corpus", file=path, place=where, remedy="remove this grade"
                )
            if grade not in scale:
                raise InputError(f"grade {grade} is out of range", file=path, place=where, remedy=one_of(scale))
    return truth, notes


def overlay_grades(task: Task, path: Path) -> Task:
    """Overlay this file's grades on the task's own."""
    truth, notes = read_truth(path, {query.id for query in task.queries}, set(document_ids(task.documents)))
    merged = {query: {**grades, **truth.grades.get(query, {})} for query, grades in task.judgments.items()}
    return msgspec.structs.replace(
        task,
        judgments={**truth.grades, **merged},
        graded_by_model=task.graded_by_model + truth.graded_by_model,
        notes=[*task.notes, *notes],
    )


def one_of(scale: Collection[int]) -> str:
    """The allowed grades, for a remedy."""
    *most, last = (str(grade) for grade in sorted(scale))
    return f"use {', '.join(most)} or {last}" if most else f"use {last}"
