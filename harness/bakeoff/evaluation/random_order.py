"""A corpus in uniformly random order, for the expectations of measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Grades, Values


class RandomOrder:
    """The judged grades of every query, best first, within a corpus of this many documents.

    `depth` is how many documents are returned, as for a contender; all if None. `stale` is the share of the corpus that
    is out of date for each query, if known.
    """

    def __init__(
        self, ideal: Grades, documents: int, rel: int, depth: int | None = None, stale: Values | None = None
    ) -> None:
        check_size(ideal, documents)
        self.ideal, self.documents, self._rel, self.stale = ideal, documents, rel, stale
        self.returned = min(depth or documents, documents)

    def cut(self, k: int | None) -> int:
        """The places above a cut-off, even if the corpus has fewer documents."""
        return k or self.documents

    def places(self, k: int | None) -> int:
        """The number of ranks within the cut-off that hold a document."""
        return min(self.cut(k), self.returned)

    def relevant(self, rel: int | None) -> Values:
        """The number of relevant documents, at this threshold or the task's own."""
        relevant: Values = np.count_nonzero(self.ideal >= (rel or self._rel), axis=1).astype(np.float64)
        return relevant

    def hits(self, rel: int | None, k: int | None) -> Values:
        """The expected number of relevant documents above the cut-off."""
        return self.relevant(rel) * self.places(k) / self.documents

    def irrelevant(self, rel: int | None) -> Values:
        """The number of documents judged irrelevant."""
        irrelevant: Values = np.count_nonzero(self.ideal >= 0, axis=1) - self.relevant(rel)
        return irrelevant

    def no_hit_within(self, relevant: float, places: int) -> Values:
        """The probability that the first 0, 1, … places hold no relevant document."""
        drawn = np.arange(places)
        misses = np.maximum(self.documents - relevant - drawn, 0) / (self.documents - drawn)
        return np.concatenate((np.ones(1), np.cumprod(misses)))

    def draws(self, marked: int, places: int, without: int = 0) -> Iterator[Values]:
        """For 0, 1, … places, the distribution of the number of marked documents in them.

        `without` documents are excluded, such as the one whose place is considered.
        """
        left = self.documents - without
        chances = np.zeros(marked + 1)
        chances[0] = 1.0
        missing = marked - np.arange(marked + 1)
        for drawn in range(places):
            yield chances
            stay = chances * np.maximum(left - drawn - missing, 0)
            stay[1:] += chances[:-1] * missing[:-1]
            chances = stay / max(left - drawn, 1)

    def average_condensed(self, expected: Callable[[RandomOrder], Values]) -> Values:
        """The expectation over condensed lists: a random order of the corpus is a random order of the judged documents.

        If not all documents are returned, the number of judged ones among them is random too.
        """
        judged = np.count_nonzero(self.ideal >= 0, axis=1)
        values = np.zeros(len(judged))
        for count in np.unique(judged[judged > 0]).tolist():
            rows = judged == count
            *_, chances = self.draws(count, self.returned + 1)
            for returned in (np.flatnonzero(chances[1:]) + 1).tolist():
                order = RandomOrder(self.ideal[rows, :count], count, self._rel, returned)
                values[rows] += chances[returned] * expected(order)
        return values


def per_pair(first: Values, second: Values, value: Callable[[int, int], float]) -> Values:
    """Computes a value once per distinct pair of counts."""
    pairs, back = np.unique(np.stack([first, second], axis=1).astype(np.int64), axis=0, return_inverse=True)
    return np.array([value(*pair) for pair in pairs.tolist()], dtype=np.float64)[back]


def per_count(relevant: Values, value: Callable[[float], float]) -> Values:
    """Computes a value once per distinct number of relevant documents: there are few counts but many queries."""
    counts, back = np.unique(relevant, return_inverse=True)
    return np.array([value(float(count)) for count in counts], dtype=np.float64)[back]


def check_size(ideal: Grades, documents: int) -> None:
    """Refuses a corpus smaller than its judgments."""
    if documents < max(ideal.shape[1], 1):
        raise InputError(f"{ideal.shape[1]} documents are judged for one query, but the corpus has {documents}")
