"""Queries from a chat model, which sees a few documents and avoids their wording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from bakeoff.core.hashing import order_key
from bakeoff.extensions.testsets.ask import Asker, Question, Unusable, read_object
from bakeoff.extensions.testsets.generate import GenerationRequest, Maker, QueryDraft
from bakeoff.tasks.formats.native import Article

SHOWN = 3  # documents per prompt
ROUNDS = 4  # at most this many times the prompts needed if no query is dropped
LONGEST = 1500  # characters of a document in a prompt


class _DraftQuery(msgspec.Struct):
    text: str
    documents: list[int]


class _DraftAnswer(msgspec.Struct):
    queries: list[_DraftQuery]


SCHEMA = {
    "type": "object",
    "properties": {
        "queries": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "documents": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["text", "documents"],
            },
        }
    },
    "required": ["queries"],
}


class ChatMaker(Maker):
    """Asks for queries about other documents in each round, until enough pass the filter."""

    def __init__(self, *, asker: Asker) -> None:
        self._asker = asker

    def drafts(self, articles: Sequence[Article], category: str, request: GenerationRequest) -> Iterator[QueryDraft]:
        """Send one prompt at a time, so that none is paid for in vain."""
        for number, question in enumerate(self.questions(articles, category, request)):
            shown = _choose(articles, category, request.seed, number)
            for query in self._asker.ask(question, partial(_read, len(shown))).queries:
                pages = dict.fromkeys(shown[place - 1].document_id for place in query.documents)
                yield QueryDraft(" ".join(query.text.split()), category, tuple(pages))

    def questions(self, articles: Sequence[Article], category: str, request: GenerationRequest) -> Iterator[Question]:
        """The prompts for one category, in the order they are sent."""
        for number in range(ROUNDS * -(-request.n // SHOWN)):
            shown = _choose(articles, category, request.seed, number)
            yield Question(_prompt(shown, category, request), SCHEMA, request.seed)


def _choose(articles: Sequence[Article], category: str, seed: int, number: int) -> list[Article]:
    """Each round continues where the last one ended, in an order drawn for the category."""
    ordered = sorted(articles, key=lambda article: order_key(seed, category, article.document_id))
    first = number * SHOWN
    places = dict.fromkeys((first + step) % len(ordered) for step in range(SHOWN))
    return [ordered[place] for place in places]


def _read(shown: int, text: str) -> _DraftAnswer:
    answer = read_object(text, _DraftAnswer)
    if not answer.queries:
        raise Unusable("it holds no query")
    for query in answer.queries:
        if not query.text.strip():
            raise Unusable("a query in it is empty")
        if not query.documents or not all(1 <= number <= shown for number in query.documents):
            raise Unusable(f"query {query.text!r} names documents that were not shown; their numbers are 1 to {shown}")
    return answer


def _prompt(shown: Sequence[Article], category: str, request: GenerationRequest) -> str:
    about = request.categories[category].about
    documents = "\n\n".join(
        f"Document {number}: {article.title}\n{article.summary[:LONGEST]}"
        for number, article in enumerate(shown, start=1)
    )
    lines = [
        "You write search queries to test a search engine. Below are documents that it should find.",
        f"Write {SHOWN} queries of the category “{category}”" + (f" ({about})." if about else "."),
        "Each must be answered by one or more of these documents, and sound like a person who has not read them.",
        "Do not repeat their wording: no titles, no names, no telling words from the text.",
        "Use other words for the same thing.",
        "Make the queries differ from each other, each at most 15 words.",
    ]
    if request.language != "en":
        lines.append(f"Write the queries in the language with the code “{request.language}”.")
    if request.as_of is not None:
        lines.append(
            f"The person asks on {request.as_of.isoformat()}: each query must depend on that date (what is so by then, "
            "since when, how long ago), and must be answerable by what the documents say up to it."
        )
    lines.append(
        'Answer with one JSON object: {"queries": [{"text": "the query", "documents": [numbers of the documents '
        "that answer it]}]}."
    )
    return "\n".join(lines) + f"\n\n{documents}"
