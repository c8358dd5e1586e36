"""FAISS in this process: exact by default, other indexes by index_factory string, and existing index files."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from bakeoff_providers.arrays import map_array
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, StoreError
from bakeoff_providers.registry import missing_modules

from bakeoff.core.filters import Condition
from bakeoff.search.hits import Hits
from bakeoff.search.stores.base import (
    CANDIDATES,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    KFactor,
    Probes,
    SizeModel,
    bit_codes,
    bit_similarity,
    graph_bytes,
    signs,
)
from bakeoff.search.stores.existing import BLOCK, Existing, ExistingIndex, path_of
from bakeoff.search.stores.numbered import SCAN_BELOW, Labels, Neighbours, NumberedStore
from bakeoff.search.variants import Precision


class FaissParts:
    """The parts of a wrapped index that read ef, nprobe, k_factor and selectors."""

    def __init__(self, faiss: Any, index: Any) -> None:
        self._faiss = faiss
        self.binary = isinstance(index, faiss.IndexBinary)
        self.outer = index if self.binary else faiss.downcast_index(index)
        self.all = [self.outer]
        self.refine = None
        part = self.outer
        while True:
            if isinstance(part, faiss.IndexPreTransform):
                part = faiss.downcast_index(part.index)
            elif isinstance(part, faiss.IndexRefine):
                self.refine = part
                part = faiss.downcast_index(part.base_index)
            else:
                break
            self.all.append(part)
        self.inner = part
        self.graph = part if isinstance(part, faiss.IndexHNSW | faiss.IndexBinaryHNSW) else None
        self.lists = part if isinstance(part, faiss.IndexIVF) else None
        if self.graph is not None and not self.binary:
            self.all.append(faiss.downcast_index(part.storage))

    @property
    def widens(self) -> bool:
        """Whether a filtered search can be widened; FAISS's binary graphs can't."""
        return not (self.binary and self.graph is not None)

    @property
    def selects(self) -> bool:
        """Whether this kind can skip what a selector excludes."""
        faiss = self._faiss
        scanned = (faiss.IndexFlat, faiss.IndexScalarQuantizer, faiss.IndexRaBitQ, faiss.IndexBinaryFlat)
        return self.graph is not None or self.lists is not None or isinstance(self.inner, scanned)

    def parameters(self, selector: Any, widen: float) -> Any:
        """Parameters of a filtered search. A graph needs a longer list, by what the filter drops."""
        faiss = self._faiss
        if self.graph is not None:
            ef = min(int(self.graph.hnsw.efSearch * widen) + 1, int(self.graph.ntotal))
            inner = faiss.SearchParametersHNSW(sel=selector, efSearch=ef)
        elif self.lists is not None:
            inner = self._probing(selector, min(int(self.lists.nprobe * widen) + 1, int(self.lists.nlist)))
        else:
            inner = faiss.SearchParameters(sel=selector)
        return self._wrap(inner)

    def exhaustive(self, selector: Any) -> tuple[Any, Any]:
        """An index and parameters for exhaustive search: a graph's storage, all lists, the originals."""
        faiss = self._faiss
        if self.refine is not None and isinstance(faiss.downcast_index(self.refine.refine_index), faiss.IndexFlat):
            return self.refine.refine_index, faiss.SearchParameters(sel=selector)
        if self.graph is not None and self.inner is self.outer:
            storage = faiss.downcast_IndexBinary(self.graph.storage) if self.binary else self.graph.storage
            return storage, faiss.SearchParameters(sel=selector)
        if self.lists is not None:
            return self.outer, self._wrap(self._probing(selector, int(self.lists.nlist)))
        return self.outer, self.parameters(selector, float(self.outer.ntotal))

    def _probing(self, selector: Any, probes: int) -> Any:
        faiss = self._faiss
        kind = faiss.IVFPQSearchParameters if isinstance(self.lists, faiss.IndexIVFPQ) else faiss.SearchParametersIVF
        return kind(sel=selector, nprobe=probes)

    def _wrap(self, inner: Any) -> Any:
        faiss = self._faiss
        for part in reversed(self.all):
            if isinstance(part, faiss.IndexRefine):
                inner = faiss.IndexRefineSearchParameters(k_factor=part.k_factor, base_index_params=inner)
            elif isinstance(part, faiss.IndexPreTransform):
                inner = faiss.SearchParametersPreTransform(index_params=inner)
        return inner


