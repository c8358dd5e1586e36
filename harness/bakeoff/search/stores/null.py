"""A store that does nothing: what a load generator manages with it is the generator's own limit."""

from __future__ import annotations

from collections.abc import Sequence

from bakeoff_providers.base import Vectors

from bakeoff.core.filters import Condition, Metadata
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import Capabilities, SizeModel, Store


class NullStore(Store):
    """Answers at once and with nothing: whatever time is measured with it is the client's own."""

    name = "null"
    capabilities = Capabilities(exact=True, filters=True, persistent=False, updates=True, in_process=True)

    def _add(self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata]) -> None:
        """Keeps nothing."""

    def _delete(self, ids: list[str]) -> None:
        """Has nothing."""

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:  # noqa: ARG002
        return Hits([], [])

    def size_model(self) -> SizeModel:
        """Nothing."""
        return SizeModel(0, 0, "0")
