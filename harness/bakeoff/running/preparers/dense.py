"""A provider's vectors in a store."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import numpy as np
from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.core.clock import timed
from bakeoff.core.progress import steps
from bakeoff.core.room import check_room, needs_room
from bakeoff.embedding.vector_rows import BLOCK, VectorRows
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.sources import missing_of
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.failures import adapter_work
from bakeoff.running.preparers.base import PreparationContext, Preparer
from bakeoff.running.stages import Build, Prepared
from bakeoff.search.index import Index
from bakeoff.search.searchers import DenseSearcher, HybridSearcher
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.hybrid import HybridStore
from bakeoff.search.variants import Variant


class Dense(Preparer):
    """Embeds the corpus, or takes its vectors from a row that has the same, and builds the store."""

    def check(self, contender: Contender, embeddings: Embeddings) -> None:
        """Makes the provider, which checks its options, and compares the dimensions that both sides name.

        What is wrong is said before what is missing here: a key would not help.
        """
        try:
            card = embeddings.embedder(contender).provider.card
        except InputError:
            raise
        except Exception:
            if missing_of(contender):
                return
            raise
        wanted = contender.variant.dimensions
        if wanted is not None and card.dimensions is not None and wanted > card.dimensions:
            raise InputError(
                f"{wanted} dimensions asked for, but {card.name} has {card.dimensions}",
                place=contender.label,
                remedy=f"ask for {card.dimensions} or fewer",
            )

    def try_out(self, contender: Contender, embeddings: Embeddings) -> None:
        """The index that these options describe, and the provider's own server."""
        if missing_of(contender):
            return
        provider = embeddings.embedder(contender).provider
        store, documents = STORES.get(contender.store), len(embeddings.index(contender).chunks)
        dimensions = contender.variant.dimensions or provider.card.dimensions
        held = store.holding(contender.variant.precision, contender.filled_store_options())
        store.check(dimensions=dimensions, documents=documents, **held.options)
        provider.ready()

    def prepare(self, contender: Contender, context: PreparationContext) -> Prepared:
        """A store that fails costs its row."""
        embeddings, index = context.embeddings, context.embeddings.index(contender)
        missing = STORES.get(contender.store).missing(**contender.filled_store_options())
        if missing and not embeddings.settings.offline:
            raise Unavailable(missing)
        embedder, whole = embeddings.of(contender)
        variant = contender.variant.fitted(whole)
        vectors = variant.corpus(whole)
        dimensions = vectors.dimensions
        context.folder.mkdir()
        held = STORES.get(contender.store).holding(contender.variant.precision, contender.filled_store_options())
        hybrid = {"search": contender.search} if contender.search else {}
        store = STORES.create(contender.store, dimensions=dimensions, folder=context.folder, **held.options, **hybrid)
        embeddings.engine.place(store)
        searcher: DenseSearcher
        if isinstance(store, HybridStore) and hybrid:
            searcher = HybridSearcher(embedder, index, store, variant, vectors)
        else:
            searcher = DenseSearcher(embedder, index, store, variant, vectors, embeddings.engine.nearest)
        try:
            with adapter_work(), needs_room() if store.on_disk() else nullcontext():
                if store.on_disk():
                    each = Variant(dimensions, held.precision).bytes_each(dimensions)
                    check_room(context.folder, int(each * len(vectors)), "vectors")
                # An engine with bytes of its own makes them from the vectors; others get what such bytes stand for.
                stored = variant.unrounded(whole) if held.precision == "int8" else vectors
                if isinstance(store, HybridStore) and hybrid:
                    added = _fill(store, index, stored, texts=True)
                else:
                    added = store.fill(index.ids, stored, index.all_fields())
                _, built = timed(store.build)
                index_bytes = store.size_bytes()
        except BaseException:
            searcher.close()
            raise
        for item in index.texts:
            if (row := index.row_of(item)) is not None:  # it is one chunk
                searcher.set_item_vector(item, whole[row])
        build = Build(
            seconds=(added + built) / 1e9,
            index_bytes=index_bytes,
            dimensions=dimensions,
            vector_bytes=Variant(dimensions, held.precision).bytes_each(dimensions),
            notes=tuple(note for note in (held.note, store.left_out_note()) if note),
        )
        return Prepared(contender, searcher, build, embedder)


def _fill(store: Store, index: Index, vectors: VectorRows, *, texts: bool) -> int:
    """Adds all chunks, a block at a time; the nanoseconds that the store took, without reading the blocks."""
    if len(vectors) > BLOCK:
        store.expect(len(vectors), lambda count: vectors[np.linspace(0, len(vectors) - 1, count).astype(np.int64)])
    nanoseconds, has_fields = 0, bool(index.metadata)
    with steps(f"{store.name}: adding", len(vectors)) as advance:
        for start, block in vectors.blocks():
            ids = index.ids[start : start + len(block)]
            metadata = [index.fields(row) for row in range(start, start + len(block))] if has_fields else None
            if texts and isinstance(store, HybridStore):
                said = [chunk.text for chunk in index.chunks[start : start + len(block)]]
                nanoseconds += timed(partial(store.add_texts, ids, block, said, metadata))[1]
            else:
                nanoseconds += timed(partial(store.add, ids, block, metadata))[1]
            advance(len(block))
    return nanoseconds
