"""The provider interface: text in, checked vectors out, and an identity for everything that shaped them."""

from __future__ import annotations

import hashlib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from pathlib import PurePath
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from bakeoff_providers.code import code_identity
from bakeoff_providers.errors import EmbeddingFailed
from bakeoff_providers.keys import is_secret_name
from bakeoff_providers.needs import Plugin
from bakeoff_providers.options import options_of
from bakeoff_providers.prices import Price as Price
from bakeoff_providers.secrets import redact_url, without_known


class Adapter:
    """Records the constructor's arguments, in case an author forgets an option in `identity`.

    Our own adapters are tested for this. For all others, every option enters the key, except those declared as
    `Transport` and those with secret names.
    """

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *values: Any, **options: Any) -> Self:
        """Records the constructor's arguments."""
        made = super().__new__(cls)
        object.__setattr__(made, "_made_with", (values, options))
        return made

    def code(self) -> dict[str, str] | None:
        """What the cache key adds to `identity`: nothing for our own adapters; None if nothing may be cached."""
        if not (code := code_identity(type(self))):
            return code
        try:
            return {**code, **self._options_identity()}
        except TypeError:  # a Python object that only its address could identify
            return None

    def _options_identity(self) -> dict[str, str]:
        values, given = self._made_with
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        options = {**dict(zip(names, values, strict=False)), **given}
        transport = {option.name for option in options_of(type(self)) if option.transport}
        kept = (name for name in sorted(options) if name not in transport and not is_secret_name(name))
        return {f"option {name}": _value_identity(options[name]) for name in kept}


def cache_key(adapter: Any, *about: Any) -> dict[str, str | int | float | bool | None] | None:
    """Everything but the text that shapes this adapter's answers; None if nothing may be cached."""
    code = adapter.code()
    return None if code is None else {**adapter.identity(*about), **code}


def _value_identity(value: Any) -> str:
    """The value as JSON. Addresses lose their password, and other secrets are hashed."""
    if isinstance(value, str) and "://" in value:
        value = redact_url(value)
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=_path_text)
    if without_known(text) != text:
        return f"sha256 {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"
    return text


def _path_text(value: object) -> str:
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no name")


Vectors = npt.NDArray[np.float32]
TEXT = "{text}"  # placeholder for the text in a prompt


class Role(StrEnum):
    """The role of a text. Many models embed queries and documents differently."""

    DOCUMENT = "document"
    QUERY = "query"


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a model. A line-up may override any of it."""

    name: str
    dimensions: int | None = None
    context: int | None = None
    document_prompt: str = ""
    query_prompt: str = ""
    prompts: dict[str, str] = {}  # further prompts of the model, by their authors' names
    output_dimensions: tuple[int, ...] = ()
    batch_items: int = 64
    batch_tokens: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    price: Price | None = None

    def prompt(self, role: Role) -> str:
        """The prompt for this role: put before the text, or around it at `{text}`."""
        return self.query_prompt if role is Role.QUERY else self.document_prompt

    def around(self, role: Role) -> tuple[str, str]:
        """What goes before and after a text of this role."""
        before, _, after = self.prompt(role).partition(TEXT)
        return before, after

    def apply_prompt(self, text: str, role: Role) -> str:
        """The text as the model gets it."""
        before, after = self.around(role)
        return f"{before}{text}{after}"


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """The answer to one call: one row per text, and the usage."""

    vectors: Vectors
    tokens: int | None = None
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """The answer to one call for token vectors: one row per token of each text."""

    vectors: Sequence[Vectors]
    tokens: int
    truncated: int = 0


class Provider(Plugin, Adapter, ABC):
    """Text → vectors. One subclass per file; heavy libraries are imported inside its methods.

    `local`: calls are free and stay on this machine. `baseline`: not a model, never recommended. `by_id`: takes ids
    instead of texts. `paths`: options that are files, relative to the line-up. `own_tokens`: `count_tokens` uses the
    model's own tokenizer.
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
        """The model's name, as displayed and in the cache key."""
        return self.card.name

    @property
    def free(self) -> bool:
        """Whether calls cost nothing: it is local, or its price is 0. An unknown price counts as paid."""
        return self.local or (self.card.price is not None and self.card.price.usd_per_million_tokens == 0)

    @property
    def needs_network(self) -> bool:
        """Whether it needs a network."""
        return not self.local

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """Everything but the text that changes a vector, for the cache key."""
        return {
            "provider": self.name,
            "model": self.card.name,
            "dimensions": self.card.dimensions,
            "role": role.value,
            "prompt": self.card.prompt(role),
        }

    def count_tokens(self, text: str) -> int:
        """Tokens of a text with its prompt, for chunking. Without a tokenizer, three characters per token."""
        return ceil(len(self.card.apply_prompt(text, Role.DOCUMENT)) / 3)

    def context_tokens(self) -> int | None:
        """The model's context length in tokens; None if unlimited or unknown."""
        return self.card.context

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """One call: as many vectors as texts, in order. Raises CallFailed or EmbeddingFailed."""

    def ready(self) -> None:
        """Raises Unavailable with a remedy if a required server or model is missing."""

    def close(self) -> None:
        """Releases sessions and files."""


@runtime_checkable
class Fitted(Protocol):
    """A provider that must see the corpus first (TF-IDF). Its identity covers what it saw."""

    def fit(self, documents: Sequence[str]) -> None:
        """Learns from the documents, before any of them is embedded."""


@runtime_checkable
class InFiles(Protocol):
    """A provider whose vectors are already in files, which are read in place."""

    def rows_of(self, ids: Sequence[str], role: Role) -> npt.NDArray[np.int64]:
        """The row number of each id. Raises EmbeddingFailed if an id has none."""

    def rows(self, numbers: npt.NDArray[np.int64], role: Role) -> Vectors:
        """The rows with these numbers, checked like every answer."""


@runtime_checkable
class TokenProvider(Protocol):
    """A provider that also returns one vector per token, for late interaction."""

    def embed_tokens(self, texts: Sequence[str], role: Role) -> TokenBatch:
        """Unit vectors, at least one per text."""


def check_batch(batch: EmbeddingBatch, texts: Sequence[str], card: ModelCard) -> EmbeddingBatch:
    """Checks every provider's answer: count, dimension, finite, not all zero."""
    vectors = batch.vectors
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise EmbeddingFailed(
            f"{card.name} returned {len(vectors) if vectors.ndim else 0} vectors for {len(texts)} texts"
        )
    if card.dimensions is not None and vectors.shape[1] != card.dimensions:
        raise EmbeddingFailed(f"{card.name} returned {vectors.shape[1]} dimensions, expected {card.dimensions}")
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise EmbeddingFailed(f"{card.name} returned NaN or infinity for text {row + 1} ({_quote(texts[row])})")
    if not vectors.any(axis=1).all():
        row = int(np.flatnonzero(~vectors.any(axis=1))[0])
        raise EmbeddingFailed(f"{card.name} returned a zero vector for text {row + 1} ({_quote(texts[row])})")
    return batch


def _quote(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
