"""The four steps that may be done elsewhere: embed a corpus, search it exactly, keep an index, score queries.

Whatever the engine, the results are the same bits: it decides where work is done, and never what is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bakeoff_providers.base import Vectors

from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Judgments
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores
from bakeoff.lineup.entries import EngineEntry
from bakeoff.search.brute_force import Rows, Similarities
from bakeoff.search.stores.base import Store
from bakeoff.systems.base import System
from bakeoff.systems.embedding import EmbeddingRow


@dataclass(frozen=True, slots=True)
class CorpusJob:
    """A corpus to embed: by which contender's provider, which texts, and where vectors go that no cache keeps."""

    contender: EmbeddingRow
    embedder: Embedder
    texts: Sequence[str]
    scratch: Path
    folder: Path  # where files that the line-up names are looked for
    notice: Callable[[str], None]


class Engine(ABC):
    """One way to do the heavy steps."""

    name: ClassVar[str]
    extra: ClassVar[str | None] = None
    modules: ClassVar[tuple[str, ...]] = ()
    on_other_machines: ClassVar[bool] = False  # it then has an address, and a folder of shards that all of them see

    def __init__(self, entry: EngineEntry) -> None:
        self.entry = entry

    def start(  # noqa: B027 - most need nothing
        self, contenders: Sequence[System], shared: Path | None, vectors: Sequence[Path] = ()
    ) -> None:
        """Called before anything is paid for: raises where this line-up can't be run.

        `shared` is the cache, `vectors` are the folders of `--vectors`.
        """

    @abstractmethod
    def embed(self, job: CorpusJob) -> VectorRows:
        """The vectors of all texts, asked for where the cache lacks them."""

    @abstractmethod
    def nearest(self, queries: Vectors, vectors: Vectors | VectorRows, k: int) -> tuple[Rows, Similarities]:
        """Exact search: for each query the k best rows, best first, equal ones by row."""

    def place(self, store: Store) -> None:  # noqa: B027 - most leave them here
        """Puts the indexes of a store that consists of several where they are to be."""

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

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Ends what was started."""
