"""A second stage over another row's candidates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.hub import is_hub_name
from bakeoff_providers.keys import filled

from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.corpus_chunks import TextsById, WholeTexts
from bakeoff.lineup.contender import Contender, Rerank
from bakeoff.lineup.sources import missing_of
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.failures import adapter_work
from bakeoff.running.preparers.base import PreparationContext, Preparer
from bakeoff.running.stages import Prepared
from bakeoff.search.reranked_searcher import RerankedSearcher
from bakeoff.search.rerankers import RERANKERS
from bakeoff.search.rerankers.base import Reranker


class RerankedRow(Preparer):
    """Asks the row that it is put on, then the reranker."""

    def check(self, contender: Contender, embeddings: Embeddings) -> None:
        """Makes the reranker, which checks its options and finds its files."""
        if not missing_of(contender):
            reranker_of(_rerank(contender), embeddings.folder).close()

    def prepare(self, contender: Contender, context: PreparationContext) -> Prepared:
        """It can only run where its first stage can be asked."""
        if (reason := missing_of(contender)) and not context.embeddings.settings.offline:
            raise Unavailable(reason)
        rerank, embeddings = _rerank(contender), context.embeddings
        first, documents = context.ready[rerank.of], embeddings.task.documents
        if not isinstance(first, Prepared):
            raise Unavailable(f"needs {rerank.of}, which can't be asked here")
        with adapter_work():
            reranker = reranker_of(rerank, embeddings.folder)
            reranker.load(offline=embeddings.settings.offline)
            identity = None if reranker.local else reranker.identity()
            folder = embeddings.settings.cache
            cache = VectorCache(folder) if folder else None
            note = reranker.prepare(WholeTexts(documents, contender.field), cache)
        searcher = RerankedSearcher(
            first.searcher,
            reranker,
            rerank.depth,
            TextsById(documents, contender.field),
            embeddings.settings.policy,
            cache.space(identity) if cache and identity is not None else None,
            embeddings.budget,
            embeddings.settings.offline,
        )
        build = replace(first.build, notes=(note,) if note else ())
        return Prepared(contender, searcher, build, first.embedder)


def reranker_of(rerank: Rerank, folder: Path) -> Reranker:
    """The reranker with its options; files are beside the line-up, and a name that is no file there stays a name."""
    options: dict[str, Any] = {
        **filled(rerank.options, secret=False),
        **({"model": rerank.model} if rerank.model else {}),
    }
    paths = RERANKERS.get(rerank.provider).paths
    files = {key: folder / Path(options[key]).expanduser() for key in paths if options.get(key)}
    there = {key: str(path) for key, path in files.items() if path.exists() or not is_hub_name(str(options[key]))}
    return RERANKERS.create(rerank.provider, **{**options, **there})


def _rerank(contender: Contender) -> Rerank:
    if contender.rerank is None:
        raise InputError("names no reranker", place=contender.label)
    return contender.rerank
