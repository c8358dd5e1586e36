"""TF-IDF as vectors: the baseline that learns nothing but how rare each word of this corpus is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import EmbeddingFailed, InputError
from bakeoff_providers.shared_options import Label

# The two dimensions behind the vocabulary: where a text goes that shares no word with the corpus.
_UNKNOWN = {Role.QUERY: 0, Role.DOCUMENT: 1}


class Tfidf(Provider):
    """scikit-learn's TfidfVectorizer, dense and of length 1, fitted to the documents of the task.

    No stop words: the idf already makes them light, and a list would tie the baseline to one language.
    Words of one letter are kept, since they may be all that tells vitamin C from vitamin D.
    """

    name: ClassVar[str] = "tfidf"
    default_model: ClassVar[str] = "tfidf"
    local: ClassVar[bool] = True
    modules: ClassVar[tuple[str, ...]] = ("sklearn",)
    distributions = ("scikit-learn",)

    def __init__(
        self,
        *,
        model: Label = None,
        max_features: Annotated[int, "most words of the vocabulary: the most frequent ones are kept"] = 8192,
    ) -> None:
        if max_features < 1:
            raise InputError(f"max_features is {max_features}", place="tfidf", remedy="give 1 or more")
        self.max_features = max_features
        self.card = ModelCard(name=model or self.default_model, batch_items=1024)
        self._vectorizer: Any = None
        self._fingerprint: str | None = None

    def fit(self, documents: Sequence[str]) -> None:
        """Learns the vocabulary and the idf; the most frequent words stay where there are too many."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(
            sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", max_features=self.max_features, dtype=np.float32
        )
        try:
            vectorizer.fit(documents)
        except ValueError as error:
            raise InputError(
                f"{len(documents)} documents hold no word to learn from",
                place="tfidf",
                remedy="check that the corpus has text",
            ) from error
        terms = vectorizer.get_feature_names_out()
        digest = hashlib.sha256("\n".join(terms).encode(errors="surrogatepass"))
        digest.update(np.asarray(vectorizer.idf_, dtype="<f4").tobytes())
        self._vectorizer, self._fingerprint = vectorizer, digest.hexdigest()[:16]
        self.card = msgspec.structs.replace(self.card, dimensions=len(terms) + len(_UNKNOWN))

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """What was learnt is the model: another corpus makes other vectors of the same text."""
        if self._fingerprint is None:
            raise _unfitted()
        return {**super().identity(role), "revision": f"1-{self._fingerprint}"}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """A text with no known word gets a dimension of its own role: at 0 from every text of the other role."""
        if self._vectorizer is None:
            raise _unfitted()
        words = len(self._vectorizer.vocabulary_)
        vectors: Vectors = np.zeros((len(texts), words + len(_UNKNOWN)), dtype=np.float32)
        if texts:
            sparse = self._vectorizer.transform(texts)
            vectors[:, :words] = sparse.toarray()
            vectors[np.diff(sparse.indptr) == 0, words + _UNKNOWN[role]] = 1.0
        return EmbeddingBatch(vectors)


def _unfitted() -> EmbeddingFailed:
    return EmbeddingFailed("tfidf has seen no documents yet: call fit() with the corpus before embed()")
