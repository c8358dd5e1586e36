"""WordLlama: one static vector a token, averaged. Its weights come inside the package, so it needs no network."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.shared_options import OneModel


class WordLlama(Provider):
    """WordLlama l2_supercat: English, 256 dimensions, static word vectors: fast and small, no word order.

    A text without a token (empty) has nothing to average: its vector is zero, which the harness refuses by name.
    """

    name: ClassVar[str] = "wordllama"
    default_model: ClassVar[str] = "l2_supercat"
    local: ClassVar[bool] = True
    own_tokens: ClassVar[bool] = True
    extra: ClassVar[str | None] = "wordllama"
    modules: ClassVar[tuple[str, ...]] = ("wordllama",)
    distributions = ("wordllama",)

    def __init__(self, *, model: OneModel = None) -> None:
        if model not in (None, self.default_model):
            raise InputError(f"unknown model {model!r}", place="wordllama", remedy=f"known: {self.default_model}")
        self.card = ModelCard(name=self.default_model, dimensions=256, batch_items=1024)

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """The weights are part of the package, so its version is the revision."""
        return {**super().identity(role), "revision": version("wordllama")}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:  # noqa: ARG002 - one space for both roles
        """Pools text by text rather than in padded batches, so that vectors don't depend on the batch."""
        table, tokenizer = self._model
        vectors: Vectors = np.zeros((len(texts), table.shape[1]), dtype=np.float32)
        tokens = 0
        for row, encoding in enumerate(tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            if ids := encoding.ids:
                tokens += len(ids)
                vectors[row] = table[ids].mean(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return EmbeddingBatch(vectors, tokens=tokens)

    def count_tokens(self, text: str) -> int:
        """The model's own count."""
        return len(self._model[1].encode(text, add_special_tokens=False).ids)

    @cached_property
    def _model(self) -> tuple[Vectors, Any]:
        """The token table and the tokenizer. The package's plain load() would look for them on the hub."""
        with _logging_untouched():
            import wordllama
        root = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=root, disable_download=True)
        model.tokenizer.no_padding()
        return model.embedding, model.tokenizer


@contextmanager
def _logging_untouched() -> Iterator[None]:
    """Restores the root logger, since importing wordllama configures it."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
