"""What every lexical ranker promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from bakeoff_providers.needs import Needs

from bakeoff.search.hits import Hits


class Ranker(ABC):
    """Ranks texts by their words. Takes the same chunks that are embedded elsewhere."""

    name: ClassVar[str]
    extra: ClassVar[str | None] = None
    modules: ClassVar[tuple[str, ...]] = ()
    distributions: ClassVar[tuple[str, ...]] = ()  # packages whose versions a result records

    @classmethod
    def needs(cls) -> Needs:
        """What has to be here; none of it is asked for yet."""
        return Needs(cls.modules, cls.extra)

    @classmethod
    def missing(cls) -> str | None:
        """Which install would make this ranker work; None when it does."""
        return cls.needs().missing()

    @abstractmethod
    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Indexes the texts."""

    @abstractmethod
    def search(self, text: str, k: int) -> Hits:
        """The k best, only those that share anything with the text: the harness fills up with the rest."""
