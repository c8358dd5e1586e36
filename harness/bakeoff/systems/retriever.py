"""External search systems; nothing is embedded or built here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.errors import InputError, StoreError, Unavailable

from bakeoff.core.clock import time_call
from bakeoff.core.filters import conditions, passes
from bakeoff.core.id_rows import IdRows
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Query, document_ids
from bakeoff.search.answer import Answer, Searcher
from bakeoff.search.retrievers import RETRIEVERS, Retriever, Scored
from bakeoff.systems.base import Build, FieldRow, Identity, Prepared, Ready, RunContext


@dataclass(frozen=True)
class RetrieverRow(FieldRow):
    """A function or an endpoint. `retriever` has its kind and options; `live` is a Python function."""

    row_type: ClassVar[str] = "retriever"

    retriever: dict[str, Any] = field(kw_only=True)
    live: Any = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def local(self) -> bool:
        """A URL may be anywhere, at any cost."""
        return "url" not in self.retriever

    @property
    def identity(self) -> Identity:
        """Its kind is the provider."""
        return Identity(self.retriever["kind"], self.name)

    def lacks_parts(self) -> str | None:
        """What the adapter lacks."""
        return RETRIEVERS.get(self.retriever["kind"]).missing(**self.retriever)

    def check(self, run: RunContext) -> None:
        """Check that the file exists."""
        for name in RETRIEVERS.get(self.retriever["kind"]).paths:
            file = self.retriever.get(name)
            if file and not (run.folder / file).is_file():
                raise InputError("no such file", file=run.folder / file, remedy="check the path")

    def try_out(self, run: RunContext) -> None:
        """Import the function; send no request to an endpoint."""
        if not self.lacks():
            self._create(run).close()

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:  # noqa: ARG002
        """Connect. The first query is the cold one."""
        if reason := self.lacks():
            raise Unavailable(reason)
        retriever, task = self._create(run), run.task
        items = {query.item for query in task.queries if query.item}
        texts = {document.id: document.whole(self.field) for document in task.documents if document.id in items}
        drop = self.retriever.get("unknown") == "drop"
        documents = IdRows(document_ids(task.documents))
        searcher = RetrieverSearcher(retriever, texts, documents, run.metadata, run.depth, drop)
        return Prepared(self, searcher, Build(seconds=0.0))

    def _create(self, run: RunContext) -> Retriever:
        kind, options = self.retriever["kind"], {key: self.retriever[key] for key in self.retriever if key != "kind"}
        for key in RETRIEVERS.get(kind).paths:
            if options.get(key):
                options[key] = str(run.folder / Path(options[key]).expanduser())
        if self.live is not None:
            options["target"] = self.live
        if RETRIEVERS.get(kind).takes_policy:
            options["policy"] = run.policy
        return self.create_part(RETRIEVERS, kind, **options)


@dataclass(slots=True)
class RetrieverSearcher(Searcher):
    """Queries a retriever. Unknown ids are refused, or dropped on request."""

    retriever: Retriever
    texts: Mapping[str, str]  # texts of query items, by id
    documents: IdRows
    metadata: Mapping[str, Mapping[str, Any]]  # of documents with metadata
    depth: int
    drop_unknown: bool = False

    def ask(self, query: Query) -> Answer:
        """With a filter, everything is requested and then filtered."""
        size = min(len(self.documents), self.depth + bool(query.excluded))
        text = self.texts.get(query.item, query.text)
        answer, nanoseconds = self.retriever.search(text, len(self.documents) if query.where else size)
        ranking, checking_ns = time_call(lambda: self._ranking(answer, query))
        return Answer(ranking, nanoseconds + checking_ns)

    def close(self) -> None:
        """Close the retriever's connections."""
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
                    f"it returned the unknown document {document!r}; "
                    'options = { unknown = "drop" } in its [[contender]] leaves such documents out'
                )
            if document in best:
                raise StoreError(f"it returned the document {document!r} twice")
            if math.isnan(score):
                raise StoreError(f"it returned NaN as the score of {document!r}")
            if document != query.excluded and (not filters or passes(self.metadata.get(document, {}), filters)):
                best[document] = score
        return make_ranking(best.items(), self.depth)
