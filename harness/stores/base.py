"""What every store promises: unit vectors in, ids with cosine similarities out. The harness orders and breaks ties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from providers.base import Vectors
from providers.registry import missing_modules

# A float32 similarity carries six digits; what differs beyond is the store's noise and would decide ties by chance.
SIMILARITY_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Hits:
    """What a store found, in whatever order it found it: similarities, higher is nearer."""

    ids: Sequence[str]
    scores: Sequence[float]


class Store(ABC):
    """Vectors → nearest ids. `exact` says that nothing nearer can have been missed."""

    name: ClassVar[str]
    extra: ClassVar[str | None] = None
    modules: ClassVar[tuple[str, ...]] = ()
    exact: bool

    def __init__(self, *, dimensions: int, folder: Path) -> None:
        self.dimensions, self.folder = dimensions, folder

    @classmethod
    def missing(cls) -> str | None:
        """Which install would make this store work; None when it does."""
        return missing_modules(cls.modules, cls.extra)

    @abstractmethod
    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Takes unit vectors; afterwards they can be searched. Called once for each contender."""

    @abstractmethod
    def search(self, vector: Vectors, k: int) -> Hits:
        """The k nearest to one unit vector; all there are, when they are fewer."""

    def size_bytes(self) -> int:
        """What the index takes, on disk where it lives there."""
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def close(self) -> None:  # noqa: B027 - most stores hold nothing
        """Lets go of files and connections."""
