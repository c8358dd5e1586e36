"""TF-IDF as vectors: the baseline that learns nothing but how rare each word of this corpus is."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import EmbeddingFailed, InputError
from bakeoff_providers.shared_options import Label

_WORD = re.compile(r"\w+")
# Two extra dimensions for texts that share no word with the corpus.
_UNKNOWN = {Role.QUERY: 0, Role.DOCUMENT: 1}


class Tfidf(Provider):
    """TF-IDF, fitted to the task's documents: only words, any language, no model.

    Equal to scikit-learn's TfidfVectorizer with sublinear counts, without its import time of a second.

    Dense, of length 1, fitted to the documents of the task. No stop words: the idf already downweights them, and a list
    would tie the baseline to one language. One-letter words are kept, since they may be all that separates vitamin C
    from vitamin D.
    """

    name: ClassVar[str] = "tfidf"
    default_model: ClassVar[str] = "tfidf"
    local: ClassVar[bool] = True

    def __init__(
        self,
        *,
        model: Label = None,
        max_features: Annotated[int, "vocabulary size; the most frequent words are kept"] = 8192,
    ) -> None:
        if max_features < 1:
            raise InputError(f"max_features is {max_features}", place="tfidf", remedy="give 1 or more")
        self.max_features = max_features
        self.card = ModelCard(name=model or self.default_model, batch_items=1024)
        self._places: dict[str, int] = {}
        self._idf: Vectors = np.zeros(0, dtype=np.float32)
        self._fingerprint: str | None = None

    def fit(self, documents: Sequence[str]) -> None:
        """Learns the vocabulary and the idf. If there are too many words, the most frequent stay."""
        counts: Counter[str] = Counter()
        documents_with: Counter[str] = Counter()
        for document in documents:
            words = Counter(_words(document))
            counts.update(words)
            documents_with.update(words.keys())
        if not counts:
            raise InputError(
                f"{len(documents)} documents hold no word to learn from",
                place="tfidf",
                remedy="check that the corpus has text",
            )
        kept = sorted(counts, key=lambda word: (-counts[word], word))[: self.max_features]
        terms = sorted(kept)
        known = np.array([1 + documents_with[term] for term in terms], dtype=np.float32)
        self._idf = np.log(np.float32(1 + len(documents)) / known) + np.float32(1)
        self._places = {term: place for place, term in enumerate(terms)}
        digest = hashlib.sha256("\n".join(terms).encode(errors="surrogatepass"))
        digest.update(self._idf.astype("<f4").tobytes())
        self._fingerprint = digest.hexdigest()[:16]
        self.card = msgspec.structs.replace(self.card, dimensions=len(terms) + len(_UNKNOWN))

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """The fitted vocabulary is the model: another corpus gives other vectors."""
        if self._fingerprint is None:
            raise _fit_error()
        return {**super().identity(role), "revision": f"1-{self._fingerprint}"}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """A text without known words gets its role's extra dimension, orthogonal to all texts of the other role."""
        if self._fingerprint is None:
            raise _fit_error()
        known = len(self._places)
        vectors: Vectors = np.zeros((len(texts), known + len(_UNKNOWN)), dtype=np.float32)
        for row, text in enumerate(texts):
            words = Counter(place for word in _words(text) if (place := self._places.get(word)) is not None)
            if not words:
                vectors[row, known + _UNKNOWN[role]] = 1.0
                continue
            places = np.fromiter(words.keys(), np.intp, len(words))
            counts = np.fromiter(words.values(), np.float32, len(words))
            weights = (np.log(counts) + np.float32(1)) * self._idf[places]
            vectors[row, places] = weights / np.linalg.norm(weights.astype(np.float64))
        return EmbeddingBatch(vectors)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _fit_error() -> EmbeddingFailed:
    return EmbeddingFailed("tfidf has seen no documents yet: call fit() with the corpus before embed()")
