"""Queries from templates, filled with facts about the documents; deterministic."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log

from bakeoff_providers.errors import InputError

from bakeoff.core.hashing import order_key
from bakeoff.extensions.testsets.document_files import content_type
from bakeoff.extensions.testsets.generate import GenerationRequest, Maker, QueryDraft
from bakeoff.extensions.testsets.text_similarity import content_words
from bakeoff.tasks.formats.native import Article

LONGEST = 3  # words in a phrase
# Words outside the stop lists that carry no meaning or leave a phrase incomplete.
EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        """also another any anyone anything are can could does done each either else etc every given gives has have
        however instead isn its like made make makes may might more most must neither new none note one only otherwise
        per same should since some someone something such than that their them there these they this those thus two upon
        use used uses using via was were when where whether which while who whose will with within without would you""",
    )
)
ENOUGH = 20  # documents with a repeated phrase; with fewer, phrases that occur once count too
SIGNATURE = 10  # most words in a signature; a longer line is a sentence
_SIGNED = re.compile(r"\S@\w+\.\w|©|\b(copyright|\(c\))\W+(\(c\)|\d{4})", re.IGNORECASE)
_SIGNED_BELOW = re.compile(r"\W*(authors?|maintainers?|copyright|credits)( (and|&) \w+)?\W*", re.IGNORECASE)
_PIECES = re.compile(r"[^\w\s'-]+|\n\s*\n")
_WORD = re.compile(r"[^\W\d_]{3,}(?:-[^\W\d_]+)*")


def key_phrases(articles: Sequence[Article], language: str = "en") -> dict[int | str, str]:
    """The title if it has several content words; otherwise a phrase frequent here and rare elsewhere.

    If enough documents repeat a phrase, the others get none, since a chance phrase is worse.
    """
    phrases = {article.document_id: _count_phrases(article.summary, language) for article in articles}
    titles = {article.document_id: list(_phrases(article.title, language)) for article in articles}
    repeating = sum(bool(titles[page]) or max(times.values(), default=0) > 1 for page, times in phrases.items())
    fewest = 2 if repeating >= ENOUGH else 1
    words = {page: Counter(word for phrase in times.elements() for word in phrase) for page, times in phrases.items()}
    holding = Counter(word for counts in words.values() for word in counts)
    telling: dict[int | str, str] = {}
    for page, times in phrases.items():
        scores = {
            phrase: number * sum(words[page][word] * log(1 + len(articles) / holding[word]) for word in phrase)
            for phrase, number in times.items()
            if number >= fewest
        }
        ranked = titles[page] and sorted(titles[page], key=lambda phrase: -len(phrase))
        ranked = ranked or sorted(scores, key=lambda phrase: (-scores[phrase] / len(phrase) ** 0.5, phrase))
        if ranked:
            telling[page] = " ".join(ranked[0])
    return telling


def _count_phrases(text: str, language: str) -> Counter[tuple[str, ...]]:
    """Count a document's phrases, except those in its signature and licence lines."""
    signed, below = [], False
    for line in filter(str.strip, text.splitlines()):
        if (below or _SIGNED.search(line)) and len(line.split()) <= SIGNATURE:
            signed.append(line)
        below = bool(_SIGNED_BELOW.fullmatch(line))
    names = {word for phrase in _phrases("\n\n".join(signed), language) for word in phrase}
    return Counter(phrase for phrase in _phrases(text, language) if not names.issuperset(phrase))


def _phrases(text: str, language: str) -> Iterator[tuple[str, ...]]:
    """Every sequence of two or three different content words within a clause."""
    for piece in _PIECES.split(text):
        run: list[str] = []
        for word in [*piece.lower().split(), ""]:
            if _WORD.fullmatch(word) and word not in EMPTY_WORDS and content_words(word, language):
                run.append(word)
                continue
            for length in range(2, LONGEST + 1):
                rows = (tuple(run[at : at + length]) for at in range(len(run) - length + 1))
                yield from (words for words in rows if len(set(words)) == length)
            run = []


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


class TemplateMaker(Maker):
    """Fills every template in every possible way, in a seeded random order."""

    def drafts(self, articles: Sequence[Article], category: str, request: GenerationRequest) -> Iterator[QueryDraft]:
        """One draft per filling; its sources are all documents that match it."""
        if request.as_of is not None:
            raise InputError("no template depends on a day", place="--as-of", remedy="use --maker llm")
        proposals: dict[str, list[int | str]] = {}
        for template in self._templates(category, request):
            wanted = _gaps(template)
            phrases = key_phrases(articles, request.language) if "phrase" in wanted else {}
            for article in articles:
                for filling in _fillings(article, wanted, phrases.get(article.document_id)):
                    text = template.format_map(filling)
                    pages = proposals.setdefault(text, [])
                    if article.document_id not in pages:
                        pages.append(article.document_id)
        for text in sorted(proposals, key=lambda text: order_key(request.seed, text)):
            yield QueryDraft(text, category, tuple(proposals[text]))

    def _templates(self, category: str, request: GenerationRequest) -> tuple[str, ...]:
        own = request.categories[category].templates
        if not own and request.language not in TEMPLATES:
            raise InputError(
                f"there are no templates in {request.language!r}", place="--language",
                remedy=f"available: {', '.join(TEMPLATES)}; write templates into the line-up, or use --maker llm",
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
                f"template {template!r} has an unknown placeholder {{{name}}}", place="categories",
                remedy=f"known gaps: {', '.join(GAPS)}",
            )  # fmt: skip
    return names


def _fillings(article: Article, wanted: Sequence[str], phrase: str | None = None) -> Iterator[dict[str, str]]:
    """The article's values for these gaps: one filling per topic, none if a gap has no value."""
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
