"""What every provider promises: text in, checked vectors out, and a name for everything that shaped them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import ClassVar, Protocol, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from bakeoff_providers.adapter import Adapter
from bakeoff_providers.errors import EmbeddingFailed
from bakeoff_providers.needs import Plugin

Vectors = npt.NDArray[np.float32]
TEXT = "{text}"  # in a prompt: where the text goes


class Role(StrEnum):
    """Many models embed a question otherwise than the text that answers it."""

    DOCUMENT = "document"
    QUERY = "query"


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """A list price is only worth something with its date and source."""

    usd_per_million_tokens: float
    seen: str
    source: str


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one model. Data beside the adapter; a line-up may override any of it."""

    name: str
    dimensions: int | None = None
    context: int | None = None
    document_prompt: str = ""
    query_prompt: str = ""
    prompts: dict[str, str] = {}  # further prompts of the model, by the names that its authors gave them
    output_dimensions: tuple[int, ...] = ()
    batch_items: int = 64
    batch_tokens: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    price: Price | None = None

    def prompt(self, role: Role) -> str:
        """What is put around every input of this role: before it, or where the prompt says `{text}`."""
        return self.query_prompt if role is Role.QUERY else self.document_prompt

    def around(self, role: Role) -> tuple[str, str]:
        """What goes before a text of this role, and what after it."""
        before, _, after = self.prompt(role).partition(TEXT)
        return before, after

    def apply_prompt(self, text: str, role: Role) -> str:
        """The text as the model gets it."""
        before, after = self.around(role)
        return f"{before}{text}{after}"


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """The answer to one call: a row for each text, and what the call used."""

    vectors: Vectors
    tokens: int | None = None
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """The answer to one call for token vectors: for each text as many rows as it has tokens."""

    vectors: Sequence[Vectors]
    tokens: int
    truncated: int = 0


class Provider(Plugin, Adapter, ABC):
    """Text → vectors. One subclass per file; heavy libraries are imported inside its methods.

    `local` says that calls are free and stay on this machine; `baseline`, that it is no model and is never advised;
    `by_id`, that it wants ids in place of texts; `paths` names the options that are files, which a line-up gives
    relative to itself; `own_tokens`, that `count_tokens` asks the model's own tokenizer.
    """

    name: ClassVar[str]
    default_model: ClassVar[str]
    local: ClassVar[bool] = False
    baseline: ClassVar[bool] = False
    by_id: ClassVar[bool] = False
    paths: ClassVar[tuple[str, ...]] = ()
    own_tokens: ClassVar[bool] = False

    card: ModelCard

    @property
    def model(self) -> str:
        """The model's name, as it is shown and as it enters the cache key."""
        return self.card.name

    @property
    def free(self) -> bool:
        """Whether a call costs nothing: it runs here, or its price is 0. An unknown price counts as paid."""
        return self.local or (self.card.price is not None and self.card.price.usd_per_million_tokens == 0)

    @property
    def needs_network(self) -> bool:
        """Whether it can't be asked offline."""
        return not self.local

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """All that changes a vector besides its text: the cache key is made of this."""
        return {
            "provider": self.name,
            "model": self.card.name,
            "dimensions": self.card.dimensions,
            "role": role.value,
            "prompt": self.card.prompt(role),
        }

    def count_tokens(self, text: str) -> int:
        """Tokens of a text with its prompt, for cutting; three characters each where there is no tokenizer to ask."""
        return ceil(len(self.card.apply_prompt(text, Role.DOCUMENT)) / 3)

    def context_tokens(self) -> int | None:
        """How many tokens of a text the model reads; None where there is no limit, or none that is known yet."""
        return self.card.context

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """One call: as many vectors as texts, in their order. Raises CallFailed or EmbeddingFailed."""

    def ready(self) -> None:
        """Raises Unavailable with the remedy when a server or a model that should be there is not."""

    def close(self) -> None:
        """Lets go of sessions and files."""


@runtime_checkable
class Fitted(Protocol):
    """A provider that must see the corpus first (TF-IDF): its identity then covers what it saw."""

    def fit(self, documents: Sequence[str]) -> None:
        """Learns from the documents, before any of them is embedded."""


@runtime_checkable
class InFiles(Protocol):
    """A provider whose vectors are in files already: they are read from there and copied nowhere."""

    def rows_of(self, ids: Sequence[str], role: Role) -> npt.NDArray[np.int64]:
        """The number of each id's row. Raises EmbeddingFailed for an id that has none."""

    def rows(self, numbers: npt.NDArray[np.int64], role: Role) -> Vectors:
        """The rows of these numbers, checked as every answer is."""


@runtime_checkable
class TokenProvider(Protocol):
    """A provider that can also give a vector for each token, for late interaction."""

    def embed_tokens(self, texts: Sequence[str], role: Role) -> TokenBatch:
        """Unit vectors, at least one for each text."""


def check_batch(batch: EmbeddingBatch, texts: Sequence[str], card: ModelCard) -> EmbeddingBatch:
    """The promise of every provider, enforced in one place: count, dimension, finite, not all zero."""
    vectors = batch.vectors
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise EmbeddingFailed(
            f"{card.name} answered {len(vectors) if vectors.ndim else 0} vectors for {len(texts)} texts"
        )
    if card.dimensions is not None and vectors.shape[1] != card.dimensions:
        raise EmbeddingFailed(f"{card.name} answered {vectors.shape[1]} dimensions, expected {card.dimensions}")
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise EmbeddingFailed(f"{card.name} answered NaN or infinity for text {row + 1} ({_quote(texts[row])})")
    if not vectors.any(axis=1).all():
        row = int(np.flatnonzero(~vectors.any(axis=1))[0])
        raise EmbeddingFailed(f"{card.name} answered a zero vector for text {row + 1} ({_quote(texts[row])})")
    return batch


def _quote(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
