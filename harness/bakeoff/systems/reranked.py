"""A second stage over another row's candidates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.errors import Unavailable
from bakeoff_providers.hub import is_hub_name
from bakeoff_providers.keys import filled

from bakeoff.calls.tokens import estimated_tokens
from bakeoff.embedding.corpus_chunks import TextsById, WholeTexts, in_blocks
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.search.reranked_searcher import RerankedSearcher
from bakeoff.search.rerankers import RERANKERS
from bakeoff.search.rerankers.base import Reranker
from bakeoff.systems.base import Demand, FieldRow, Identity, Plan, Prepared, Ready, RunContext
from bakeoff.systems.failures import adapter_work, reason_of


@dataclass(frozen=True, slots=True)
class Rerank:
    """Whose candidates, how many of them, and by which model."""

    of: str
    provider: str
    model: str = ""
    depth: int = 50
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RerankedRow(FieldRow):
    """Asks the row that it is put on, then the reranker, which reads the field that this row searches."""

    row_type: ClassVar[str] = "reranked"

    rerank: Rerank = field(kw_only=True)

    @property
    def made_of(self) -> tuple[str, ...]:
        """The first stage."""
        return (self.rerank.of,)

    @property
    def local(self) -> bool:
        """By the reranker's class."""
        return RERANKERS.get(self.rerank.provider).local

    @property
    def identity(self) -> Identity:
        """The reranker is the provider."""
        return Identity(self.rerank.provider, self.name)

    def lacks_parts(self) -> str | None:
        """What the reranker lacks."""
        return RERANKERS.get(self.rerank.provider).missing(**filled(self.rerank.options, secret=False))

    def check(self, run: RunContext) -> None:
        """Makes the reranker, which checks its options and finds its files."""
        if not self.lacks():
            self._create(run.folder).close()

    def price(self, run: RunContext, demand: Demand) -> Plan:
        """As if nothing were cached: which pairs there will be only the first stage can tell."""
        labels, task = demand.labels, run.task
        try:
            reranker = self._create(run.folder)
        except Exception as error:  # whatever a reranker raises is a note to its row
            return Plan(labels, note=reason_of(error), lacks=True)
        candidates = min(self.rerank.depth, task.candidates)
        pairs, lacking = candidates * len(task.queries), self.lacks() or ""
        if reranker.local:
            return Plan(labels, pairs, note=lacking or "runs here, not timed", lacks=bool(lacking))
        texts = (document.whole(self.field) for document in task.documents)
        document = sum(map(estimated_tokens, in_blocks(texts, BLOCK))) / len(task.documents)
        tokens = sum(candidates * (estimated_tokens([query.text]) + document) for query in task.queries)
        usd = reranker.cost(tokens, len(task.queries))
        note = lacking or "upper bound: pairs in the cache are not subtracted"
        return Plan(labels, pairs, 0, tokens, len(task.queries), usd, None, note, bool(lacking))

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:  # noqa: ARG002
        """It can only run where its first stage can be asked."""
        if (reason := self.lacks()) and not run.offline:
            raise Unavailable(reason)
        first, documents = ready[self.rerank.of], run.task.documents
        if not isinstance(first, Prepared):
            raise Unavailable(f"needs {self.rerank.of}, which can't be asked here")
        with adapter_work():
            reranker = self._create(run.folder)
            reranker.load(offline=run.offline)
            identity = None if reranker.local else reranker.identity()
            cache = run.own_cache
            note = reranker.prepare(WholeTexts(documents, self.field), cache)
        searcher = RerankedSearcher(
            first.searcher,
            reranker,
            self.rerank.depth,
            TextsById(documents, self.field),
            run.policy,
            cache.space(identity) if cache and identity is not None else None,
            run.budget,
            run.offline,
        )
        build = replace(first.build, notes=(note,) if note else ())
        return Prepared(self, searcher, build, first.embedder)

    def _create(self, folder: Path) -> Reranker:
        """With its options; files are beside the line-up, and a name that is no file there stays a name."""
        rerank = self.rerank
        options: dict[str, Any] = {
            **filled(rerank.options, secret=False),
            **({"model": rerank.model} if rerank.model else {}),
        }
        paths = RERANKERS.get(rerank.provider).paths
        files = {key: folder / Path(options[key]).expanduser() for key in paths if options.get(key)}
        there = {key: str(path) for key, path in files.items() if path.exists() or not is_hub_name(str(options[key]))}
        return RERANKERS.create(rerank.provider, **{**options, **there})
