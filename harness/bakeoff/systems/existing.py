"""Existing indexes, opened read-only and checked against the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from bakeoff_providers.base import Fitted, Vectors
from bakeoff_providers.errors import InputError, StoreError, Unavailable

from bakeoff.core.clock import time_call
from bakeoff.core.facts import Fact, fact
from bakeoff.core.filters import conditions, passes
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Query, Task
from bakeoff.search.answer import Answer
from bakeoff.search.hits import Hits
from bakeoff.search.stores.existing import EXISTING, ExistingIndex
from bakeoff.systems.base import Build, Prepared, Ready, RunContext
from bakeoff.systems.embedding import EmbeddingRow, EmbeddingSearcher
from bakeoff.systems.failures import adapter_work

NAMED = 5  # most documents to list in a note


@dataclass(frozen=True)
class ExistingRow(EmbeddingRow):
    """Embeds queries only and writes nothing. `existing` says how to read the index."""

    row_type: ClassVar[str] = "existing"
    embeds_documents: ClassVar[bool] = False

    existing: dict[str, str] = field(kw_only=True)

    def lacks_store(self) -> str | None:
        """Missing requirements for reading the index."""
        return EXISTING.get(self.store).missing()

    def path(self, folder: Path) -> Path | None:
        """The index's file or folder, relative to the line-up; None if it is on a server."""
        if "://" in self.existing["existing"] or not EXISTING.get(self.store).in_files:
            return None
        return folder / Path(self.existing["existing"]).expanduser()

    def open(self, folder: Path) -> ExistingIndex:
        """Open the index by its absolute path."""
        path = self.path(folder)
        return self.create_part(EXISTING, self.store, **{**self.existing, **({"existing": str(path)} if path else {})})

    def check(self, run: RunContext) -> None:
        """Check that the provider can be created and the file exists."""
        path = self.path(run.folder)
        if path is not None and not path.exists():
            raise InputError("no such file or folder", file=path, remedy="check the path")
        if not self.lacks() or run.offline:
            provider = run.embedder(self).provider
            if isinstance(provider, Fitted):
                raise InputError(f"{provider.name} must be fitted on the documents, which are not embedded here")

    def try_out(self, run: RunContext) -> None:
        """Open the index; check its dimension and documents."""
        if self.lacks():
            return
        card = run.embedder(self).provider.card
        existing = self.open(run.folder)
        try:
            _check_dimensions(existing, card.dimensions, card.name)
            _notes(existing, run.task)
        finally:
            existing.close()

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:  # noqa: ARG002
        """Open the index and check its content."""
        if reason := self.lacks():
            raise Unavailable(reason)
        embedder = run.embedder(self)
        with adapter_work():
            existing = self.open(run.folder)
            try:
                _check_dimensions(existing, embedder.provider.card.dimensions, embedder.provider.card.name)
                notes = _notes(existing, run.task)
                embedder.provider.ready()
            except BaseException:
                existing.close()
                raise
        searcher = ExistingSearcher(embedder, run.index(self), existing, run.depth)
        build = Build(seconds=0.0, dimensions=existing.dimensions, notes=tuple(notes))
        return Prepared(self, searcher, build, embedder)


@dataclass(slots=True)
class ExistingSearcher(EmbeddingSearcher):
    """Ranks documents by their best entry; documents outside the task are dropped."""

    existing: ExistingIndex
    depth: int
    _short: set[str] = field(default_factory=set, init=False)  # queries with too few entries

    def ask(self, query: Query) -> Answer:
        """Requests more entries while duplicates and foreign documents leave the list short.

        Only the last, sufficient search is timed: an application would know its depth.
        """
        found = self._vector(query)
        vector = found.vector
        if vector.shape[-1] != self.existing.dimensions:
            raise StoreError(f"the index has {self.existing.dimensions} dimensions, the query {vector.shape[-1]}")
        size = min(self.existing.entries, self.depth + 1)
        while True:
            hits, search_ns = self._search(vector, size)
            ranking = self._ranking(hits, query)
            short = len(hits.ids) < size
            if len(ranking) == self.depth or size >= self.existing.entries or short:
                if short and len(ranking) < self.depth:
                    self._short.add(query.id)
                return self._answer(query, ranking, search_ns, found)
            size = min(self.existing.entries, 2 * size)

    def short_lists(self, queries: Sequence[Query], rankings: Mapping[str, Ranking]) -> int:  # noqa: ARG002
        """Queries for which the index returned fewer entries than requested and available."""
        return len(self._short)

    def close(self) -> None:
        """Close the index, unchanged."""
        self.existing.close()

    def _search(self, vector: Vectors, size: int) -> tuple[Hits, int]:
        return time_call(lambda: self.existing.search(vector, size).read(size))

    def _ranking(self, hits: Hits, query: Query) -> Ranking:
        filters = conditions(query.where) if query.where else ()
        best: dict[str, float] = {}
        known = self.index.find_known(hits.ids)
        for document, score in zip(hits.ids, hits.scores, strict=True):
            if np.isnan(score):
                raise StoreError(f"the index returned NaN as the score of {document!r}")
            if document not in known or document == query.excluded:
                continue
            if not filters or passes(self.index.metadata.get(document, {}), filters):
                best[document] = max(score, best.get(document, score))
        return make_ranking(best.items(), self.depth)


def _check_dimensions(existing: ExistingIndex, dimensions: int | None, model: str) -> None:
    if dimensions is not None and dimensions != existing.dimensions:
        raise Unavailable(
            f"the index has vectors of {existing.dimensions} dimensions, {model} makes {dimensions}: "
            "was it built with this model?"
        )


def _notes(existing: ExistingIndex, task: Task) -> list[Fact]:
    """Documents that only the task or only the index has."""
    held = existing.documents()
    lacking = [document.id for document in task.documents if document.id not in held]
    if len(lacking) == len(task.documents):
        raise Unavailable(
            f"the index has none of the task's documents (it has {', '.join(sorted(held)[:NAMED])}, …): "
            f"does id = {existing.id!r} hold document ids?"
        )
    notes = []
    if lacking:
        named = lacking[:NAMED]
        notes.append(fact("index_lacks", count=len(lacking), documents=len(task.documents), named=named))
    if foreign := len(held) - (len(task.documents) - len(lacking)):
        notes.append(fact("index_has_more", documents=foreign))
    return notes
