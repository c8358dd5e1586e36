"""Words, hashed into buckets."""

import zlib
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from bakeoff.plugins import EmbeddingBatch, ModelCard, Provider, Role, Transport


class Words(Provider):
    """Counts of hashed words: no model and no network."""

    name, default_model, local = "acme_words", "v1", True

    def __init__(
        self,
        *,
        model: Annotated[str | None, "what the row is called"] = None,
        dimensions: Annotated[int, "length of the vectors"] = 64,
        salt: Annotated[int, "another salt is another space"] = 1,
        timeout: Annotated[float, "seconds that one call may take", Transport] = 10.0,
    ) -> None:
        self.card = ModelCard(name=model or self.default_model, dimensions=dimensions)
        self.dimensions, self.salt, self.timeout = dimensions, salt, timeout

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """One call, for texts of one role."""
        vectors = np.full((len(texts), self.dimensions), 1e-6, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(f"{self.salt}{word}".encode()) % self.dimensions] += 1
        return EmbeddingBatch(vectors)
