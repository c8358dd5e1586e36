"""The base of every row type, and the values it exchanges with a run."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import msgspec
from bakeoff_providers.base import Provider, Vectors
from bakeoff_providers.keys import missing_variables
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

from bakeoff.calls.budget import Budget
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.extensions import collect_entries, load_place
from bakeoff.core.facts import Fact, Failure
from bakeoff.core.progress import Progress
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query, Task
from bakeoff.core.toml_values import json_safe
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.chunking import ContenderChunking
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.search.answer import Answer, Searcher
from bakeoff.search.brute_force import Rows, Similarities
from bakeoff.search.index import Index
from bakeoff.search.stores.base import Store
from bakeoff.search.variants import Variant
from bakeoff.systems import SYSTEMS

if TYPE_CHECKING:
    from bakeoff.systems.embedding import EmbeddingRow

T = TypeVar("T")
NAMES = ("label", "name", "provider", "ranker", "model")  # settings whose values name a row


class EmbeddedCorpus(NamedTuple):
    """The corpus as vectors of one model, and the embedder that made them."""

    embedder: Embedder
    vectors: VectorRows


class CorpusVectors(Protocol):
    """Chunks and vectors of the corpus, computed once per embedding."""

    def embedder(self, row: EmbeddingRow) -> Embedder:
        """The row's provider behind the cache. Embeds nothing yet."""

    def texts(self, row: EmbeddingRow) -> Sequence[str]:
        """The texts to embed: chunks, or ids for providers of precomputed vectors."""

    def of(self, row: EmbeddingRow) -> EmbeddedCorpus:
        """The vectors of all chunks."""

    def index(self, row: ChunkedRow) -> Index:
        """The chunks that this row searches."""

    def warnings_before(self, row: EmbeddingRow) -> list[Fact]:
        """Warnings about this embedding that are known before embedding."""


class RunContext(CorpusVectors, Protocol):
    """What a run or a dry run provides to its rows. `folder` is the line-up's, for relative paths."""

    task: Task
    depth: int
    folder: Path
    offline: bool
    time_hosted: int
    policy: RetryPolicy
    budget: Budget | None
    progress: Progress

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """The documents' fields."""

    @property
    def own_cache(self) -> VectorCache | None:
        """The cache of scores and token vectors."""

    def cache(self, provider: Provider) -> VectorCache | None:
        """The cache of a provider's vectors."""

    def place(self, store: Store) -> None:
        """Place a store's indexes where the engine requires."""

    def nearest(self, queries: Vectors, vectors: Vectors | VectorRows, k: int) -> tuple[Rows, Similarities]:
        """Exact search by the run's engine."""


@dataclass(frozen=True, slots=True)
class NotRun:
    """A contender without answers, and the reason."""

    contender: System
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Time and size of preparation; None if not applicable."""

    seconds: float
    index_bytes: int | None = None
    dimensions: int | None = None
    vector_bytes: float | None = None  # of one stored vector
    notes: tuple[Fact, ...] = ()  # warnings about the row


@dataclass(frozen=True, slots=True)
class Prepared:
    """A contender ready for queries. `embedder` is set if it embeds them."""

    contender: System
    searcher: Searcher
    build: Build
    embedder: Embedder | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """A contender with precomputed answers: files by seed, or rankings from Python."""

    contender: System
    files: Mapping[str, Path]
    rankings: Mapping[str, Ranking] | None = None


Ready = Mapping[str, Prepared | Given | NotRun]  # by label


@dataclass(frozen=True, slots=True)
class Plan:
    """Dry-run figures of rows that share vectors, or of a second stage. Tokens and minutes are estimates.

    `failure`: why these rows would not run. `warnings`: what would weaken them.
    """

    rows: tuple[str, ...]
    texts: int = 0
    cached: int = 0
    tokens: float = 0.0
    requests: int = 0
    usd: float | None = 0.0
    minutes: float | None = None
    note: Fact | None = None
    failure: Failure | None = None
    warnings: tuple[Fact, ...] = ()


class Identity(NamedTuple):
    """The names of a row's parts in a result."""

    provider: str
    model: str
    store: str = ""


