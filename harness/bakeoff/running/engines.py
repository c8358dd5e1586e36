"""Engines run the heavy steps: embedding, exact search, index placement, scoring.

Results are bit-identical with every engine: it decides where work is done, never what is done. `local` does everything
in this process. Extensions and the entry point `bakeoff.engines` add others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import msgspec
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries
from bakeoff.core.facts import Fact
from bakeoff.core.ranking import Ranking
from bakeoff.core.remote import SharedFolder
from bakeoff.core.task import Judgments
from bakeoff.embedding.corpus_chunks import in_blocks
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.vector_rows import BLOCK, VectorRows
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores, join, score_queries
from bakeoff.lineup.entries import EngineEntry
from bakeoff.running.settings import Settings
from bakeoff.search import brute_force
from bakeoff.search.brute_force import Rows, Similarities
from bakeoff.search.stores.base import Store
from bakeoff.systems.base import System
from bakeoff.systems.embedding import EmbeddingRow


@dataclass(frozen=True, slots=True)
class CorpusJob:
    """A corpus to embed: the contender's provider, the texts, and a folder for uncached vectors."""

    contender: EmbeddingRow
    embedder: Embedder
    texts: Sequence[str]
    scratch: Path
    folder: Path  # where files that the line-up names are looked for
    notice: Callable[[Fact], None]


class Engine(Plugin, ABC):
    """Runs the heavy steps."""

    name: ClassVar[str]
    on_other_machines: ClassVar[bool] = False  # it then has an address, and a folder of shards that all of them see

    def __init__(self, entry: EngineEntry) -> None:
        self.entry = entry

    def start(self, contenders: Sequence[System], shared: Path | None, vectors: Sequence[Path] = ()) -> None:
        """Called before anything is paid for; raises if the line-up can't run.

        `shared` is the cache, `vectors` are the folders of `--vectors`.
        """

    @abstractmethod
    def embed(self, job: CorpusJob) -> VectorRows:
        """Vectors of all texts, through the cache."""

    @abstractmethod
    def nearest(self, queries: Vectors, vectors: Vectors | VectorRows, k: int) -> tuple[Rows, Similarities]:
        """Exact search: the k best rows per query, best first; ties by row."""

    def place(self, store: Store) -> None:
        """Place the indexes of a sharded store."""

    @abstractmethod
    def score(
        self,
        rankings: Mapping[str, Ranking],
        judgments: Judgments,
        queries: Sequence[str],
        measures: Sequence[Measure],
        rel: int,
    ) -> Scores:
        """Per-query values of every measure."""

    def close(self) -> None:
        """Shut down."""


class Local(Engine):
    """The default: one process, one machine."""

    name = "local"

    def embed(self, job: CorpusJob) -> VectorRows:
        """A block at a time."""
        return job.embedder.embed_corpus(in_blocks(job.texts, BLOCK), len(job.texts), job.scratch)

    def nearest(
        self, queries: Vectors, vectors: Vectors | VectorRows, k: int
    ) -> tuple[brute_force.Rows, brute_force.Similarities]:
        """A block at a time."""
        return brute_force.nearest(queries, vectors, k)

    def score(
        self,
        rankings: Mapping[str, Ranking],
        judgments: Judgments,
        queries: Sequence[str],
        measures: Sequence[Measure],
        rel: int,
    ) -> Scores:
        """All queries at once."""
        return score_queries(join(rankings, judgments, queries), measures, rel)


BUILTIN = {
    "local": "bakeoff.running.engines:Local",
    **collect_entries("ENGINES"),
}

ENGINES: Registry[Engine] = Registry("engine", "bakeoff.engines", BUILTIN)


def engine_entry(entry: EngineEntry, name: str | None, address: str | None) -> EngineEntry:
    """The line-up's engine, overridden by the command line."""
    changed = msgspec.structs.replace(entry, name=name or entry.name, address=address or entry.address)
    if not ENGINES.get(changed.name).on_other_machines and (changed.address or changed.shards):
        able = " or ".join(known for known, engine in ENGINES.load_all() if engine.on_other_machines)
        setting, place = ("address", "--address") if changed.address else ("shards", "engine shards")
        raise InputError(
            f"the {changed.name} engine has no {setting}", place=place, remedy=f"add --engine {able}, or remove it"
        )
    return changed


def with_shared_cache(settings: Settings, entry: EngineEntry) -> Settings:
    """The cache: this machine's, or the local copy of a folder that all nodes share."""
    if not entry.shards:
        return settings
    shared = SharedFolder(entry.shards)
    return replace(settings, cache=shared.path, fetch=shared.fetch if shared.remote else None)


def engine_of(entry: EngineEntry) -> Engine:
    """Create the engine; raises where its library is missing."""
    kind = ENGINES.get(entry.name)
    if reason := kind.missing():
        raise Unavailable(f"engine {entry.name}: {reason}")
    return ENGINES.create(entry.name, entry=entry)
