"""The same order for every query."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from bakeoff.plugins import Answer, Build, Prepared, Query, Ready, RunContext, Searcher, System, make_ranking


class FixedSearcher(Searcher):
    """Answers the ids that it was made with."""

    def __init__(self, ids: list[str]) -> None:
        self._ids = ids

    def ask(self, query: Query) -> Answer:
        """The ranking, and the nanoseconds that the search took."""
        return Answer(make_ranking((item, -float(place)) for place, item in enumerate(self._ids)), search_ns=1)


@dataclass(frozen=True)
class Fixed(System):
    """Documents by id."""

    row_type: ClassVar[str] = "acme_fixed"
    backwards: Annotated[bool, "from the last id to the first"] = False

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:
        """Whatever has to be built before the first query."""
        ids = sorted((document.id for document in run.task.documents), reverse=self.backwards)
        return Prepared(self, FixedSearcher(ids[: run.depth]), Build(seconds=0.0))
