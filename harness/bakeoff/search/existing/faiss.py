"""A FAISS index file that exists, with the ids of its rows in another file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.arrays import mapped_array
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError

from bakeoff.search.existing.base import BLOCK, Existing, ExistingIndex, path_of
from bakeoff.search.hits import Hits


class ExistingFaiss(ExistingIndex):
    """`existing` is the index file; `id` the file of its ids in the order of the rows: one a line, JSON or .npy."""

    name: ClassVar[str] = "faiss"
    modules: ClassVar[tuple[str, ...]] = ("faiss",)

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        import faiss

        path = path_of(existing)
        try:
            self._index = faiss.read_index(str(path), faiss.IO_FLAG_READ_ONLY)
        except (RuntimeError, MemoryError) as error:
            raise InputError(f"is no FAISS index ({str(error).splitlines()[0]})", file=path) from None
        self._ids = _ids(self._id_file(path))
        self.dimensions, self.entries = int(self._index.d), int(self._index.ntotal)
        if len(self._ids) != self.entries:
            raise InputError(f"{len(self._ids)} ids for {self.entries} vectors", file=path, place="id")
        self._sign = 1.0 if self._index.metric_type == faiss.METRIC_INNER_PRODUCT else -1.0

    @classmethod
    def default_id(cls) -> str:
        """Beside the index."""
        return ""

    def search(self, vector: Vectors, k: int) -> Hits:
        """FAISS pads with −1 where it finds fewer."""
        wanted = min(k, self.entries)
        scores, labels = self._index.search(np.ascontiguousarray(vector[None], dtype=np.float32), wanted)
        hits = [(int(label), float(score)) for label, score in zip(labels[0], scores[0], strict=True) if label >= 0]
        return Hits([self._document(self._ids[at]) for at, _ in hits], [self._sign * score for _, score in hits])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """As far as the index keeps its vectors: a compressed one gives what it makes of them."""
        for start in range(0, self.entries, size):
            names = [self._document(item) for item in self._ids[start : start + size]]
            yield names, np.asarray(self._index.reconstruct_n(start, len(names)), dtype=np.float32)

    def documents(self) -> set[str]:
        """Without the vectors."""
        return {self._document(item) for item in self._ids}

    def _id_file(self, path: Path) -> Path:
        beside = [path.with_suffix(end) for end in (".ids.txt", ".ids.json", ".ids.npy")]
        choices = [Path(self.id)] if self.id else beside
        for choice in choices:
            file = choice if choice.is_absolute() else path.parent / choice
            if file.is_file():
                return file
        remedy = f"write {choices[0].name} beside it"
        raise InputError("no file of ids for this index", file=path, place="id", remedy=remedy)


def _ids(file: Path) -> list[Any]:
    if file.suffix == ".npy":
        return list(mapped_array(file).tolist())
    text = file.read_text(encoding="utf-8")
    return list(json.loads(text)) if file.suffix == ".json" else [line for line in text.split("\n") if line]
