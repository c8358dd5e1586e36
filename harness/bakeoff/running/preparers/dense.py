"""A provider's vectors in a store."""

from __future__ import annotations

from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.core.clock import timed
from bakeoff.lineup.contender import Contender
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.failures import adapter_work
from bakeoff.running.preparers.base import Preparer, Workshop
from bakeoff.running.stages import Build, Prepared
from bakeoff.search.searchers import DenseSearcher
from bakeoff.search.stores import STORES


class Dense(Preparer):
    """Embeds the corpus, or takes its vectors from a row that has the same, and builds the store."""

    def check(self, contender: Contender, embeddings: Embeddings) -> None:
        """Makes the provider, which checks its options, and compares the dimensions that both sides name."""
        if contender.missing() and not embeddings.settings.offline:
            return
        card = embeddings.embedder(contender).provider.card
        wanted = contender.variant.dimensions
        if wanted is not None and card.dimensions is not None and wanted > card.dimensions:
            raise InputError(
                f"{wanted} dimensions asked for, but {card.name} has {card.dimensions}",
                place=contender.label,
                remedy=f"ask for {card.dimensions} or fewer",
            )

    def try_out(self, contender: Contender, embeddings: Embeddings) -> None:
        """The index that these options describe, and the provider's own server."""
        if contender.missing():
            return
        provider = embeddings.embedder(contender).provider
        store, documents = STORES.get(contender.store), len(embeddings.index(contender).chunks)
        dimensions = contender.variant.dimensions or provider.card.dimensions
        store.check(dimensions=dimensions, documents=documents, **contender.store_options)
        provider.ready()

    def prepare(self, contender: Contender, workshop: Workshop) -> Prepared:
        """A store that fails costs its row."""
        embeddings, index = workshop.embeddings, workshop.embeddings.index(contender)
        missing = STORES.get(contender.store).missing(**contender.store_options)
        if missing and not embeddings.settings.offline:
            raise Unavailable(missing)
        embedder, whole = embeddings.of(contender)
        variant = contender.variant.fitted(whole)
        vectors = variant.documents(whole)
        dimensions = int(vectors.shape[1])
        workshop.folder.mkdir()
        store = STORES.create(contender.store, dimensions=dimensions, folder=workshop.folder, **contender.store_options)
        searcher = DenseSearcher(embedder, index, store, variant, vectors)
        ids, metadata = [chunk.id for chunk in index.chunks], [index.fields(chunk) for chunk in index.chunks]
        try:
            with adapter_work():
                _, added = timed(lambda: store.add(ids, vectors, metadata))
                _, built = timed(store.build)
                index_bytes = store.size_bytes()
        except BaseException:
            searcher.close()
            raise
        rows = {chunk.id: row for row, chunk in enumerate(index.chunks)} if index.texts else {}
        for item in index.texts.keys() & rows.keys():
            searcher.set_item_vector(item, whole[rows[item]])
        build = Build(seconds=(added + built) / 1e9, index_bytes=index_bytes, dimensions=dimensions)
        return Prepared(contender, searcher, build, embedder)
