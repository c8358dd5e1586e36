"""What a retriever promises: a text in, ids with scores out, and the time that the answer took."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from bakeoff_providers.errors import StoreError

from bakeoff.core.clock import timed
from bakeoff.core.filters import conditions, passes
from bakeoff.core.id_rows import IdRows
from bakeoff.core.ranking import Ranking, ordered
from bakeoff.core.task import Query
from bakeoff.search.searchers import Answer, Searcher

Scored = Sequence[tuple[str, float]]
Unknown = Annotated[Literal["error", "drop"], "what happens to ids that are no documents of the task"]


class Retriever(ABC):
    """One system that ranks by itself. What it answers is checked here, not there."""

    name: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()  # options that are files, relative to the line-up

    @classmethod
    def missing(cls, **options: Any) -> str | None:  # noqa: ARG003 - some need to know what the line-up says
        """What keeps it from being asked, in words; makes no call."""
        return None

    @classmethod  # noqa: B027 - some can't be wrong
    def check(cls, **options: Any) -> None:
        """Raises InputError for options that can't be right, without asking anything."""

    @abstractmethod
    def search(self, text: str, k: int) -> tuple[Scored, int]:
        """The best k for a text, and the nanoseconds of the call that answered."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Lets go of connections."""


def scored(answer: Any) -> list[tuple[str, float]]:
    """Pairs of id and score from pairs, from a dict, or from ids alone, whose order is then the ranking."""
    if isinstance(answer, Mapping):
        answer = list(answer.items())
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise StoreError(f"it answered {type(answer).__name__}, not a list of ids or of (id, score)")
    entries = list(answer)
    if all(isinstance(entry, (str, int)) for entry in entries):
        return [(str(entry), 1.0 / rank) for rank, entry in enumerate(entries, start=1)]
    try:
        return [(str(document), float(score)) for document, score in entries]
    except (TypeError, ValueError):
        raise StoreError("it answered neither ids nor pairs of (id, score)") from None


@dataclass(slots=True)
class RetrieverSearcher(Searcher):
    """A retriever as a row: its ids must be documents of the task, unless unknown ones are to be dropped."""

    retriever: Retriever
    texts: Mapping[str, str]  # of the documents that queries are, by their ids
    documents: IdRows
    metadata: Mapping[str, Mapping[str, Any]]  # of the documents that have any
    depth: int
    drop_unknown: bool = False

    def ask(self, query: Query) -> Answer:
        """A filter is applied to its answer, for which it is then asked for everything."""
        size = min(len(self.documents), self.depth + bool(query.excluded))
        text = self.texts.get(query.item, query.text)
        answer, nanoseconds = self.retriever.search(text, len(self.documents) if query.where else size)
        ranking, checking_ns = timed(lambda: self._ranking(answer, query))
        return Answer(ranking, nanoseconds + checking_ns)

    def close(self) -> None:
        """The retriever's connections."""
        self.retriever.close()

    def _ranking(self, answer: Scored, query: Query) -> Ranking:
        filters = conditions(query.where) if query.where else ()
        best: dict[str, float] = {}
        known = self.documents.among([document for document, _ in answer])
        for document, score in answer:
            if document not in known:
                if self.drop_unknown:
                    continue
                raise StoreError(
                    f"it answered the unknown document {document!r}; "
                    'options = { unknown = "drop" } in its [[contender]] leaves such documents out'
                )
            if document in best:
                raise StoreError(f"it answered the document {document!r} twice")
            if math.isnan(score):
                raise StoreError(f"it answered NaN as the score of {document!r}")
            if document != query.excluded and (not filters or passes(self.metadata.get(document, {}), filters)):
                best[document] = score
        return ordered(best.items(), self.depth)
