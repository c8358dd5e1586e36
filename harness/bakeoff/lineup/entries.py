"""The line-up file as it is written: the shape of its tables, before anything in them is checked."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bakeoff.embedding.cutting import Cutting
from bakeoff.search.variants import Precision

DEFAULT_MEASURES = ("p@5", "recall@10", "f1@5", "mrr", "ndcg@10")


class StoreEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A store with options of its own; a plain name is a store without options.

    `existing` is the path or address of an index that is there already; the settings after it say how to read it.
    """

    name: str
    label: str = ""
    options: dict[str, Any] = {}
    existing: str = ""
    collection: str = ""
    id: str = ""
    vector: str = ""
    split: str = ""
    metric: str = ""

    def reading(self) -> dict[str, str]:
        """How to read an index that exists; empty where one is to be built."""
        settings = {key: getattr(self, key) for key in ("existing", "collection", "id", "vector", "split", "metric")}
        return {key: value for key, value in settings.items() if value}


class PromptName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt that comes with the model, by the name that it has there."""

    name: str


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes around queries and documents, `{text}` being the text itself, or a prompt of the model by its name.

    `name` alone is for both.
    """

    query: str | PromptName = ""
    document: str | PromptName = ""
    name: str = ""
    label: str = ""


class RerankEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A second stage: the first `depth` candidates of the row `of` in a reranker's order.

    With `vectors = "tokens"` the provider is one of vectors, and the order is by MaxSim over those of its tokens.
    """

    provider: str
    of: str = ""
    model: str = ""
    depth: int = 50
    label: str = ""
    vectors: Literal["", "tokens"] = ""
    options: dict[str, Any] = {}


class ContenderEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[contender]]: it names one source of rows, and the settings that this source takes."""

    provider: str = ""
    ranker: str = ""
    answers: str | dict[str, str] = ""
    retriever: str | dict[str, Any] = ""
    model: str = ""
    label: str = ""
    field: str = ""
    store: str | StoreEntry | list[str | StoreEntry] = []
    dimensions: int | list[int] = []
    precision: Precision | list[Precision] = "float32"
    vectors: Literal["", "tokens"] = ""
    options: dict[str, Any] = {}
    chunking: Cutting | list[Cutting] = []
    prompt: str | Prompt | list[str | Prompt] = []
    rerank: RerankEntry | list[RerankEntry] = []
    seeds: list[int] = []


class FusionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[fusion]]: contenders by their labels, and how much each of them counts."""

    of: list[str]
    label: str = ""
    method: str = "rrf"
    weights: list[float] = []
    c: float = 60.0
    top_n: int | None = None


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A category of queries to generate: what it is about, for a model, and texts with gaps, for templates.

    `of` names document categories: only documents of one of these get such queries.
    """

    about: str = ""
    templates: tuple[str, ...] = ()
    of: tuple[str, ...] = ()


class TaskEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several [[tasks]]; `role` says whether adapted contenders were made for it (domain) or not (general)."""

    task: str | dict[str, Any]
    name: str = ""
    role: Literal["", "domain", "general"] = ""


class LineupFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. `overrides` replaces options of the task, as `--set` does.

    `bases` names, for a contender that was adapted, the one that it was made from.
    """

    contender: list[ContenderEntry]
    task: str | dict[str, Any] | None = None
    tasks: list[TaskEntry] = []
    role: Literal["", "domain", "general"] = ""
    bases: dict[str, str] = {}
    fusion: list[FusionEntry] = []
    rerank: list[RerankEntry] = []
    name: str = ""
    measures: list[str] = msgspec.field(default_factory=lambda: list(DEFAULT_MEASURES))
    primary: str = ""
    depth: int | None = None
    rounds: int = 3
    seed: int = 42
    equivalent_within: float | None = None
    categories: dict[str, str | Category] = {}
    overrides: dict[str, Any] = {}
