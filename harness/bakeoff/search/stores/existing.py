"""Existing indexes: searched or read in blocks, never written.

Readers for FAISS and Chroma are next to their stores; others are in extensions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, StoreError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries
from bakeoff.search.hits import Hits

BLOCK = 1000

Existing = Annotated[str, "path or address of an existing index; opened read-only"]
Collection = Annotated[str, "its collection or table; optional if there is only one"]
Id = Annotated[str, "where to find the document id: id, metadata.KEY, a column, or FAISS's id file"]
VectorField = Annotated[str, "the vector or column to search; optional if there is only one"]
Split = Annotated[str, "separator after the document id, as in doc1#3"]
Metric = Annotated[str, "distance, if the index does not record it"]


class ExistingIndex(Plugin, ABC):
    """Entries and the documents they belong to; several entries may be chunks of one document.

    `id` is where an entry's document is named: its own id, a metadata field ("metadata.page_id") or a column.
    `split` is the separator after the document id, for ids such as "doc1#3".
    """

    name: ClassVar[str]
    in_files: ClassVar[bool] = True  # whether `existing` may be a path

    dimensions: int
    entries: int
    metric: str  # cosine, l2, ip or l1; "" if unknown

    def __init__(
        self,
        *,
        existing: Existing,
        collection: Collection = "",
        id: Id = "",
        vector: VectorField = "",
        split: Split = "",
        metric: Metric = "",
    ) -> None:
        self.existing, self.collection, self.split = existing, collection, split
        self.id, self.vector, self.metric = id or self.default_id(), vector, metric

    @classmethod
    def default_id(cls) -> str:
        """The default for `id`."""
        return "id"

    @abstractmethod
    def search(self, vector: Vectors, k: int) -> Hits:
        """Documents of the k nearest entries, duplicates included; higher scores are nearer."""

    @abstractmethod
    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """All entries in blocks: documents and vectors."""

    def documents(self) -> set[str]:
        """Every document that has an entry."""
        return {document for names, _ in self.blocks() for document in names}

    def close(self) -> None:
        """Releases files and connections."""

    def _compare_by(self, own: str) -> None:
        """Adopt the index's own metric; refuse another one in the line-up."""
        if self.metric and self.metric != own:
            problem = f"{self.collection or self.existing} compares by {own}, not by {self.metric}"
            raise InputError(problem, place="metric", remedy="leave it out")
        self.metric = own

    def _document(self, value: Any) -> str:
        if value is None:
            raise StoreError(f"an entry of {self.existing} has nothing at id = {self.id!r}")
        text = str(value)
        return text.partition(self.split)[0] if self.split else text


def path_of(existing: str) -> Path:
    """The file or folder, which must exist."""
    path = Path(existing).expanduser()
    if not path.exists():
        raise InputError("no such file or folder", file=path, remedy="check the path; it is relative to the line-up")
    return path


def is_url(existing: str) -> bool:
    """Whether an index is on a server."""
    return "://" in existing


def field_of(entry: Mapping[str, Any] | None, path: Sequence[str]) -> Any:
    """A value inside nested metadata; None if there is none."""
    value: Any = entry
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def choose_name(name: str, names: Sequence[str], what: str, place: str) -> str:
    """The given name, or the only one there is."""
    if not name and len(names) == 1:
        return names[0]
    if name not in names:
        problem = f"there is no {what} {name!r}" if name else f"there are {len(names)} of {what}"
        raise InputError(problem, place=place, remedy=f"name one of: {', '.join(sorted(names)) or 'none is there'}")
    return name


EXISTING: Registry[ExistingIndex] = Registry(
    "existing index",
    "bakeoff.existing",
    {
        "chroma": "bakeoff.search.stores.chroma:ExistingChroma",
        "faiss": "bakeoff.search.stores.faiss:ExistingFaiss",
        **collect_entries("EXISTING"),
    },
)
