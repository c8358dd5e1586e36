"""A corpus in uniformly random order: what the expectations of measures are made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Grades, Values


class RandomOrder:
    """The judged grades of every query, best first, hidden in a corpus of so many documents.

    `depth` is how many of them come back, for a contender and here alike; all where it is None.
    """

    def __init__(self, ideal: Grades, documents: int, rel: int, depth: int | None = None) -> None:
        check_size(ideal, documents)
        self.ideal, self.documents, self._rel = ideal, documents, rel
        self.returned = min(depth or documents, documents)

    def cut(self, k: int | None) -> int:
        """How many places a cut-off allows, even where the corpus has fewer documents."""
        return k or self.documents

    def places(self, k: int | None) -> int:
        """How many places above the cut-off hold a document."""
        return min(self.cut(k), self.returned)

    def relevant(self, rel: int | None) -> Values:
        """How many documents are relevant, at this threshold or at the task's own."""
        relevant: Values = np.count_nonzero(self.ideal >= (rel or self._rel), axis=1).astype(np.float64)
        return relevant

    def hits(self, rel: int | None, k: int | None) -> Values:
        """How many relevant documents are above the cut-off on average."""
        return self.relevant(rel) * self.places(k) / self.documents

    def no_hit_within(self, relevant: float, places: int) -> Values:
        """The probability that the first 0, 1, … places hold none of the relevant documents."""
        drawn = np.arange(places)
        misses = np.maximum(self.documents - relevant - drawn, 0) / (self.documents - drawn)
        return np.concatenate((np.ones(1), np.cumprod(misses)))


def per_count(relevant: Values, value: Callable[[float], float]) -> Values:
    """Works a value out once for each number of relevant documents: there are few of them and many queries."""
    counts, back = np.unique(relevant, return_inverse=True)
    return np.array([value(float(count)) for count in counts], dtype=np.float64)[back]


def check_size(ideal: Grades, documents: int) -> None:
    """A corpus can't be smaller than what is judged of it."""
    if documents < max(ideal.shape[1], 1):
        raise InputError(f"{ideal.shape[1]} documents are judged for one query, but the corpus has {documents}")
