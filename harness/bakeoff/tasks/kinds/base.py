"""The interface of a kind of task: where its queries and judgments come from, and what figures and files it adds.

Rankings made elsewhere are JSON Lines of a query and its ranked ids, best first.
"""

from __future__ import annotations

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.needs import Plugin

from bakeoff.core.facts import Fact, Section
from bakeoff.core.figures import OwnColumn
from bakeoff.core.files import read_bytes
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Query, Task, document_ids
from bakeoff.embedding.given_vectors import GivenVectors
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores, join, score_queries
from bakeoff.systems.base import CorpusVectors, System
from bakeoff.systems.embedding import EmbeddingRow


class RankedLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line. Without scores, the order is the ranking and nothing ties."""

    query: str
    ranked: list[str]
    scores: list[float] | None = None


def read_rankings(file: Path, task: Task) -> dict[str, Ranking]:
    """One ranking per query, without its own item. Unknown or repeated queries and documents are errors."""
    queries = {query.id: query for query in task.queries}
    documents = set(document_ids(task.documents))
    rankings: dict[str, Ranking] = {}
    for number, line in enumerate(read_bytes(file).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = msgspec.json.decode(line, type=RankedLine)
            if entry.query not in queries:
                raise InputError(f"unknown query {entry.query!r}")
            if entry.query in rankings:
                raise InputError(f"duplicate query {entry.query!r}")
            for document in entry.ranked:
                if document not in documents:
                    raise InputError(f"unknown document {document!r}")
            ranking = _ranking(entry)
        except (msgspec.DecodeError, InputError, UnicodeDecodeError) as error:
            remedy = '{"query": "q1", "ranked": ["d2", "d1"], "scores": [0.9, 0.3]}'
            raise InputError(str(error), file=file, place=f"line {number}", remedy=f"one line is {remedy}") from None
        item = queries[entry.query].excluded
        kept = [pair for pair in zip(ranking.ids, ranking.scores, strict=True) if pair[0] != item]
        rankings[entry.query] = Ranking(tuple(document for document, _ in kept), tuple(score for _, score in kept))
    return rankings


def _ranking(entry: RankedLine) -> Ranking:
    """Order by scores where given, else as listed."""
    if entry.scores is None:
        return make_ranking((document, 1.0 / rank) for rank, document in enumerate(entry.ranked, start=1))
    if len(entry.scores) != len(entry.ranked):
        raise InputError(f"{len(entry.scores)} scores for {len(entry.ranked)} ids")
    if not all(math.isfinite(score) for score in entry.scores):
        raise InputError("a score is not finite")
    return make_ranking(zip(entry.ranked, entry.scores, strict=True))


@dataclass(frozen=True, slots=True)
class Extras:
    """What a kind adds to a result: figures, tables and files.

    `columns` are shown next to the deciding measure on the first screen. `reference` is the model that replaces grades.
    `failures` make the command fail after everything is written. `also` is a second folder for the files.
    """

    figures: Mapping[str, Any] = field(default_factory=dict)
    sections: Sequence[Section] = ()
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    warnings: Sequence[Fact] = ()
    failures: Sequence[Fact] = ()
    also: Path | None = None
    columns: Sequence[OwnColumn] = ()
    reference: str = ""

    def with_table(self, name: str, figures: Any, section: Section) -> Extras:
        """Add one table, with its figures under this name."""
        return replace(self, figures={**self.figures, name: figures}, sections=[*self.sections, section])


@dataclass(frozen=True, slots=True)
class Answers:
    """One contender's rankings after the kind's own stages; `retrieved` are those before them."""

    contender: System
    rankings: Mapping[str, Ranking]
    retrieved: Mapping[str, Ranking]


@dataclass(frozen=True, slots=True)
class Reading:
    """One file of answers: its scores, its rankings, and the kind's own data."""

    scores: Scores
    rankings: Mapping[str, Ranking]
    figures: Mapping[str, float] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


class ScoredContender(Protocol):
    """A contender that ran, as kinds see it. `readings` are by seed, and empty if no file was read."""

    @property
    def contender(self) -> System:
        """The row of the line-up."""

    @property
    def rankings(self) -> Mapping[str, Ranking]:
        """The first round, after the kind's own stages."""

    @property
    def retrieved(self) -> Mapping[str, Ranking]:
        """The first round, as the search returned it."""

    @property
    def scores(self) -> Scores:
        """Per-query values: the mean over rounds or seeds."""

    @property
    def readings(self) -> Mapping[str, Reading]:
        """Files of answers, by seed."""

    @property
    def stable(self) -> bool | None:
        """Whether every round gave the same order; unknown after a single round."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run, for a kind's own tables and files."""

    task: Task
    contenders: Sequence[ScoredContender]
    baselines: Mapping[str, Scores]
    primary: Measure
    seed: int
    started: datetime.datetime
    vectors: CorpusVectors


