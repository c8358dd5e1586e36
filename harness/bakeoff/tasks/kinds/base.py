"""What a kind of task supplies: how its queries and judgments come about, and which figures and files it adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.metrics import Scores, evaluate, join
from bakeoff.results.schema import Section
from bakeoff.tasks.rankings_file import read_rankings

if TYPE_CHECKING:
    from bakeoff.lineup.contender import Contender
    from bakeoff.run.prepare import Embeddings, Entrant
    from bakeoff.run.runner import Outcome


@dataclass(slots=True)
class Extras:
    """What a kind adds to a result: figures for machines, tables for people, files of its own."""

    figures: dict[str, Any] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)
    files: dict[str, str | bytes] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class Kind(ABC):
    """One source of judgments. Everything that is not overridden is the engine's ordinary way.

    `whole` asks for rankings down to the last document; `measures` are worked out besides those of the line-up;
    `scouted` says that free contenders can try the task, so that its health can be told before anything is spent.
    """

    name: ClassVar[str]
    whole: ClassVar[bool] = False
    measures: ClassVar[tuple[str, ...]] = ()
    scouted: ClassVar[bool] = False
    paths: ClassVar[tuple[str, ...]] = ()  # options that are files; `--set` takes them from the current folder

    def __init__(self, name: str, base: Path, targets: Mapping[str, float]) -> None:
        self.task_name, self.base, self.targets = name, base, targets

    @property
    def models(self) -> tuple[Contender, ...]:
        """Models that the judgments need, besides the contenders: they may cost something too."""
        return ()

    @abstractmethod
    def task(self) -> Task:
        """The task, checked; its judgments may still be empty where they depend on vectors."""

    def judged(self, task: Task, embeddings: Embeddings) -> Task:  # noqa: ARG002 - most kinds need no vectors
        """The task with its judgments, before any contender is prepared."""
        return task

    def refine(self, query: Query, ranking: Ranking) -> Ranking:  # noqa: ARG002 - most kinds rank as the store does
        """Stages of the kind's own behind the search; what the search itself found stays in `Entrant.found`."""
        return ranking

    def score(  # most kinds judge all contenders alike
        self,
        entrant: Entrant,  # noqa: ARG002
        answered: Mapping[str, Ranking],
        task: Task,
        measures: Sequence[Measure],
    ) -> Scores:
        """Per-query values of one round of one contender."""
        return evaluate(join(answered, task.judgments, [query.id for query in task.queries]), measures, task.rel)

    def read(
        self, entrant: Entrant, file: Path, task: Task, measures: Sequence[Measure]
    ) -> tuple[Scores, dict[str, Ranking]]:
        """The answers that someone else made, in a file."""
        rankings = read_rankings(file, task)
        return self.score(entrant, rankings, task, measures), rankings

    def baselines(self, task: Task, measures: Sequence[Measure]) -> dict[str, Scores]:  # noqa: ARG002
        """Rows that no provider made, besides the oracle and the random order."""
        return {}

    def extras(self, outcome: Outcome) -> Extras:  # noqa: ARG002 - the matrix may be all there is to tell
        """Figures, tables and files of this kind; called while vectors are still at hand."""
        return Extras()
