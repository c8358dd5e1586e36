"""Document vectors that come with a task: used unchanged; only other texts are embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from bakeoff_providers.base import EmbeddingBatch, Provider, Role, Vectors


@dataclass(frozen=True, slots=True)
class GivenVectors:
    """A file of vectors made elsewhere by one model, with the row of each text."""

    file: Path
    rows: Mapping[str, int]
    vectors: Vectors


class WithGivenVectors(Provider):
    """A provider that takes document vectors from a file, which is part of its identity."""

    def __init__(self, provider: Provider, given: GivenVectors) -> None:
        self.inner, self.given, self.card = provider, given, provider.card
        for name in ("name", "default_model", "local", "own_tokens"):
            setattr(self, name, getattr(provider, name))

    @cached_property
    def _print(self) -> str:
        with self.given.file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:32]

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """The file is part of a document's identity."""
        return self.inner.identity(role) | ({"given": self._print} if role is Role.DOCUMENT else {})

    def code(self) -> dict[str, str] | None:
        """The provider's own."""
        return self.inner.code()

    def count_tokens(self, text: str) -> int:
        """The provider's count."""
        return self.inner.count_tokens(text)

    def context_tokens(self) -> int | None:
        """The provider's context length."""
        return self.inner.context_tokens()

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """Vectors from the file if it has them, the rest from the provider."""
        rows = self.given.rows if role is Role.DOCUMENT else {}
        others = [text for text in texts if text not in rows]
        if len(others) == len(texts):
            return self.inner.embed(texts, role)
        asked = self.inner.embed(others, role) if others else EmbeddingBatch(self.given.vectors[:0], tokens=0)
        fresh = dict(zip(others, asked.vectors, strict=True))
        vectors = [self.given.vectors[rows[text]] if text in rows else fresh[text] for text in texts]
        return EmbeddingBatch(np.array(vectors, dtype=np.float32), asked.tokens, asked.truncated)

    def ready(self) -> None:
        """Checks the provider, which embeds the queries."""
        self.inner.ready()

    def close(self) -> None:
        """Closes the provider."""
        self.inner.close()
