"""Generate queries for a corpus: the makers, and the filter that every query must pass."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bakeoff_providers.errors import InputError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

from bakeoff.core.progress import Progress, silent
from bakeoff.extensions.testsets.text_similarity import MOST_ALIKE, overlap, similarity
from bakeoff.lineup.lineup import Category
from bakeoff.tasks.formats.native import Article, QueryEntry, QueryFile, count_categories


@dataclass(frozen=True, slots=True)
class QueryDraft:
    """A proposed query and the documents it was made from."""

    text: str
    category: str
    sources: tuple[int | str, ...]  # document ids


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What to generate: how many queries per category, in which language, for which day."""

    categories: Mapping[str, Category]
    n: int
    seed: int = 42
    language: str = "en"
    as_of: datetime.date | None = None


class Maker(Plugin, ABC):
    """Proposes queries, best first, as many as it can; the filter stops it when it has enough."""

    @abstractmethod
    def drafts(self, articles: Sequence[Article], category: str, request: GenerationRequest) -> Iterator[QueryDraft]:
        """Proposals for one category."""


MOST_OVERLAP = 0.5


DEFAULT_CATEGORIES: Mapping[str, Category] = {
    "geographic": Category("where something lies: regions, neighbours, distances, heights, coasts and climates"),
    "landmark": Category("sights, parks, buildings and what a visitor can do there"),
    "historical": Category("origins, events, people and changes in the past"),
    "administrative": Category("how a place is governed: status, founding, population, seats, courts and districts"),
    "semantic": Category("a need or an idea in everyday words that never names the thing itself"),
}

MAKERS: Registry[Maker] = Registry(
    "query maker",
    "bakeoff.makers",
    {
        "templates": "bakeoff.extensions.testsets.template_maker:TemplateMaker",
        "llm": "bakeoff.extensions.testsets.chat_maker:ChatMaker",
    },
    given=("asker",),
)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A draft that was not taken, and why."""

    text: str
    category: str
    why: str


@dataclass(slots=True)
class Generated:
    """Queries that passed the filter, their overlap with their sources, and dropped drafts."""

    queries: list[QueryDraft] = field(default_factory=list)
    overlaps: list[float] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    short: dict[str, int] = field(default_factory=dict)


def generate(
    articles: Sequence[Article],
    maker: Maker,
    request: GenerationRequest,
    *,
    most_overlap: float = MOST_OVERLAP,
    most_alike: float = MOST_ALIKE,
    existing: Sequence[str] = (),
    progress: Progress = silent,
) -> Generated:
    """Make n queries per category that differ from each other and from their sources' wording."""
    by_id = {article.document_id: f"{article.title}\n{article.summary}" for article in articles}
    generated = Generated()
    with progress("queries", request.n * len(request.categories)) as advance:
        for category, settings in request.categories.items():
            taken = 0
            limit = 1.0 if category == KEYWORDS else most_overlap
            meant = [a for a in articles if not settings.of or set(settings.of) & set(a.categories)]
            for draft in maker.drafts(meant, category, request) if meant else ():
                source = "\n".join(by_id[page] for page in draft.sources)
                shared = overlap(draft.text, source, request.language)
                if why := _objection(draft, shared, generated, existing, limit, most_alike):
                    generated.dropped.append(Dropped(draft.text, category, why))
                    continue
                generated.queries.append(draft)
                generated.overlaps.append(shared)
                taken += 1
                advance(1)
                if taken == request.n:
                    break
            if taken < request.n:
                generated.short[category] = taken
    return generated


def _objection(
    draft: QueryDraft,
    shared: float,
    generated: Generated,
    existing: Sequence[str],
    most_overlap: float,
    most_alike: float,
) -> str:
    if not draft.text.strip():
        return "empty"
    if shared > most_overlap:
        return f"{shared:.0%} of its words occur in its source (limit {most_overlap:.0%})"
    for other in (*existing, *(query.text for query in generated.queries)):
        if (alike := similarity(draft.text, other)) >= most_alike:
            return f"{alike:.0%} like “{other}” (limit {most_alike:.0%})"
    return ""


def query_file(
    generated: Generated,
    request: GenerationRequest,
    maker: str,
    existing: QueryFile | None = None,
    extra: Mapping[str, Any] | None = None,
) -> QueryFile:
    """Append the drafts with new ids; sources and dropped drafts go into the metadata."""
    entries = list(existing.queries) if existing else []
    metadata: dict[str, Any] = dict(existing.metadata) if existing else {}
    used = {entry.query_id for entry in entries}
    sources: dict[str, list[int | str]] = dict(metadata.get("sources", {}))
    for draft in generated.queries:
        name = free_id(draft.category, used)
        used.add(name)
        sources[name] = list(draft.sources)
        entries.append(
            QueryEntry(
                query_id=name,
                query_text=draft.text,
                category=draft.category,
                as_of=request.as_of.isoformat() if request.as_of else None,
            )
        )
    metadata |= {
        "queries": len(entries),
        "maker": maker,
        "language": request.language,
        "seed": request.seed,
        **({"as_of": request.as_of.isoformat()} if request.as_of else {}),
        **(extra or {}),
        "sources": sources,
        "dropped": [
            *metadata.get("dropped", ()),
            *({"text": draft.text, "why": draft.why} for draft in generated.dropped),
        ],
    }
    return QueryFile(metadata=metadata, categories=count_categories(entries), queries=entries)


def free_id(category: str, used: Collection[str]) -> str:
    """The next unused id of a category."""
    stem = re.sub(r"[^\w-]+", "_", category.lower()).strip("_") or "query"
    number = 1
    while (name := f"{stem}_{number:03d}") in used:
        number += 1
    return name


KEYWORDS = "keywords"  # queries from their source's own words, so overlap is expected


def without_places() -> dict[str, Category]:
    """Categories for a corpus without places; the five defaults ask about places."""
    return {KEYWORDS: Category("the words that tell a document from the others", ("{phrase}",))}


def check_categories(categories: Mapping[str, str | Category]) -> dict[str, Category]:
    """A line-up's own categories; a string describes a category."""
    checked: dict[str, Category] = {}
    for name, value in (categories or DEFAULT_CATEGORIES).items():
        if not name.strip():
            raise InputError("a category has no name", place="categories")
        checked[name] = Category(value) if isinstance(value, str) else value
    return checked
