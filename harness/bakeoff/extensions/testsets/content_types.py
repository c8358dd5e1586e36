"""The content type of an article: one of its categories, or inferred from its title."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from bakeoff_providers.errors import InputError

from bakeoff.tasks.formats.native import Article

ContentType = Literal[
    "event", "historical site", "administrative region", "neighborhood", "natural feature", "landmark", "city"
]
# The first pattern that matches a title or category determines the content type of a database row.
CONTENT_TYPES: Mapping[ContentType, str] = {
    "event": r"\b(oil spill|earthquake|wildfire|disaster|massacre|battle|election|in (18|19|20)\d\d)\b",
    "historical site": r"histor|national register|ghost town|former (populated|settlement)|mission",
    "administrative region": r"^(?!.* in ).* county, (utah|california)$|^(utah|california) counties|"
    r"district$|court|mayors|government|legislat",
    "neighborhood": r"neighbou?rhood|, san francisco$|, san diego$",
    "natural feature": r"mountain|canyon|peninsula|river|lake|valley|landform",
    "landmark": r"park|bridge|librar|school|museum|building|road|parkway",
    "city": r"cit(y|ies)|town|census-designated|communit|populated place|, (utah|california)$",
}


def content_type(article: Article) -> str:
    """The article's content type, or its first category in other corpora."""
    types = [category for category in article.categories if category in CONTENT_TYPES]
    if len(types) > 1:
        raise InputError(
            f"page_id {article.document_id}: only one category may be a content type, found {len(types)}",
            remedy=f"content types: {', '.join(sorted(CONTENT_TYPES))}",
        )
    return next(iter([*types, *article.categories]), "unknown")


def with_content_type(title: str, categories: Sequence[str]) -> list[str]:
    """Put the inferred content type before the categories, exactly once."""
    return [infer_content_type(title, categories), *(tag for tag in categories if tag not in CONTENT_TYPES)]


def infer_content_type(title: str, categories: Sequence[str]) -> ContentType:
    """Infer the content type from the title, then from the categories; default: city."""
    for text in (title, *categories):
        for kind, pattern in CONTENT_TYPES.items():
            if re.search(pattern, text, re.IGNORECASE):
                return kind
    return "city"
