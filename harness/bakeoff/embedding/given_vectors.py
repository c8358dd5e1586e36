"""Document vectors that came with a task: they are used as they are, and only the other texts are embedded."""

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
    """A file of vectors that one model made elsewhere: the row of each text that it has."""

    file: Path
    rows: Mapping[str, int]
    vectors: Vectors


class WithGivenVectors(Provider):
    """A provider that takes the documents of a file from there; the file is part of its identity."""

    def __init__(self, provider: Provider, given: GivenVectors) -> None:
        self.inner, self.given, self.card = provider, given, provider.card
        for name in ("name", "default_model", "local", "own_tokens"):
            setattr(self, name, getattr(provider, name))

    @cached_property
    def _print(self) -> str:
        with self.given.file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:32]

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """Documents depend on the file, too."""
        return self.inner.identity(role) | ({"given": self._print} if role is Role.DOCUMENT else {})

    def code(self) -> dict[str, str] | None:
        """That of the provider itself."""
        return self.inner.code()

    def count_tokens(self, text: str) -> int:
        """As the provider counts."""
        return self.inner.count_tokens(text)

    def context_tokens(self) -> int | None:
        """As the provider reads."""
        return self.inner.context_tokens()

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """From the file what it has, from the provider the rest."""
        rows = self.given.rows if role is Role.DOCUMENT else {}
        others = [text for text in texts if text not in rows]
        if len(others) == len(texts):
            return self.inner.embed(texts, role)
        asked = self.inner.embed(others, role) if others else EmbeddingBatch(self.given.vectors[:0], tokens=0)
        fresh = dict(zip(others, asked.vectors, strict=True))
        vectors = [self.given.vectors[rows[text]] if text in rows else fresh[text] for text in texts]
        return EmbeddingBatch(np.array(vectors, dtype=np.float32), asked.tokens, asked.truncated)

    def ready(self) -> None:
        """The provider embeds the queries."""
        self.inner.ready()

    def close(self) -> None:
        """Lets go of what the provider holds."""
        self.inner.close()
