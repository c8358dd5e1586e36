"""What a row type supplies: its fields, what it lacks, what it would cost, and how it becomes ready to be asked."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from bakeoff_providers.base import Provider, Vectors
from bakeoff_providers.keys import missing_variables
from bakeoff_providers.needs import Plugin

from bakeoff.calls.budget import Budget
from bakeoff.calls.retry import RetryPolicy
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

NAMES = ("label", "name", "provider", "ranker", "model")  # settings by whose value a row may be called


class EmbeddedCorpus(NamedTuple):
    """The corpus in one model's vectors, and the embedder that made them."""

    embedder: Embedder
    vectors: VectorRows


class CorpusVectors(Protocol):
    """The corpus in chunks and vectors, made once for each embedding."""

    def embedder(self, row: EmbeddingRow) -> Embedder:
        """Its provider behind the cache; embeds nothing yet."""

    def texts(self, row: EmbeddingRow) -> Sequence[str]:
        """What is embedded of the corpus: the chunks, or ids where vectors are known by them."""

    def of(self, row: EmbeddingRow) -> EmbeddedCorpus:
        """The vectors of all chunks."""

    def index(self, row: ChunkedRow) -> Index:
        """The chunks that this row searches."""

    def warnings_before(self, row: EmbeddingRow) -> list[Fact]:
        """What will weaken the rows of this embedding, before anything is embedded."""


class RunContext(CorpusVectors, Protocol):
    """What a run, or a dry run, lends to its rows. `folder` is the line-up's, where files are looked for."""

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
        """Where scores and token vectors are kept."""

    def cache(self, provider: Provider) -> VectorCache | None:
        """Where a provider's vectors are kept and looked for."""

    def place(self, store: Store) -> None:
        """Puts the indexes of a store where the engine wants them."""

    def nearest(self, queries: Vectors, vectors: Vectors | VectorRows, k: int) -> tuple[Rows, Similarities]:
        """Exact search by the run's engine."""


@dataclass(frozen=True, slots=True)
class NotRun:
    """A contender that has no answers, and why."""

    contender: System
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What preparing took and made; None where it does not apply."""

    seconds: float
    index_bytes: int | None = None
    dimensions: int | None = None
    vector_bytes: float | None = None  # of one vector, as the store keeps it
    notes: tuple[Fact, ...] = ()  # what a reader of the row must know


@dataclass(frozen=True, slots=True)
class Prepared:
    """A contender that can be asked. `embedder` is there where queries have to be embedded for it."""

    contender: System
    searcher: Searcher
    build: Build
    embedder: Embedder | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """A contender whose answers are there: in files, by seed, or as rankings from Python."""

    contender: System
    files: Mapping[str, Path]
    rankings: Mapping[str, Ranking] | None = None


Ready = Mapping[str, Prepared | Given | NotRun]  # by label


@dataclass(frozen=True, slots=True)
class Plan:
    """What rows that share their vectors, or one second stage, would ask for. Tokens and minutes are estimates.

    `failure` says why these rows would not run; `warnings` what would weaken them.
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
    """What a result calls a row's parts."""

    provider: str
    model: str
    store: str = ""


