"""Vectors in a FAISS index file, as far as it holds the vectors themselves; ids are in a file beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.files import replacing

from bakeoff.core.hashing import Identity
from bakeoff.embedding.vector_files.base import Block, Contents, VectorFile
from bakeoff.embedding.vector_files.sidecar import read_sidecar, sidecar_of, write_sidecar

_ROWS = 8_192  # reconstructed at once


class FaissFile(VectorFile):
    """`NAME.faiss` and `NAME.ids.jsonl`, in the order in which the vectors were added. Written as a flat index."""

    name = "faiss"
    modules = ("faiss",)
    _opened: Any = None

    def _index(self) -> Any:
        """Read once."""
        if self._opened is None:
            self._opened = self._read()
        return self._opened

    def _read(self) -> Any:
        import faiss

        if not self.path.is_file():
            raise self.wrong("no such file", remedy="check the path")
        try:
            # Read, not mapped: FAISS looks into a mapped file beyond its end where a length in it is damaged, and dies.
            self._whole = faiss.read_index(str(self.path))  # its parts live as long as it does
            index = faiss.downcast_index(self._whole)
        except (RuntimeError, MemoryError) as error:  # a damaged length asks for more than there is
            raise self.wrong(f"is not readable as a FAISS index ({str(error).splitlines()[0]})") from None
        if isinstance(index, faiss.IndexIDMap):
            index = faiss.downcast_index(index.index)
        if isinstance(index, faiss.IndexIVFFlat):
            index.make_direct_map()
        elif isinstance(index, faiss.IndexHNSWFlat):
            index = faiss.downcast_index(index.storage)
        elif not isinstance(index, faiss.IndexFlat):
            raise self.wrong(
                f"a {type(index).__name__} holds codes, not the vectors themselves",
                remedy="export from a Flat, HNSW…,Flat or IVF…,Flat index",
            )
        return index

    def contents(self) -> Contents:
        """From the file beside it."""
        index = self._index()
        return read_sidecar(self, int(index.ntotal), int(index.d))

    def vectors(self) -> Iterator[Vectors]:
        """In the order of their numbers."""
        index = self._index()
        for first in range(0, int(index.ntotal), _ROWS):
            yield np.asarray(index.reconstruct_n(first, min(_ROWS, int(index.ntotal) - first)), dtype=np.float32)

    def write(self, identity: Identity, dimensions: int, blocks: Iterable[Block], rows: int) -> None:
        """Inner product, flat: the only index that keeps every bit."""
        import faiss

        with replacing(sidecar_of(self.path)) as ids, replacing(self.path) as part:
            index = faiss.IndexFlatIP(dimensions)
            index.codes.resize(rows * index.code_size)
            index.codes.resize(0)
            for block in write_sidecar(ids, identity, blocks):
                index.add(np.ascontiguousarray(block.vectors, dtype=np.float32))
            faiss.write_index(index, str(part))
