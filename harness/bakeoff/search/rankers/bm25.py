"""BM25 by bm25s: words alone, without stop words, cut to their stems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.search.hits import Hits
from bakeoff.search.rankers.base import Ranker


class BM25(Ranker):
    """Lucene's variant, set as in bm25s's benchmark on BEIR: k1 1.5, b 0.75, its stop words, Snowball's stemmer."""

    name = "bm25"
    modules = ("bm25s", "Stemmer")
    distributions = ("bm25s",)

    def __init__(
        self,
        *,
        k1: Annotated[float, "how much a word that occurs again adds, from 0 up"] = 1.5,
        b: Annotated[float, "how much long documents are held back, 0 to 1"] = 0.75,
        language: Annotated[str, "whose stemmer and stop words are used, or none"] = "english",
    ) -> None:
        if not (isinstance(k1, (int, float)) and 0 <= k1 < float("inf")):
            raise InputError(f"k1 is {k1!r}", place="k1", remedy="give 0 or more; 1.2 to 2 is customary")
        if not (isinstance(b, (int, float)) and 0 <= b <= 1):
            raise InputError(f"b is {b!r}", place="b", remedy="give 0 to 1; 0.75 is customary")
        import bm25s
        import Stemmer

        self._bm25s = bm25s
        self._index = bm25s.BM25(method="lucene", k1=k1, b=b)
        self._ids: list[str] = []
        self._stemmer, self._stopwords = None, None
        if language == "none":
            return
        if language not in Stemmer.algorithms():
            raise InputError(
                f"there is no stemmer for {language!r}",
                place="language",
                remedy=nearest(language, [*Stemmer.algorithms(), "none"]),
            )
        self._stemmer = Stemmer.Stemmer(language)
        try:  # bm25s has stop words for fewer languages than there are stemmers
            bm25s.tokenize([""], stopwords=language, show_progress=False)
            self._stopwords = language
        except ValueError:
            pass

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Builds the whole index at once: BM25's weights depend on all texts."""
        self._ids = list(ids)
        self._index.index(self._tokens(texts), show_progress=False)

    def search(self, text: str, k: int) -> Hits:
        """Drops scores of 0: bm25s fills up with arbitrary ids when too few share a word with the query."""
        places, scores = self._index.retrieve(
            self._tokens([text]), k=min(k, len(self._ids)), show_progress=False, n_threads=0
        )
        kept = scores[0] > 0
        return Hits([self._ids[place] for place in places[0][kept]], scores[0][kept].tolist())

    def _tokens(self, texts: Sequence[str]) -> list[list[str]]:
        tokens: list[list[str]] = self._bm25s.tokenize(
            list(texts), stopwords=self._stopwords, stemmer=self._stemmer, return_ids=False, show_progress=False
        )
        return tokens