@dataclass(frozen=True)
class System(Plugin, ABC):
    """One row of the matrix. `name` is its label without the store; `unset` names variables without which it can't run.

    `asked` is False where the answers are there already: they are read before anything costs. `embeds_documents` says
    whether the corpus is embedded for it.
    """

    row_type: ClassVar[str]
    asked: ClassVar[bool] = True
    embeds_documents: ClassVar[bool] = False

    label: str
    name: str = ""
    unset: str = field(default="", kw_only=True)

    @property
    def names(self) -> set[str]:
        """What `--contender` and a fusion may call it by."""
        return names_of(self.to_dict())

    @property
    def made_of(self) -> tuple[str, ...]:
        """The labels of the rows that it asks."""
        return ()

    @property
    def local(self) -> bool:
        """Whether its own part, without the rows that it asks, runs on this machine."""
        return True

    @property
    def baseline(self) -> bool:
        """Whether it shows what no model is needed for, and is never advised."""
        return False

    @property
    def identity(self) -> Identity:
        """What a result calls its parts."""
        return Identity("", self.name)

    @property
    def shares(self) -> Hashable:
        """Rows that are equal in this share an embedder and a price."""
        return self.label

    @property
    def searches(self) -> Hashable:
        """Rows that are equal in this search the same vectors."""
        return self.shares

    def unset_variables(self) -> str | None:
        """The variables that its settings name and that are not set."""
        return self.unset or missing_variables(json_safe(self.settings()))

    def lacks(self) -> str | None:
        """What keeps it from running here, without asking any server."""
        return self.unset_variables() or self.lacks_parts()

    def lacks_parts(self) -> str | None:
        """Libraries, keys or weights that its parts lack here."""
        return self.missing()

    def check(self, run: RunContext) -> None:
        """Raises InputError for what the line-up has wrong with this row; called before any row is prepared."""

    def try_out(self, run: RunContext) -> None:
        """What `validate` looks at besides: whether its parts can be made and its servers live. Embeds nothing."""

    def count(self, run: RunContext, ready: Ready) -> Prepared | None:  # noqa: ARG002 - most ask no model
        """`prepare` up to its paid calls, which a dry run only counts: what can be asked without an index.

        None where nothing is asked of a model.
        """
        return None

    def plan(self, run: RunContext, rows: tuple[str, ...]) -> Plan | None:  # noqa: ARG002
        """What was counted for these rows, which share it."""
        return None

    @abstractmethod
    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared | Given:
        """Ready to be asked, or a reason in an exception, which costs this row alone.

        `scratch` is a folder for this row alone, not yet made; `ready` has the rows before it.
        """

    def to_dict(self) -> dict[str, Any]:
        """As results store it, without empty settings. Every row has a variant there, if only the plain one."""
        own = self.settings()
        if self.row_type not in SYSTEMS.builtin:
            own = {"system": self.row_type, "options": own}
        stored = {"label": self.label, "name": self.name, "variant": Variant(), **own}
        return {key: json_safe(value) for key, value in stored.items() if value not in ("", {}, None)}

    def settings(self) -> dict[str, Any]:
        """The fields of its type; objects from Python are left out."""
        common = {"label", "name", "unset", "live"}
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name not in common}


@dataclass(frozen=True)
class FieldRow(System):
    """A row that reads documents by one field, or by title and text where none is named."""

    field: str = dataclasses.field(default="", kw_only=True)


@dataclass(frozen=True)
class ChunkedRow(FieldRow):
    """A row that searches chunks of the corpus."""

    chunking: ContenderChunking | None = dataclasses.field(default=None, kw_only=True)


class _Parts(Searcher):
    """Asks the parts of a row, in a dry run: there is nothing to fuse or to rerank."""

    def __init__(self, parts: Sequence[Searcher]) -> None:
        self._parts = parts

    def ask(self, query: Query) -> Answer:
        """No document."""
        for part in self._parts:
            part.ask(query)
        return Answer(Ranking((), ()), 0)

    def begin_round(self, number: int) -> None:
        """Its parts are asked in it."""
        for part in self._parts:
            part.begin_round(number)


def count_parts(row: System, ready: Ready) -> Prepared | None:
    """For rows that are made of others; None where no part asks a model."""
    parts = [part.searcher for label in row.made_of if isinstance(part := ready.get(label), Prepared)]
    return Prepared(row, _Parts(parts), Build(seconds=0.0)) if parts else None


def names_of(row: Mapping[str, Any]) -> set[str]:
    """What a row, as a line-up or a result describes it, may be called by."""
    return {row[key] for key in NAMES if row.get(key)}
