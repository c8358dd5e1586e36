"""Late interaction: a vector for each token, compared by MaxSim."""

from __future__ import annotations

from pathlib import Path

from bakeoff_providers.base import Role
from bakeoff_providers.errors import Unavailable

from bakeoff.core.clock import timed
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.corpus_chunks import ChunkTexts
from bakeoff.embedding.token_rows import check_tokens, embed_tokens, storage_bill
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.sources import missing_of
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.failures import adapter_work
from bakeoff.running.preparers.base import PreparationContext, Preparer
from bakeoff.running.stages import Build, Prepared
from bakeoff.search.token_searcher import TokenSearcher
from bakeoff.search.token_stores import TOKEN_STORES


class Tokens(Preparer):
    """Embeds every token of the corpus through the cache, and fills the store."""

    def check(self, contender: Contender, embeddings: Embeddings) -> None:
        """The provider can give such vectors."""
        if not missing_of(contender):
            check_tokens(embeddings.embedder(contender).provider)

    def prepare(self, contender: Contender, context: PreparationContext) -> Prepared:
        """What the vectors take is a note of the row: it is the price of this method."""
        if reason := missing_of(contender):
            raise Unavailable(reason)
        embeddings, index = context.embeddings, context.embeddings.index(contender)
        settings, embedder = embeddings.settings, embeddings.embedder(contender)
        texts = ChunkTexts(index.chunks)
        context.folder.mkdir()
        with adapter_work():
            cache = VectorCache(settings.cache) if settings.cache else None
            embedded = embed_tokens(embedder.provider, texts, cache, _folder(context, "vectors"), settings.progress)
            options = contender.filled_store_options()
            store = TOKEN_STORES.create(contender.store, folder=_folder(context, "store"), **options)
            searcher = TokenSearcher(check_tokens(embedder.provider), index, store, embedded.rows)
            metadata = [index.fields(row) for row in range(len(index.ids))]
            _, nanoseconds = timed(lambda: store.fill(index.ids, embedded.rows, metadata))
            build = Build(
                seconds=nanoseconds / 1e9,
                index_bytes=store.size_bytes(),
                dimensions=embedded.rows.dimensions,
                notes=(storage_bill(embedded.rows),),
            )
        if not embedder.usage[Role.DOCUMENT].asked:  # rows that share the vectors are counted once
            embedder.accounts[Role.DOCUMENT].add(embedded.usage)
        return Prepared(contender, searcher, build, embedder)


def _folder(context: PreparationContext, name: str) -> Path:
    folder = context.folder / name
    folder.mkdir()
    return folder
