"""Grading by models: one prompt per pair with the definitions in it; answers are cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
from bakeoff_providers.errors import BakeoffError, CallFailed, InputError

from bakeoff.chat.ask import Asker, Question, Unusable, read_object
from bakeoff.core.files import write_json
from bakeoff.core.progress import Progress, silent
from bakeoff.tasks.formats.native import GRADES, Article, QueryEntry
from bakeoff.testsets.task_folder import Annotation, QueryDocument, TaskFolder

LONGEST = 6000  # characters of a document that a judge sees
SAVE_EVERY = 20  # grades between two writes of the file; each answer is in the cache at once

DEFINITIONS = {
    3: "direct match: what was asked for is a main subject of the document; the person would be glad to get this first",
    2: "related: the document states what was asked for, but is about something else, or fits the request in part",
    1: "tangential: the topic is touched or only implied; a reader learns almost nothing about what was asked",
    0: "none: nothing of it; sharing a word or a place with the query is not enough",
}
SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "grade": {"type": "integer", "minimum": 0, "maximum": 3}},
    "required": ["reason", "grade"],
}


class _Answer(msgspec.Struct):
    grade: int
    reason: str = ""


@dataclass(slots=True)
class Judged:
    """One judge's grades, and the pairs without a usable answer."""

    who: str
    annotation: Annotation
    failed: dict[QueryDocument, str] = field(default_factory=dict)


@dataclass(slots=True)
class Judge:
    """A model under one seed. Its file is named after it, so a second run continues where the first ended."""

    folder: TaskFolder
    asker: Asker
    repeat: int = 0
    progress: Progress = silent

    @property
    def who(self) -> str:
        """The model, and which of its answers."""
        model = self.asker.model.label
        return self.folder.file_of(model if self.repeat == 0 else f"{model}.r{self.repeat + 1}").stem

    def questions(self, pairs: Sequence[QueryDocument]) -> dict[QueryDocument, Question]:
        """A prompt for each pair."""
        queries = {entry.query_id: entry for entry in self.folder.queries.queries}
        documents = {str(article.page_id): article for article in self.folder.articles}
        return {
            (query, document): Question(prompt(queries[query], documents[document]), SCHEMA, self.repeat)
            for query, document in pairs
        }

    def open_pairs(self, pairs: Sequence[QueryDocument]) -> list[QueryDocument]:
        """What this judge has not graded yet."""
        given = self._before().grades
        return [pair for pair in pairs if pair[1] not in given.get(pair[0], {})]

    def grade(self, pairs: Sequence[QueryDocument]) -> Judged:
        """Grades what is open; what arrived is kept, whatever ends the work."""
        path, annotation, open_ = self.folder.file_of(self.who), self._before(), self.open_pairs(pairs)
        annotation.metadata |= {"annotator": self.who, "kind": "model", **self.asker.model.identity()}
        judged = Judged(self.who, annotation)
        new = 0
        try:
            with self.progress(f"{self.who}: pairs", len(open_)) as advance:
                for pair, answer in self.asker.ask_all(self.questions(open_), read_grade):
                    if isinstance(answer, CallFailed):
                        judged.failed[pair] = str(answer)
                    else:
                        annotation.grades.setdefault(pair[0], {})[pair[1]] = answer.grade
                        if answer.reason.strip():
                            annotation.notes.setdefault(pair[0], {})[pair[1]] = answer.reason.strip()
                        new += 1
                    if new and new % SAVE_EVERY == 0:
                        write_json(path, annotation)
                    advance(1)
        finally:
            if new:
                annotation.grades = self.folder.in_order(annotation.grades)
                annotation.notes = self.folder.in_order(annotation.notes)
                write_json(path, annotation)
        return judged

    def _before(self) -> Annotation:
        path = self.folder.file_of(self.who)
        annotation = self.folder.read(path) if path.exists() else Annotation(metadata={"kind": "model"})
        if annotation.kind != "model":
            raise InputError("holds a person's grades", file=path, remedy="rename that annotator")
        return annotation


def read_grade(text: str) -> _Answer:
    """One grade from 0 to 3; anything else is asked for again."""
    answer = read_object(text, _Answer)
    if answer.grade not in GRADES:
        raise Unusable(f"grade {answer.grade} is not 0, 1, 2 or 3")
    return answer


def prompt(query: QueryEntry, article: Article) -> str:
    """All that a judge gets: the query, the document and the scale. Not who found it, nor what others gave."""
    scale = "\n".join(f"{grade} = {words}" for grade, words in DEFINITIONS.items())
    return (
        "You grade how well a document answers a search query. Grade what the document says or plainly implies.\n"
        f"The grades:\n{scale}\nBetween two grades, take the lower.\n\n"
        f"Query: {query.query_text}\n\nDocument: {article.title}\n{article.summary[:LONGEST]}\n\n"
        'Answer with one JSON object: {"reason": "one short sentence", "grade": 0, 1, 2 or 3}.'
    )


def grade_all(judges: Sequence[Judge], pairs: Sequence[QueryDocument], report: Callable[[Judged], None]) -> None:
    """Every judge in turn, each reported as it ends; an error at the end if any pair has no grade."""
    failed = 0
    for judge in judges:
        judged = judge.grade(pairs)
        failed += len(judged.failed)
        report(judged)
    if failed:
        raise BakeoffError(f"{failed} pairs got no usable grade; the others are kept: run the same command again")
