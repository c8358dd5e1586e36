"""One person's grading: the pairs in their own order, and every grade on disk as soon as it is given."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.file_lock import try_lock

from bakeoff.core.files import write_json
from bakeoff.core.sampling import order_key
from bakeoff.tasks.annotations import Annotation, QueryDocument
from bakeoff.tasks.task_folder import TaskFolder


class GivenGrade(msgspec.Struct, forbid_unknown_fields=True):
    """What the page sends: the pair by its name, so that a page left open can't grade another."""

    query: str
    document: str
    grade: int | None
    note: str = ""


class GradingSession:
    """One annotator's pairs, in an order of their own, and what they gave so far."""

    def __init__(self, folder: TaskFolder, who: str, pairs: Sequence[QueryDocument]) -> None:
        self.folder, self.path = folder, folder.file_of(who)
        self.who = self.path.stem
        self.pairs = sorted(pairs, key=lambda pair: (folder.place(pair)[0], order_key(self.who, *pair)))
        self.annotation = folder.read(self.path) if self.path.exists() else Annotation()
        if self.annotation.kind == "model":
            raise InputError("holds a model's grades", file=self.path, remedy="choose another --who")
        self.annotation.metadata |= {"annotator": self.who, "kind": "person"}
        self._lock = threading.Lock()

    def grade_of(self, pair: QueryDocument) -> int | None:
        """What this annotator gave, if anything."""
        return self.annotation.grades.get(pair[0], {}).get(pair[1])

    @property
    def done(self) -> int:
        """How many of the pairs have a grade."""
        return sum(self.grade_of(pair) is not None for pair in self.pairs)

    def next_open(self, after: int = -1) -> int | None:
        """The next ungraded pair after this one, from the start again behind the last."""
        places = [*range(after + 1, len(self.pairs)), *range(min(after + 1, len(self.pairs)))]
        return next((at for at in places if self.grade_of(self.pairs[at]) is None), None)

    def shown(self, at: int | None) -> dict[str, Any]:
        """One pair as the page shows it: nothing about who found it, or what others gave."""
        with self._lock:
            if at is None:
                at = self.next_open()
            state = {"at": at, "total": len(self.pairs), "done": self.done, "who": self.who}
            if at is None:
                return state
            if not 0 <= at < len(self.pairs):
                raise InputError(f"there is no pair {at}")
            pair = self.pairs[at]
            query, document = self.folder.query(pair[0]), self.folder.document(pair[1])
            return state | {
                "query": {"id": pair[0], "text": query.text, "category": query.category},
                "document": {"id": pair[1], "title": document.title, "text": document.text},
                "grade": self.grade_of(pair),
                "note": self.annotation.notes.get(pair[0], {}).get(pair[1], ""),
                "next": self.next_open(at),
            }

    def give(self, given: GivenGrade) -> dict[str, Any]:
        """Keeps a grade, a note or both; they are on disk when this returns."""
        pair = (given.query, given.document)
        if pair not in self.pairs:
            raise InputError(f"the task has no pair {given.query}, {given.document} to grade")
        if given.grade is not None:
            self.folder.check(*pair, given.grade)
        with self._lock:
            if given.grade is not None:
                self.annotation.grades.setdefault(pair[0], {})[pair[1]] = given.grade
            notes = self.annotation.notes.setdefault(pair[0], {})
            notes[pair[1]] = given.note.strip()
            if not notes[pair[1]]:
                del notes[pair[1]]
            if not notes:
                del self.annotation.notes[pair[0]]
            write_json(self.path, self.annotation)
            return {"done": self.done, "next": self.next_open(self.pairs.index(pair))}

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Two pages for one annotator would write over each other: the second is refused."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mark = self.path.with_name(f".{self.path.stem}.lock")
        with mark.open("w") as file:
            if try_lock(file.fileno()) is False:  # where there are no such locks, nobody can tell
                raise InputError(
                    f"{self.who} is grading already", file=self.path, remedy="close that one, or choose another --who"
                )
            try:
                yield
            finally:
                mark.unlink(missing_ok=True)
