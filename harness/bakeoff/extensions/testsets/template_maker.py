"""Queries without a model: texts with gaps, filled from what is known about the documents; the same everywhere."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence

from bakeoff_providers.errors import InputError

from bakeoff.core.sampling import order_key
from bakeoff.extensions.testsets.content_types import content_type
from bakeoff.extensions.testsets.drafts import Draft, GenerationRequest
from bakeoff.extensions.testsets.key_phrases import key_phrases
from bakeoff.tasks.formats.native import Article

GAPS = ("title", "city", "county", "state", "kind", "topic", "phrase")
TEMPLATES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "en": {
        "geographic": (
            "what lies close to {city}",
            "a map of everything around {county}",
            "which {kind} could I reach on a day trip across {state}",
            "find me somewhere in {state} known for {topic}",
        ),
        "landmark": (
            "what should we see while staying near {city}",
            "a weekend outing for someone keen on {topic}",
            "{kind} worth a detour in {county}",
            "where can my family enjoy {topic}",
        ),
        "historical": (
            "how did {city} come to be",
            "who came before us in {county}",
            "what happened long ago that still shapes {topic}",
            "the story behind {topic}",
        ),
        "administrative": (
            "who is in charge around {city}",
            "which authority looks after {topic}",
            "when was {county} put on the map officially",
            "how is a {kind} in {state} run",
        ),
        "semantic": (
            "I care about {topic}, where do I begin",
            "explain {topic} to a newcomer",
            "anything that reminds you of {topic}",
            "an example that shows what {topic} means to people",
        ),
    },
    "de": {
        "geographic": (
            "was liegt in der Nähe von {city}",
            "eine Übersicht über alles rund um {county}",
            "wohin in {state} für einen Tagesausflug",
            "ein Ort in {state}, der für {topic} bekannt ist",
        ),
        "landmark": (
            "was sollte man sehen, wenn man bei {city} übernachtet",
            "ein Wochenende für Leute, die {topic} mögen",
            "was in {county} einen Umweg lohnt",
        ),
        "historical": (
            "wie ist {city} entstanden",
            "wer lebte früher in {county}",
            "die Geschichte hinter {topic}",
        ),
        "administrative": (
            "wer hat rund um {city} das Sagen",
            "welche Behörde kümmert sich um {topic}",
            "seit wann gibt es {county} offiziell",
        ),
        "semantic": (
            "mich interessiert {topic}, wo fange ich an",
            "erkläre einem Neuling {topic}",
            "ein Beispiel dafür, was {topic} den Leuten bedeutet",
        ),
    },
}


class TemplateMaker:
    """Every template with every filling, in an order drawn by the seed."""

    def drafts(self, articles: Sequence[Article], category: str, request: GenerationRequest) -> Iterator[Draft]:
        """One draft per filling; its sources are all documents that the filling is true of."""
        if request.as_of is not None:
            raise InputError("no template depends on a day", place="--as-of", remedy="use --maker llm")
        proposals: dict[str, list[int | str]] = {}
        for template in self._templates(category, request):
            wanted = _gaps(template)
            phrases = key_phrases(articles, request.language) if "phrase" in wanted else {}
            for article in articles:
                for filling in _fillings(article, wanted, phrases.get(article.page_id)):
                    text = template.format_map(filling)
                    pages = proposals.setdefault(text, [])
                    if article.page_id not in pages:
                        pages.append(article.page_id)
        for text in sorted(proposals, key=lambda text: order_key(request.seed, text)):
            yield Draft(text, category, tuple(proposals[text]))

    def _templates(self, category: str, request: GenerationRequest) -> tuple[str, ...]:
        own = request.categories[category].templates
        if not own and request.language not in TEMPLATES:
            raise InputError(
                f"there are no templates in {request.language!r}", place="--language",
                remedy=f"there are: {', '.join(TEMPLATES)}; write templates into the line-up, or use --maker llm",
            )  # fmt: skip
        templates = own or TEMPLATES[request.language].get(category, ())
        if not templates:
            raise InputError(
                f"category {category!r} has no templates", place="--maker",
                remedy=f"write them into the line-up as categories.{category}.templates, or use --maker llm",
            )  # fmt: skip
        return templates


def _gaps(template: str) -> tuple[str, ...]:
    try:
        names = tuple(name for _, name, _, _ in string.Formatter().parse(template) if name is not None)
    except ValueError as error:
        raise InputError(f"template {template!r}: {error}", place="categories") from None
    for name in names:
        if name not in GAPS:
            raise InputError(
                f"template {template!r} has an unknown gap {{{name}}}", place="categories",
                remedy=f"known gaps: {', '.join(GAPS)}",
            )  # fmt: skip
    return names


def _fillings(article: Article, wanted: Sequence[str], phrase: str | None = None) -> Iterator[dict[str, str]]:
    """The values that an article has for these gaps: one filling for each of its topics, none if a gap stays open."""
    kind = content_type(article)
    known = {
        "title": article.title,
        "city": article.city,
        "county": article.county,
        "state": article.state,
        "kind": kind if kind != "unknown" else None,
        "phrase": phrase,
    }
    filling = {name: value for name, value in known.items() if name in wanted and value}
    topics = [topic for topic in article.categories if topic != kind] or [name for name in (known["kind"],) if name]
    if "topic" not in wanted:
        if len(filling) == len(set(wanted)):
            yield filling
        return
    if len(filling) == len(set(wanted)) - 1:
        for topic in topics:
            yield {**filling, "topic": topic}
