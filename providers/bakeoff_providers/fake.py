"""A provider based on hashes: no model, no network, and the same vectors on every machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np

from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.shared_options import SEED, WIDTH, Label

_WORD = re.compile(r"\w+")


class Fake(Provider):
    """No model, for trials: hashed words and character 3-grams, so that texts with shared words are close."""

    name: ClassVar[str] = "fake"
    default_model: ClassVar[str] = "hash"
    local: ClassVar[bool] = True
    baseline: ClassVar[bool] = True

    def __init__(
        self,
        *,
        model: Label = None,
        dimensions: Annotated[int, "length of the vectors", WIDTH] = 256,
        seed: Annotated[int, "another seed is another space", SEED] = 0,
    ) -> None:
        if dimensions < 1:
            raise InputError(f"dimensions is {dimensions}", place="fake", remedy="give 1 or more")
        self.seed, self.dimensions = seed, dimensions
        self.card = ModelCard(name=model or self.default_model, dimensions=dimensions, batch_items=1024)

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """Another seed is another space."""
        return {**super().identity(role), "revision": "1", "seed": self.seed}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:  # noqa: ARG002 - both roles share a space
        """Signed feature counts, scaled to unit length. Tokens are words."""
        vectors: Vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        tokens = 0
        for row, text in enumerate(texts):
            words = _WORD.findall(text.lower())
            tokens += len(words)
            vectors[row] = self._vector(text, words)
        return EmbeddingBatch(vectors, tokens=tokens)

    def _vector(self, text: str, words: Sequence[str]) -> Vectors:
        """Counts are integers, so rounding is the same everywhere and zeros are exact."""
        counts = np.zeros(self.dimensions, dtype=np.int64)
        for word in words:
            for position, sign in _places(word, self.seed, self.dimensions):
                counts[position] += sign
        if not counts.any():  # no word, or all features cancelled out
            position, sign = _place(f"text:{text}", self.seed, self.dimensions)
            counts[position] = sign
        vector: Vectors = (counts / np.sqrt(float(counts @ counts))).astype(np.float32)
        return vector


@lru_cache(maxsize=65_536)
def _places(word: str, seed: int, dimensions: int) -> tuple[tuple[int, int], ...]:
    return tuple(_place(feature, seed, dimensions) for feature in _features(word))


def _features(word: str) -> Iterator[str]:
    """The word and its 3-grams. Edges are marked, so that a prefix differs from an infix."""
    yield f"word:{word}"
    edged = f"<{word}>"
    for start in range(len(edged) - 2):
        yield f"gram:{edged[start : start + 3]}"


def _place(feature: str, seed: int, dimensions: int) -> tuple[int, int]:
    """Eight bytes of BLAKE2b: the lowest bit is the sign, the rest the position."""
    digest = hashlib.blake2b(f"{seed}:{feature}".encode(errors="surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "little")
    return (number >> 1) % dimensions, 1 if number & 1 else -1
