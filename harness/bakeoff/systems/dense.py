"""Embeddings in a vector store."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.core.clock import time_call
from bakeoff.core.files import check_free_space, explain_full_disk
from bakeoff.core.task import Query
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.search import brute_force
from bakeoff.search.answer import Answer
from bakeoff.search.exact_search import ExactRankings, ExactSearch, sample
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.search.variants import FittedVariant, Variant
from bakeoff.systems.base import Build, Prepared, Ready, RunContext
from bakeoff.systems.embedding import EmbeddingSearcher, StoreRow
from bakeoff.systems.failures import adapter_work


@dataclass(frozen=True)
class Dense(StoreRow):
    """Embeds the corpus, or reuses vectors of another row, and builds the store."""

    row_type: ClassVar[str] = "dense"
    opens_with: ClassVar[dict[str, str]] = {}  # store arguments besides the line-up's options

    variant: Variant = field(default_factory=Variant, kw_only=True)

    @property
    def searcher_type(self) -> type[DenseSearcher]:
        """The class that fills and queries its store."""
        return DenseSearcher

    @property
    def searches(self) -> Hashable:
        """Its vectors in its variant's dimensions and precision."""
        return self.shares, str(self.variant)

    def check(self, run: RunContext) -> None:
        """Create the provider, which checks its options, and compare dimensions.

        A mistake is reported before a missing key, which would not help.
        """
        try:
            card = run.embedder(self).provider.card
        except InputError:
            raise
        except Exception:
            if self.lacks():
                return
            raise
        wanted = self.variant.dimensions
        if wanted is not None and card.dimensions is not None and wanted > card.dimensions:
            raise InputError(
                f"{wanted} dimensions requested, but {card.name} has {card.dimensions}",
                place=self.label,
                remedy=f"request {card.dimensions} or fewer",
            )

    def try_out(self, run: RunContext) -> None:
        """Checks the index options and the provider's server."""
        if self.lacks():
            return
        provider = run.embedder(self).provider
        store, documents = STORES.get(self.store), len(run.index(self).chunks)
        dimensions = self.variant.dimensions or provider.card.dimensions
        held = store.holding(self.variant.precision, self.fill_store_options())
        store.check(dimensions=dimensions, documents=documents, **held.options)
        provider.ready()

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:  # noqa: ARG002
        """Embed, fill and build; if the store fails, so does the row."""
        index = run.index(self)
        missing = self.lacks_store()
        if missing and not run.offline:
            raise Unavailable(missing)
        embedder, whole = run.of(self)
        variant = self.variant.fit(whole)
        vectors = variant.corpus(whole)
        dimensions = vectors.dimensions
        scratch.mkdir()
        held = STORES.get(self.store).holding(self.variant.precision, self.fill_store_options())
        store = self.create_part(
            STORES, self.store, dimensions=dimensions, folder=scratch, **held.options, **self.opens_with
        )
        run.place(store)
        searcher = self.searcher_type(embedder, index, store, variant, vectors, run.nearest)
        try:
            with adapter_work(), explain_full_disk() if store.on_disk() else nullcontext():
                if store.on_disk():
                    each = Variant(dimensions, held.precision).bytes_each(dimensions)
                    check_free_space(scratch, int(each * len(vectors)), "vectors")
                # Engines with native int8 quantise the vectors themselves; others get dequantised ones.
                stored = variant.truncate(whole) if held.precision == "int8" else vectors
                added = searcher.fill(stored)
                _, built = time_call(store.build)
                store.check_count(len(vectors))
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
            notes=tuple(note for note in (held.note, store.note_left_out()) if note),
        )
        return Prepared(self, searcher, build, embedder)


@dataclass(slots=True)
class DenseSearcher(EmbeddingSearcher):
    """A provider's vectors in a store. Only the store's own call is timed as search."""

    store: Store
    variant: FittedVariant
    vectors: Vectors | VectorRows
    nearest: brute_force.Nearest = brute_force.nearest
    _query_vectors: dict[str, Vectors] = field(default_factory=dict, init=False)  # by query id, for exact search
    _compared: frozenset[str] | None = field(default=None, init=False)  # queries to search exactly; None: all

    def fill(self, vectors: VectorRows) -> int:
        """Add all chunks; returns the nanoseconds spent in the store."""
        return self.store.fill(self.index.ids, vectors, self.index.all_fields())

    def prefetch(self, queries: Sequence[Query]) -> None:
        """Also draws the queries on which an exact store is checked."""
        EmbeddingSearcher.prefetch(self, queries)
        if self.exact:
            drawn = sample(queries, len(self.vectors) * self.vectors.shape[1], self.index.depth)
            self._compared = frozenset(query.id for query in drawn)

    def ask(self, query: Query) -> Answer:
        """Embed, search and rank."""
        found = self._vector(query)
        vector = self.variant.queries(found.vector[None])[0]
        if self._compared is None or query.id in self._compared:
            self._query_vectors.setdefault(query.id, vector)  # from the first round, which is checked
        size = self.index.fetch_size(excluding=query.excluded)
        hits, search_ns = time_call(lambda: self.store.search(vector, size, query.where))
        ranking = self.index.ranking(hits, lambda k: self.store.search(vector, k, query.where), query.excluded)
        return self._answer(query, ranking, search_ns, found)

    @property
    def exact(self) -> bool:
        """Whether the store declares exact search."""
        return self.store.capabilities.exact

    def exact_search(self) -> ExactRankings | None:
        """Searches the store's vectors exactly, with the same query vectors."""
        return ExactSearch(self.index, dict(self._query_vectors), self.vectors, self.nearest)

    def close(self) -> None:
        """Discard the store. Vectors and provider are shared with other rows."""
        self.store.discard()
