"""What a store of token vectors promises: a query's token vectors in, ids with MaxSim scores out, in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.base import Vectors
from bakeoff_providers.registry import missing_modules

from bakeoff.core.filters import Where
from bakeoff.embedding.token_rows import TokenRows
from bakeoff.search.hits import Hits


class TokenStore(ABC):
    """Documents of many vectors each."""

    name: ClassVar[str]
    extra: ClassVar[str | None] = None
    modules: ClassVar[tuple[str, ...]] = ()
    distributions: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def missing(cls, **options: Any) -> str | None:  # noqa: ARG003 - as in the other stores
        """Which install would make this store work; None when it does."""
        return missing_modules(cls.modules, cls.extra)

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Nothing nearer can have been missed."""

    @abstractmethod
    def fill(self, ids: Sequence[str], rows: TokenRows, metadata: Sequence[Mapping[str, Any]]) -> None:
        """Takes all documents at once, and builds its index."""

    @abstractmethod
    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        """The k best of those that pass the filter."""

    @abstractmethod
    def size_bytes(self) -> int:
        """What the vectors and the index take."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Releases files."""
