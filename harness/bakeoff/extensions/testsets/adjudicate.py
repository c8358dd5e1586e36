"""Settling what annotators disagree on: one pair at a time, each decision kept at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_json
from bakeoff.extensions.testsets.agreement import Disagreement, disagreements
from bakeoff.tasks.annotations import AdjudicatedPair, Annotation, QueryDocument
from bakeoff.tasks.task_folder import TaskFolder


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a file of decisions."""

    query_id: str
    page_id: int | str
    grade: int
    why: str = ""


@dataclass(slots=True)
class Adjudication:
    """The pairs of a task that annotators disagree on, and the decisions so far."""

    folder: TaskFolder
    _decided: dict[QueryDocument, AdjudicatedPair] = field(init=False)
    _given: dict[str, dict[QueryDocument, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._decided = {(entry.query_id, str(entry.page_id)): entry for entry in self.folder.adjudicated()}
        self._given = counted_grades(self.folder.annotators())

    def open(self) -> list[Disagreement]:
        """Pairs with more than one grade and no decision, the widest apart first.

        A decision was made on the grades it lists; when an annotator gives another one, the pair is open again.
        """
        return [
            pair
            for pair in disagreements(self._given)
            if (entry := self._decided.get((pair.query, pair.document))) is None or entry.grades != pair.grades
        ]

    def decide(self, query: str, document: str, grade: int, why: str = "") -> None:
        """Keeps one decision; it is on disk when this returns."""
        self._decided[query, document] = self._settled(query, document, grade, why)
        self.folder.write_adjudicated(self._decided.values())

    def _settled(self, query: str, document: str, grade: int, why: str) -> AdjudicatedPair:
        self.folder.check(query, document, grade)
        pair = (query, document)
        given = {name: grades[pair] for name, grades in self._given.items() if pair in grades}
        if not given:
            raise InputError(f"nobody has graded {query}, {document}", remedy="grade it first: `bakeoff annotate`")
        return AdjudicatedPair(query_id=query, page_id=document, grades=given, grade=grade, why=why)

    def decide_from(self, path: Path) -> int:
        """All decisions of a JSON file, kept together when all are sound."""
        decisions = read_json(path, list[Decision])
        settled: dict[QueryDocument, AdjudicatedPair] = {}
        for place, decision in enumerate(decisions):
            pair = (decision.query_id, str(decision.page_id))
            try:
                settled[pair] = self._settled(*pair, decision.grade, decision.why)
            except InputError as error:
                raise InputError(error.problem, file=path, place=f"$[{place}]", remedy=error.remedy) from None
        self._decided |= settled
        self.folder.write_adjudicated(self._decided.values())
        return len(decisions)

    def ask(self, ask: Callable[[Disagreement], tuple[int, str] | None]) -> int:
        """Goes through what is open; None from `ask` leaves a pair open."""
        decided = 0
        for pair in self.open():
            answer = ask(pair)
            if answer is not None:
                self.decide(pair.query, pair.document, *answer)
                decided += 1
        return decided


def counted_grades(annotators: Mapping[str, Annotation]) -> dict[str, dict[QueryDocument, int]]:
    """Whose grades count for a pair: the people's where people graded it, otherwise the models'."""
    by_people = {
        pair for annotation in annotators.values() if annotation.kind == "person" for pair in annotation.pairs()
    }
    return {
        name: {
            pair: grade
            for pair, grade in annotation.pairs().items()
            if annotation.kind == "person" or pair not in by_people
        }
        for name, annotation in annotators.items()
    }
