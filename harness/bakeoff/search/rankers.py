"""Lexical rankers, the baseline that every embedding must beat."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Annotated, Any, ClassVar, NamedTuple, overload

import numpy as np
from bakeoff_providers.errors import InputError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry, nearest
from msgspec import Meta
from numpy.typing import NDArray

from bakeoff.core.progress import steps
from bakeoff.embedding.corpus_chunks import in_blocks
from bakeoff.search.hits import Hits


class Ranker(Plugin, ABC):
    """Ranks texts by their words, over the same chunks as embedding rows."""

    name: ClassVar[str]

    @abstractmethod
    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Indexes the texts."""

    @abstractmethod
    def search(self, text: str, k: int) -> Hits:
        """The k best matches. The harness appends what does not match."""


RANKERS: Registry[Ranker] = Registry("ranker", "bakeoff.rankers", {"bm25": "bakeoff.search.rankers:BM25"})


_BLOCK = 16_384  # texts in memory at once


class BM25(Ranker):
    """Lucene's variant, set as in bm25s's benchmark on BEIR: k1 1.5, b 0.75, its stop words, Snowball's stemmer."""

    name = "bm25"
    modules = ("bm25s", "Stemmer")
    distributions = ("bm25s",)

    def __init__(
        self,
        *,
        k1: Annotated[float, "term frequency saturation, 0 or more"] = 1.5,
        b: Annotated[float, "length normalisation, 0 to 1", Meta(ge=0, le=1)] = 0.75,
        language: Annotated[str, "language of stemmer and stop words, or none"] = "english",
    ) -> None:
        if not (isinstance(k1, (int, float)) and 0 <= k1 < float("inf")):
            raise InputError(f"k1 is {k1!r}", place="k1", remedy="give 0 or more; 1.2 to 2 is customary")
        if not (isinstance(b, (int, float)) and 0 <= b <= 1):
            raise InputError(f"b is {b!r}", place="b", remedy="give 0 to 1; 0.75 is customary")
        import Stemmer

        self._bm25s = bm25s = _without_bars()
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
        """Build the whole index at once, as weights depend on all texts. Only word ids are kept."""
        self._ids = list(ids)
        self._index.index(self._corpus(texts), show_progress=False)

    def search(self, text: str, k: int) -> Hits:
        """Drops scores of 0, with which bm25s pads short lists."""
        places, scores = self._index.retrieve(
            self._words([text]), k=min(k, len(self._ids)), show_progress=False, n_threads=0
        )
        kept = scores[0] > 0
        return Hits([self._ids[place] for place in places[0][kept]], scores[0][kept].tolist())

    def _corpus(self, texts: Sequence[str]) -> _Corpus:
        vocab: dict[str, int] = {}
        numbers, lengths = [np.empty(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
        with steps("bm25: texts", len(texts)) as advance:
            for block in in_blocks(texts, _BLOCK):
                words, names = self._tokenize(block, return_ids=True)
                ours = np.empty(len(names), dtype=np.int32)  # word id in the block → in the corpus
                for word, number in names.items():
                    ours[number] = vocab.setdefault(word, len(vocab))
                lengths.append(np.fromiter(map(len, words), dtype=np.int64, count=len(words)))
                flat = np.fromiter(chain.from_iterable(words), dtype=np.int32, count=int(lengths[-1].sum()))
                numbers.append(ours[flat])
                advance(len(block))
        return _Corpus(_WordNumbers(np.concatenate(numbers), np.cumsum(np.concatenate(lengths))), vocab)

    def _words(self, texts: list[str]) -> list[list[str]]:
        words: list[list[str]] = self._tokenize(texts, return_ids=False)
        return words

    def _tokenize(self, texts: list[str], *, return_ids: bool) -> Any:
        return self._bm25s.tokenize(
            texts, stopwords=self._stopwords, stemmer=self._stemmer, return_ids=return_ids, show_progress=False
        )


class _WordNumbers(Sequence[list[int]]):
    """The word ids of all texts in one array."""

    def __init__(self, numbers: NDArray[np.int32], bounds: NDArray[np.int64]) -> None:
        self._numbers, self._bounds = numbers, bounds

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, place: int) -> list[int]: ...

    @overload
    def __getitem__(self, place: slice) -> list[list[int]]: ...

    def __getitem__(self, place: int | slice) -> list[int] | list[list[int]]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        number = range(len(self))[place]
        words: list[int] = self._numbers[self._bounds[number] : self._bounds[number + 1]].tolist()
        return words

    def __iter__(self) -> Iterator[list[int]]:
        for start, stop in pairwise(self._bounds.tolist()):
            yield self._numbers[start:stop].tolist()


class _Corpus(NamedTuple):
    """Word ids in the form that bm25s takes."""

    ids: _WordNumbers
    vocab: dict[str, int]


def _without_bars() -> Any:
    """Import bm25s without tqdm: no bars are shown, and importing it is slow."""
    before = os.environ.get("DISABLE_TQDM")
    os.environ["DISABLE_TQDM"] = "1"
    try:
        import bm25s
    finally:
        if before is None:
            del os.environ["DISABLE_TQDM"]
        else:
            os.environ["DISABLE_TQDM"] = before
    return bm25s
