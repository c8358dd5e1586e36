"""Grading by models: one prompt per pair with the definitions in it; answers are cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
from bakeoff_providers.errors import BakeoffError, CallFailed, InputError, Unavailable

from bakeoff.calls.paid import Usage
from bakeoff.core.files import write_json
from bakeoff.core.printable import pluralise
from bakeoff.core.progress import Progress, silent
from bakeoff.core.task import Document, Query
from bakeoff.extensions.testsets.annotations import Annotation, QueryDocument
from bakeoff.extensions.testsets.ask import Asker, Question, Unusable, read_object
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.tasks.ground_truth import GRADES

LONGEST = 6000  # characters of a document that a judge sees
SAVE_EVERY = 20  # grades between two writes of the file; each answer is in the cache at once

DEFINITIONS = {
    3: "direct match: what was asked for is a main subject of the document; the person would be glad to get this first",
    2: "related: the document states what was asked for, but is about something else, or fits the request in part",
    1: "tangential: the topic is touched or only implied; a reader learns almost nothing about what was asked",
    0: "none: nothing of it; sharing a word or a place with the query is not enough",
}


class _GradeAnswer(msgspec.Struct):
    grade: int
    reason: str = ""


@dataclass(slots=True)
class JudgeGrades:
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
        """The annotator's name: the model, and the number of its repeat."""
        model = self.asker.model.label
        return self.folder.file_of(model if self.repeat == 0 else f"{model}.r{self.repeat + 1}").stem

    def questions(self, pairs: Sequence[QueryDocument]) -> dict[QueryDocument, Question]:
        """A prompt for each pair."""
        folder, scale = self.folder, self.folder.scale
        return {
            (query, document): Question(
                prompt(folder.query(query), folder.document(document), scale), schema(scale), self.repeat
            )
            for query, document in pairs
        }

    def open_pairs(self, pairs: Sequence[QueryDocument]) -> list[QueryDocument]:
        """Pairs that this judge has not graded yet."""
        given = self._before().grades
        return [pair for pair in pairs if pair[1] not in given.get(pair[0], {})]

    def grade(self, pairs: Sequence[QueryDocument]) -> JudgeGrades:
        """Grade the open pairs. Grades that arrived are kept, even after an error."""
        path, annotation, open_ = self.folder.file_of(self.who), self._before(), self.open_pairs(pairs)
        annotation.metadata |= {"annotator": self.who, "kind": "model", **self.asker.model.identity()}
        judged = JudgeGrades(self.who, annotation)
        new = 0
        try:
            with self.progress(f"{self.who}: pairs", len(open_)) as advance:
                for pair, answer in self.asker.ask_all(self.questions(open_), partial(read_grade, self.folder.scale)):
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


def panel(folder: TaskFolder, askers: Sequence[Asker], repeats: int = 1, progress: Progress = silent) -> list[Judge]:
    """One judge per model and repeat."""
    if repeats > 1 and any(asker.model.temperature == 0 for asker in askers):
        raise InputError(
            "repeats at temperature 0 give the same answer", place="--repeats",
            remedy="add --set temperature=0.7, or name several models",
        )  # fmt: skip
    return [Judge(folder, asker, repeat, progress) for asker in askers for repeat in range(repeats)]


def estimates_of(judges: Sequence[Judge], pairs: Sequence[QueryDocument]) -> list[Usage]:
    """Each judge's expected usage for its open pairs."""
    return [judge.asker.estimate(judge.questions(judge.open_pairs(pairs))) for judge in judges]


def check_answerable(judges: Sequence[Judge], estimates: Sequence[Usage], *, offline: bool) -> None:
    """Fail before anything is written if a model is not ready, or offline without any cached answer."""
    wanted = [judge.asker for judge, estimate in zip(judges, estimates, strict=True) if estimate.requests]
    asked = {id(asker): asker for asker in wanted}
    if not offline:
        for asker in asked.values():
            asker.model.ready()
    elif asked and not any(estimate.cached for estimate in estimates):
        raise Unavailable("--offline, but the cache has no answer to these questions")


def read_grade(scale: Mapping[int, str], text: str) -> _GradeAnswer:
    """Read one grade of the scale; anything else is retried."""
    answer = read_object(text, _GradeAnswer)
    if answer.grade not in scale:
        raise Unusable(f"grade {answer.grade} is not {_choice(scale)}")
    return answer


def schema(scale: Mapping[int, str]) -> dict[str, Any]:
    """The JSON schema of an answer."""
    grade = {"type": "integer", "minimum": min(scale), "maximum": max(scale)}
    return {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "grade": grade},
        "required": ["reason", "grade"],
    }


def definition(grade: int, name: str) -> str:
    """The meaning of a grade: our definition if the task uses our name for it, else only the name."""
    ours = DEFINITIONS.get(grade, "")
    return ours if name == ours.partition(": ")[0] else name


def _choice(scale: Mapping[int, str]) -> str:
    *most, last = (str(grade) for grade in sorted(scale))
    return f"{', '.join(most)} or {last}" if most else last


def prompt(query: Query, document: Document, scale: Mapping[int, str] = GRADES) -> str:
    """The judge's prompt: query, document and scale, without contenders or others' grades."""
    grades = "\n".join(f"{grade} = {definition(grade, scale[grade])}" for grade in sorted(scale, reverse=True))
    return (
        "You grade how well a document answers a search query. Grade what the document says or plainly implies.\n"
        f"The grades:\n{grades}\nBetween two grades, take the lower.\n\n"
        f"Query: {query.text}\n\nDocument: {document.title}\n{document.text[:LONGEST]}\n\n"
        'Answer with one JSON object: {"reason": "one short sentence", "grade": '
        f"{_choice(scale)}}}."
    )


def grade_all(judges: Sequence[Judge], pairs: Sequence[QueryDocument], report: Callable[[JudgeGrades], None]) -> None:
    """Run the judges in turn and report each. Raise at the end if a pair got no grade."""
    failed = 0
    for judge in judges:
        judged = judge.grade(pairs)
        failed += len(judged.failed)
        report(judged)
    if failed:
        raise BakeoffError(
            f"{pluralise(failed, 'pair')} got no usable grade; the others are kept. Run the same command again"
        )