class TaskKind(Plugin, ABC):
    """One source of judgments. Methods default to the engine's behaviour.

    A kind holds its settings and the content of its files, and no state of a run: every method may be called again.

    `needs_full_ranking`: rankings reach the last document. `measures`: computed in addition to the line-up's.
    `free_health_check`: free contenders can try the task before anything is spent. `judges_all`: an ungraded document
    is irrelevant. `can_be_sampled`: a part of its documents is a task too. `refines` and `scores_itself`: it overrides
    `refine` or `score`. `unit` and `item` are its names for a query and a document, `measure_names` for measures.
    """

    name: ClassVar[str]
    needs_full_ranking: ClassVar[bool] = False
    measures: ClassVar[tuple[str, ...]] = ()
    free_health_check: ClassVar[bool] = False
    judges_all: ClassVar[bool] = True
    can_be_sampled: ClassVar[bool] = False
    refines: ClassVar[bool] = False
    scores_itself: ClassVar[bool] = False
    unit: ClassVar[str] = "query"
    item: ClassVar[str] = "document"
    measure_names: ClassVar[Mapping[str, str]] = {}
    paths: ClassVar[tuple[str, ...]] = ()  # options that are files; `--set` takes them from the current folder

    def __init_subclass__(cls) -> None:
        """Checks the flags: an override without its flag would never be called, and figures would be silently wrong."""
        if (cls.refine is not TaskKind.refine) > cls.refines or (cls.score is not TaskKind.score) > cls.scores_itself:
            raise TypeError(f"{cls.__name__} overrides refine or score: set refines or scores_itself")

    def __init__(self, name: str, base: Path, targets: Mapping[str, float]) -> None:
        self.task_name, self.base, self.targets = name, base, targets
        self.about = ""  # the task in one sentence, if given

    @classmethod
    def measure_label(cls, measure: Measure) -> str:
        """A measure's name in reports."""
        family, at, cut = str(measure).partition("@")
        return f"{cls.measure_names[family]}{at}{cut}" if family in cls.measure_names else measure.label

    @property
    def models(self) -> tuple[EmbeddingRow, ...]:
        """Models that the judgments need in addition to the contenders. They may cost money too."""
        return ()

    @property
    def further_texts(self) -> Sequence[str]:
        """Texts that every contender embeds in addition to the corpus and the queries."""
        return ()

    @abstractmethod
    def task(self) -> Task:
        """The checked task. Judgments that depend on vectors are still empty."""

    def check_contenders(self, task: Task, contenders: Sequence[System], folder: Path) -> None:
        """Raises InputError if the line-up's rows do not fit the task as a whole, before any call.

        An error of a single row fails only that row, and is found elsewhere.
        """

    def vectors_of(self, model: str) -> GivenVectors | None:  # noqa: ARG002 - most tasks have texts only
        """The documents' vectors by this model, if they came with the task."""
        return None

    def at_look(self, task: Task) -> Task:
        """The queries of the current look; all queries if no looks are planned."""
        return task

    def judge(self, task: Task, vectors: CorpusVectors) -> Task:  # noqa: ARG002 - most kinds need no vectors
        """The task with its judgments, before any contender is prepared."""
        return task

    def refine(self, query: Query, ranking: Ranking) -> Ranking:  # noqa: ARG002 - most kinds rank as the store does
        """The kind's own stages after the search."""
        return ranking

    def score(self, task: Task, answers: Answers, measures: Sequence[Measure]) -> Scores:
        """Per-query values of one round of one contender."""
        ids = [query.id for query in task.queries]
        return score_queries(join(answers.rankings, task.judgments, ids), measures, task.rel)

    def find_unlabelled(self, ran: Sequence[ScoredContender]) -> Collection[str]:  # noqa: ARG002 - most kinds score them 0
        """Queries without a label. They are searched, but no mean includes them."""
        return ()

    @property
    def no_verdict(self) -> str:
        """The id of the reason why rows can't be compared; empty if they can."""
        return ""

    def read(
        self,
        task: Task,
        contender: System,
        seed: str,  # noqa: ARG002 - most kinds keep nothing per seed
        file: Path,
        measures: Sequence[Measure],
        depth: int,
    ) -> Reading:
        """Reads a file of answers made elsewhere, cut like all others. `seed` is empty if there is only one file."""
        rankings = {query: ranking.cut(depth) for query, ranking in read_rankings(file, task).items()}
        return Reading(self.score(task, Answers(contender, rankings, {}), measures), rankings)

    def baselines(self, task: Task, measures: Sequence[Measure], depth: int) -> dict[str, Scores]:  # noqa: ARG002
        """Baselines in addition to the oracle and the random order, cut at `depth`."""
        return {}

    def extras(self, run: FinishedRun) -> Extras:  # noqa: ARG002 - most kinds add nothing to the matrix
        """This kind's figures, tables and files. Called while vectors are still available."""
        return Extras()

    @classmethod
    def pictures(cls, figures: Mapping[str, Any]) -> dict[str, Callable[[], bytes]]:  # noqa: ARG003 - most draw nothing
        """This kind's pictures, drawn on demand from the figures in a result."""
        return {}
