"""Annotators' grades, and the settled grade of each pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

import msgspec

QueryDocument = tuple[str, str]  # query id, document id
ADJUDICATION = "adjudication.json"


class Annotation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`annotations/<who>.json`: the grades of one annotator, a person or a model."""

    metadata: dict[str, Any] = {}
    grades: dict[str, dict[str, int]] = {}
    notes: dict[str, dict[str, str]] = {}

    @property
    def kind(self) -> Literal["person", "model"]:
        """People outrank models where both graded a pair."""
        return "model" if self.metadata.get("kind") == "model" else "person"

    def pairs(self) -> dict[QueryDocument, int]:
        """The grades by pair."""
        return {(query, document): grade for query, row in self.grades.items() for document, grade in row.items()}


class AdjudicatedPair(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One entry of `annotations/adjudication.json`: everyone's grades, the decision, and the reason."""

    query_id: str
    document_id: int | str = msgspec.field(name="page_id")
    grades: dict[str, int]
    grade: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class SettledGrades:
    """One grade per pair, the pairs without a clear majority, and the pairs graded only by models."""

    grades: dict[QueryDocument, int]
    open: list[QueryDocument]
    by_model: list[QueryDocument]


def settle(annotators: Mapping[str, Annotation], settled: Sequence[AdjudicatedPair]) -> SettledGrades:
    """Settles each pair: adjudication first, then the people's majority, then the models'."""
    decided = {(entry.query_id, str(entry.document_id)): entry.grade for entry in settled}
    given: dict[QueryDocument, dict[str, list[int]]] = {}
    for annotation in annotators.values():
        for pair, grade in annotation.pairs().items():
            given.setdefault(pair, {}).setdefault(annotation.kind, []).append(grade)
    grades, left = {}, []
    for pair, kinds in given.items():
        grades_that_count = kinds.get("person") or kinds["model"]
        grades[pair] = decided.get(pair, majority(grades_that_count))
        if pair not in decided and not decisive(grades_that_count):
            left.append(pair)
    by_model = [pair for pair, kinds in given.items() if "person" not in kinds and pair not in decided]
    return SettledGrades(grades | decided, left, by_model)


def majority(grades: Sequence[int]) -> int:
    """The most frequent grade; ties go to the one nearest the median, then to the lower."""
    counts, middle = Counter(grades), median(grades)
    return min(counts, key=lambda grade: (-counts[grade], abs(grade - middle), grade))


def decisive(grades: Sequence[int]) -> bool:
    """Whether more than half gave the same grade."""
    return 2 * max(Counter(grades).values()) > len(grades)