PER_LIST = 256  # most training vectors per list
TRAINED_WITH = 65_536  # training vectors for codes without lists
# Index strings of plain vectors → the same index over bytes, and over bits ("B…" are FAISS's binary indexes).
SMALLER: dict[Precision, tuple[tuple[str, str], ...]] = {
    "int8": (
        (r"Flat|SQ8", "SQ8"),
        (r"HNSW(\d+)(?:[,_]Flat|_SQ8)?", r"HNSW\1_SQ8"),
        (r"(IVF\d+),(?:Flat|SQ8)", r"\1,SQ8"),
    ),
    "binary": ((r"B?Flat", "BFlat"), (r"B?HNSW(\d+)(?:[,_]Flat)?", r"BHNSW\1")),
}


class Faiss(NumberedStore):
    """Inner product over unit vectors, which is cosine. One thread: two make a single query slower, not faster.

    A replaced or deleted vector is masked and keeps its place: FAISS's graphs can't forget. Up to 10,000 documents that
    pass a filter are compared one by one; beyond that `ef` and `nprobe` are widened.
    """

    name = "faiss"
    modules = ("faiss",)
    distributions = ("faiss-cpu",)
    threads = 1
    query_options = ("ef", "nprobe", "k_factor")
    named_by_value = ("index",)

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        index: Annotated[str, "index_factory string: Flat, HNSW32, IVF256,Flat, SQ8, RaBitQ,RFlat, …"] = "Flat",
        ef_construction: EfConstruction = 200,
        ef: Ef = 64,
        nprobe: Probes = 16,
        k_factor: KFactor = 5,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        import faiss

        self._faiss: Any = faiss
        self._threads = threading.local()
        self.index, self.ef, self.nprobe, self.k_factor = index, ef, nprobe, k_factor
        self._one_thread()
        if self._index_file.is_file():
            read = faiss.read_index_binary if self._is_binary else faiss.read_index
            self._index = read(str(self._index_file))
        else:
            self._index = self._new_index(ef_construction)
        self._parts = FaissParts(faiss, self._index)
        self._quiet_training()
        self._apply_tuning()

    @classmethod
    def check(cls, *, dimensions: int | None, documents: int, **options: Any) -> None:
        """Checks the index string, and that there are at least as many documents as lists."""
        if missing_modules(cls.modules, cls.extra) or "index" not in options:
            return
        import faiss

        try:
            index = _factory(faiss, dimensions or 64, options["index"])
        except RuntimeError as error:
            if dimensions is None and "HNSW" not in options["index"] and "IVF" not in options["index"]:
                return  # codes depend on the dimensions, still unknown
            reason = str(error).splitlines()[0]
            raise InputError(
                f"faiss does not know the index {options['index']!r} ({reason})", place="index", remedy="try 'Flat'"
            ) from None
        lists = FaissParts(faiss, index).lists
        if lists is not None and documents < int(lists.nlist):
            raise InputError(
                f"{documents} documents do not train the {int(lists.nlist)} lists of {options['index']!r}",
                place="index",
                remedy=f"take at most {documents} lists, better 4√n",
            )

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Flat and HNSW have both forms, IVF that of bytes."""
        for plain, smaller in SMALLER[precision]:
            if match := re.fullmatch(plain, options.get("index", "Flat")):
                return {**options, "index": match.expand(smaller)}
        return None

    @property
    def _is_binary(self) -> bool:
        return self.index.startswith("B")

    @property
    def capabilities(self) -> Capabilities:
        """Only a flat index is exact."""
        exact = isinstance(self._parts.outer, self._faiss.IndexFlat)
        return Capabilities(exact=exact, filters=self._parts.selects, persistent=True, updates=False, in_process=True)

    @classmethod
    def grid(cls, documents: int, dimensions: int) -> Grid:
        """Every family, with 4√n lists and one byte per 8 dimensions."""
        lists = 2 ** max(2, round(np.log2(4 * np.sqrt(max(documents, 1)))))
        pieces = next(size for size in range(max(dimensions // 8, 1), 0, -1) if dimensions % size == 0)
        indexes = ["Flat", "SQ8", "HNSW16", "HNSW32", "RaBitQ,RFlat", f"IVF{lists},Flat"]
        return {"index": [*indexes, f"IVF{lists},PQ{pieces}x8", f"IVF{lists},PQ{pieces}x8,RFlat"]}

    def tunings(self) -> Grid:
        """Only the options that this index uses."""
        grid: dict[str, Sequence[Any]] = {}
        if self._parts.graph is not None:
            grid["ef"] = CANDIDATES
        if self._parts.lists is not None:
            lists = int(self._parts.lists.nlist)
            grid["nprobe"] = [probes for probes in (1, 2, 4, 8, 16, 32, 64, 128, 256) if probes < lists] + [lists]
        if self._parts.refine is not None:
            grid["k_factor"] = (1, 2, 5, 10, 20)
        return grid

    def _new_index(self, ef_construction: int) -> Any:
        try:
            index = _factory(self._faiss, self.dimensions, self.index)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"faiss does not know the index {self.index!r} ({reason})", remedy="try 'Flat'") from None
        graph = FaissParts(self._faiss, index).graph
        if graph is not None:
            graph.hnsw.efConstruction = ef_construction
        return index

    def _quiet_training(self) -> None:
        """Silences FAISS's warning per codebook, and skips a table that takes half a minute and is unused."""
        for part in self._parts.all:
            if hasattr(part, "do_polysemous_training"):
                part.do_polysemous_training = False
            for holder in (part, getattr(part, "pq", None)):
                if holder is not None and hasattr(holder, "cp"):
                    holder.cp.min_points_per_centroid = 1

    def _apply_tuning(self) -> None:
        if self._parts.graph is not None:
            self._parts.graph.hnsw.efSearch = self.ef
        if self._parts.lists is not None:
            self._parts.lists.nprobe = self.nprobe
        if self._parts.refine is not None:
            self._parts.refine.k_factor = self.k_factor

    def _one_thread(self) -> None:
        """OpenMP's thread number is per thread."""
        if not getattr(self._threads, "set", False):
            self._faiss.omp_set_num_threads(self.threads)
            self._threads.set = True

    def expect(self, documents: int, sample: Callable[[int], Vectors]) -> None:
        """Reserve the memory of a flat index, which growing would need twice; train on a sample."""
        flat = self._parts.outer
        if isinstance(flat, self._faiss.IndexFlat) and not flat.ntotal:
            flat.codes.resize(documents * flat.code_size)
            flat.codes.resize(0)
        if not self._index.is_trained:
            lists = int(self._parts.lists.nlist) if self._parts.lists is not None else 0
            self._train(sample(min(documents, max(TRAINED_WITH, PER_LIST * lists))))

    def _insert(self, labels: Labels, vectors: Vectors) -> None:
        """Train on the first vectors where needed."""
        assert int(labels[0]) == self._index.ntotal
        if not self._index.is_trained:
            self._train(vectors)
        self._index.add(bit_codes(vectors) if self._is_binary else vectors)

    def _train(self, vectors: Vectors) -> None:
        try:
            self._index.train(vectors)
        except RuntimeError as error:
            reason = str(error).splitlines()[0].rpartition("Error: ")[2]
            self._ids.clear()
            raise StoreError(
                f"{len(vectors)} documents do not train the index {self.index!r} ({reason}): "
                "add more at once, or take an index with fewer lists or codes"
            ) from None

    def _remove(self, labels: Labels) -> None:
        """No-op: the id map masks them."""

    def count(self) -> int:
        """The number of documents that are not masked."""
        return int(self._index.ntotal) - (self._ids.numbers - len(self._ids))

    def _nearest(self, vector: Vectors, k: int) -> Neighbours:
        """May be short, by unprobed lists or graph islands, unless everything is requested."""
        if self._ids.dead:
            return self._search_filtered(vector, k, ())
        k = min(k, self._ids.numbers)
        labels, scores = self._query(self._index, vector, k, None)
        if len(labels) < k == self._ids.numbers:
            return self._search_filtered(vector, k, ())
        return labels, scores

    def _search_filtered(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Neighbours:
        """Scan few candidates; for many, widen the search by the filter's selectivity."""
        mask = self._ids.mask(filters)
        passing = int(np.count_nonzero(mask))
        k = min(k, passing)
        if not k:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        if not self._parts.selects:
            return self._sift(vector, k, mask)
        selector = self._faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
        if passing > SCAN_BELOW and self._parts.widens:
            labels, scores = self._query(self._index, vector, k, self._parts.parameters(selector, len(mask) / passing))
            if len(labels) == k:
                return labels, scores
        index, parameters = self._parts.exhaustive(selector)
        return self._query(index, vector, k, parameters)

    def _sift(self, vector: Vectors, k: int, mask: Any) -> Neighbours:
        """For indexes without selectors: request everything, then filter."""
        labels, scores = self._query(self._index, vector, len(mask), None)
        keep = mask[labels]
        return labels[keep][:k], scores[keep][:k]

    def _query(self, index: Any, vector: Vectors, k: int, parameters: Any) -> Neighbours:
        """FAISS pads with −1 if it finds fewer than k."""
        self._one_thread()
        if self._is_binary:
            distances, labels = index.search(bit_codes(vector[None]), k, params=parameters)
            scores = bit_similarity(distances, self.dimensions).astype(np.float32)
        else:
            scores, labels = index.search(vector[None], k, params=parameters)
        if labels[0, -1] < 0:
            kept = labels[0] >= 0
            return labels[0][kept], scores[0][kept]
        return labels[0], scores[0]

    def _vectors(self, labels: Labels) -> Vectors:
        if self._is_binary:
            return signs(np.stack([self._index.reconstruct(int(label)) for label in labels]), self.dimensions)
        index: Any = self._index
        vectors: Vectors = index.reconstruct_batch(labels)
        return vectors

    def _save(self, file: Path) -> None:
        self._write(str(file))

    def _write(self, target: Any) -> None:
        (self._faiss.write_index_binary if self._is_binary else self._faiss.write_index)(self._index, target)

    def size_bytes(self) -> int:
        """Serialised size."""
        flat = self._parts.outer
        if isinstance(flat, self._faiss.IndexFlat):  # a header and the plain vectors
            empty = self._faiss.IndexFlat(self.dimensions, self._faiss.METRIC_INNER_PRODUCT)
            return int(self._faiss.serialize_index(empty).nbytes) + int(flat.ntotal) * int(flat.code_size)
        size = 0

        def count(written: bytes) -> None:
            nonlocal size
            size += len(written)

        self._write(self._faiss.PyCallbackIOWriter(count))  # no copy of the whole in memory
        return size

    def size_model(self) -> SizeModel:
        """Code size, plus links for a graph, ids for lists, originals for refining."""
        parts = self._parts
        if parts.graph is not None:
            m = int(parts.graph.hnsw.nb_neighbors(0)) // 2
            inner = graph_bytes(self.dimensions, m, vector_bytes=_code_size(parts.graph.storage))
        elif parts.lists is not None:
            lists, code = int(parts.lists.nlist), int(parts.lists.code_size)
            inner = SizeModel(code + 8, 4 * lists * self.dimensions, f"n · ({code} + 8) + 4·{lists}·d")
        else:
            code = _code_size(parts.inner)
            inner = SizeModel(code, 0, f"n · {code}")
        if hasattr(parts.inner, "pq"):
            books = int(parts.inner.pq.ksub)
            fixed = inner.fixed + 4 * books * self.dimensions
            inner = SizeModel(inner.per_document, fixed, f"{inner.formula} + 4·{books}·d")
        if parts.refine is None:
            return inner
        exact = int(parts.refine.refine_index.sa_code_size())
        return SizeModel(inner.per_document + exact, inner.fixed, f"{inner.formula} + n · {exact}")


def _factory(faiss: Any, dimensions: int, index: str) -> Any:
    """Binary indexes count in whole bytes."""
    if index.startswith("B"):
        return faiss.index_binary_factory(8 * math.ceil(dimensions / 8), index)
    return faiss.index_factory(dimensions, index, faiss.METRIC_INNER_PRODUCT)


def _code_size(index: Any) -> int:
    return int(index.sa_code_size() if hasattr(index, "sa_code_size") else index.code_size)


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
            raise InputError(f"is not a FAISS index ({str(error).splitlines()[0]})", file=path) from None
        self._ids = _ids(self._id_file(path))
        self.dimensions, self.entries = int(self._index.d), int(self._index.ntotal)
        if len(self._ids) != self.entries:
            raise InputError(f"{len(self._ids)} ids for {self.entries} vectors", file=path, place="id")
        metrics = {faiss.METRIC_INNER_PRODUCT: "ip", faiss.METRIC_L2: "l2", faiss.METRIC_L1: "l1"}
        self._compare_by(metrics.get(self._index.metric_type, f"FAISS's metric {self._index.metric_type}"))
        self._sign = 1.0 if self.metric == "ip" else -1.0

    @classmethod
    def default_id(cls) -> str:
        """Beside the index."""
        return ""

    def search(self, vector: Vectors, k: int) -> Hits:
        """FAISS pads with −1 if it finds fewer."""
        wanted = min(k, self.entries)
        scores, labels = self._index.search(np.ascontiguousarray(vector[None], dtype=np.float32), wanted)
        hits = [(int(label), float(score)) for label, score in zip(labels[0], scores[0], strict=True) if label >= 0]
        return Hits([self._document(self._ids[at]) for at, _ in hits], [self._sign * score for _, score in hits])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """Reconstructed vectors, which are approximate for a compressed index."""
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
        return list(map_array(file).tolist())
    text = file.read_text(encoding="utf-8")
    return list(json.loads(text)) if file.suffix == ".json" else [line for line in text.split("\n") if line]
