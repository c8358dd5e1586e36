"""The telling phrase of each document: what any corpus has, whatever else is known of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log

from bakeoff.core.text_similarity import content_words
from bakeoff.tasks.formats.native import Article

LONGEST = 3  # words in a phrase
# Words that stop lists leave in and that tell nothing, or leave a phrase unfinished.
EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        """also another any anyone anything are can could does done each either else etc every given gives has have
        however instead isn its like made make makes may might more most must neither new none note one only otherwise
        per same should since some someone something such than that their them there these they this those thus two upon
        use used uses using via was were when where whether which while who whose will with within without would you""",
    )
)
ENOUGH = 20  # documents with a phrase that they repeat: with fewer, those that are said once are taken too
SIGNATURE = 10  # words at the most in a line with a name: a longer one is a sentence about something
_SIGNED = re.compile(r"\S@\w+\.\w|©|\b(copyright|\(c\))\W+(\(c\)|\d{4})", re.IGNORECASE)
_SIGNED_BELOW = re.compile(r"\W*(authors?|maintainers?|copyright|credits)( (and|&) \w+)?\W*", re.IGNORECASE)
_PIECES = re.compile(r"[^\w\s'-]+|\n\s*\n")
_WORD = re.compile(r"[^\W\d_]{3,}(?:-[^\W\d_]+)*")


def key_phrases(articles: Sequence[Article], language: str = "en") -> dict[int | str, str]:
    """The title where it has several telling words; otherwise words in a row that are frequent here, rare elsewhere.

    Where enough documents say something more than once, the others get none: no phrase is better than a chance one.
    """
    phrases = {article.page_id: _said(article.summary, language) for article in articles}
    titles = {article.page_id: list(_phrases(article.title, language)) for article in articles}
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


def _said(text: str, language: str) -> Counter[tuple[str, ...]]:
    """What a document says, and how often; who wrote it and under which terms is not what it is about."""
    signed, below = [], False
    for line in filter(str.strip, text.splitlines()):
        if (below or _SIGNED.search(line)) and len(line.split()) <= SIGNATURE:
            signed.append(line)
        below = bool(_SIGNED_BELOW.fullmatch(line))
    names = {word for phrase in _phrases("\n\n".join(signed), language) for word in phrase}
    return Counter(phrase for phrase in _phrases(text, language) if not names.issuperset(phrase))


def _phrases(text: str, language: str) -> Iterator[tuple[str, ...]]:
    """Every two or three words in a row that carry meaning and differ, within a clause."""
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