@dataclass(frozen=True)
class System(Plugin, ABC):
    """One row of the matrix. `name` is its label without the store; `unset` lists variables that are not set.

    `asked` is False for precomputed answers, which are read before anything is paid for. `embeds_documents`: whether
    the corpus is embedded for it.
    """

    row_type: ClassVar[str]
    asked: ClassVar[bool] = True
    embeds_documents: ClassVar[bool] = False

    label: str
    name: str = ""
    unset: str = field(default="", kw_only=True)

    @property
    def names(self) -> set[str]:
        """Names by which `--contender` and fusions refer to it."""
        return names_of(self.to_dict())

    @property
    def made_of(self) -> tuple[str, ...]:
        """Labels of the rows it is built on."""
        return ()

    @property
    def local(self) -> bool:
        """Whether its own part runs on this machine, not counting the rows it is built on."""
        return True

    @property
    def baseline(self) -> bool:
        """Whether it is a reference that is never recommended."""
        return False

    @property
    def weighted(self) -> bool:
        """Whether its parts have manually set, unequal weights."""
        return False

    @property
    def identity(self) -> Identity:
        """The names of its parts in a result."""
        return Identity("", self.name)

    @property
    def shares(self) -> Hashable:
        """Rows with equal keys share an embedder and its cost."""
        return self.label

    @property
    def searches(self) -> Hashable:
        """Rows with equal keys search the same vectors."""
        return self.shares

    def unset_variables(self) -> str | None:
        """Unset variables that its settings name."""
        return self.unset or missing_variables(json_safe(self.settings()))

    def lacks(self) -> str | None:
        """Why it can't run here; makes no request."""
        return self.unset_variables() or self.lacks_parts()

    def lacks_parts(self) -> str | None:
        """Missing libraries, keys or weights."""
        return self.missing()

    def check(self, run: RunContext) -> None:
        """Raise InputError for mistakes in the line-up; called before any row is prepared."""

    def try_out(self, run: RunContext) -> None:
        """Further checks of `validate`: parts can be created, servers respond. Embeds nothing."""

    def count(self, run: RunContext, ready: Ready) -> Prepared | None:  # noqa: ARG002 - most ask no model
        """`prepare` for a dry run, which only counts paid calls and builds no index.

        None if no model is called.
        """
        return None

    def plan(self, run: RunContext, rows: tuple[str, ...]) -> Plan | None:  # noqa: ARG002
        """The counts for these rows, which share their calls."""
        return None

    @abstractmethod
    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared | Given:
        """Make the row ready for queries. An exception fails only this row.

        `scratch` is its own folder, not yet created; `ready` has the earlier rows.
        """

    def to_dict(self) -> dict[str, Any]:
        """As results store it, without empty settings but always with a variant."""
        own = self.settings()
        if self.row_type not in SYSTEMS.builtin:
            own = {"system": self.row_type, "options": own}
        stored = {"label": self.label, "name": self.name, "variant": Variant(), **own}
        return {key: json_safe(value) for key, value in stored.items() if value not in ("", {}, None)}

    def settings(self) -> dict[str, Any]:
        """The fields of its type, without Python objects."""
        common = {"label", "name", "unset", "live"}
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name not in common}


@dataclass(frozen=True)
class FieldRow(System):
    """A row with its own adapters that reads one field of documents, by default title and text."""

    field: str = dataclasses.field(default="", kw_only=True)
    isolate: bool | None = dataclasses.field(default=None, kw_only=True)  # None: third-party code only

    def create_part(self, registry: Registry[T], name: str, /, **options: Any) -> T:
        """Creates an adapter of this row, in its own process if it is isolated."""
        for place in collect_entries("ISOLATION").values():
            if (part := load_place(place)(registry, name, self.isolate, options)) is not None:
                return cast(T, part)
        return registry.create(name, **options)


@dataclass(frozen=True)
class ChunkedRow(FieldRow):
    """A row that searches chunks of the corpus."""

    chunking: ContenderChunking | None = dataclasses.field(default=None, kw_only=True)


class _Parts(Searcher):
    """Queries a row's parts in a dry run, without fusing or reranking."""

    def __init__(self, parts: Sequence[Searcher]) -> None:
        self._parts = parts

    def ask(self, query: Query) -> Answer:
        """An empty ranking."""
        for part in self._parts:
            part.ask(query)
        return Answer(Ranking((), ()), 0)

    def begin_round(self, number: int) -> None:
        """Passed on to its parts."""
        for part in self._parts:
            part.begin_round(number)


def count_parts(row: System, ready: Ready) -> Prepared | None:
    """`count` for rows built on others; None if no part calls a model."""
    parts = [part.searcher for label in row.made_of if isinstance(part := ready.get(label), Prepared)]
    return Prepared(row, _Parts(parts), Build(seconds=0.0)) if parts else None


def given_name(row: Mapping[str, Any]) -> str:
    """The name of a stored row's line-up entry: its label without dimensions and precision."""
    name, variant = str(row.get("name", "")), str(msgspec.convert(row.get("variant", {}), Variant))
    return name.removesuffix(f"@{variant}") if variant else name


def names_of(row: Mapping[str, Any]) -> set[str]:
    """The names of a row in a line-up or a result."""
    return {row[key] for key in NAMES if row.get(key)}
