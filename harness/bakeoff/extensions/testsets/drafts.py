"""What a maker of queries is asked for, and what it proposes."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bakeoff.lineup.lineup import Category
from bakeoff.tasks.formats.native import Article


@dataclass(frozen=True, slots=True)
class Draft:
    """A query as a maker proposes it, with the documents that it was made from."""

    text: str
    category: str
    sources: tuple[int | str, ...]  # their page_id


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What to generate: how many queries per category, in which language, for which day."""

    categories: Mapping[str, Category]
    n: int
    seed: int = 42
    language: str = "en"
    as_of: datetime.date | None = None


class Maker(Protocol):
    """Proposes queries, best first and as many as it can: the filter takes what it needs and then stops asking."""

    def drafts(self, articles: Sequence[Article], category: str, request: GenerationRequest) -> Iterator[Draft]:
        """Proposals for one category."""
