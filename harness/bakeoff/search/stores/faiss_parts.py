"""What is inside a FAISS index: its graph, its lists, what it refines with, and how a filter is passed down to it."""

from __future__ import annotations

from typing import Any


class FaissParts:
    """The index with its wrappers taken off: what reads ef, nprobe and k_factor, and how to pass a selector down."""

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
        """Whether a search can look further for what passes a filter; FAISS's binary graphs can't."""
        return not (self.binary and self.graph is not None)

    @property
    def selects(self) -> bool:
        """Whether this kind can skip what a selector excludes."""
        faiss = self._faiss
        scanned = (faiss.IndexFlat, faiss.IndexScalarQuantizer, faiss.IndexRaBitQ, faiss.IndexBinaryFlat)
        return self.graph is not None or self.lists is not None or isinstance(self.inner, scanned)

    def parameters(self, selector: Any, widen: float) -> Any:
        """What goes with a filtered search: a graph needs a list that is longer by what the filter drops."""
        faiss = self._faiss
        if self.graph is not None:
            ef = min(int(self.graph.hnsw.efSearch * widen) + 1, int(self.graph.ntotal))
            inner = faiss.SearchParametersHNSW(sel=selector, efSearch=ef)
        elif self.lists is not None:
            inner = self._probing(selector, min(int(self.lists.nprobe * widen) + 1, int(self.lists.nlist)))
        else:
            inner = faiss.SearchParameters(sel=selector)
        return self._wrapped(inner)

    def exhaustive(self, selector: Any) -> tuple[Any, Any]:
        """An index and parameters that miss nothing that passes: a graph's own vectors, all lists, the originals."""
        faiss = self._faiss
        if self.refine is not None and isinstance(faiss.downcast_index(self.refine.refine_index), faiss.IndexFlat):
            return self.refine.refine_index, faiss.SearchParameters(sel=selector)
        if self.graph is not None and self.inner is self.outer:
            storage = faiss.downcast_IndexBinary(self.graph.storage) if self.binary else self.graph.storage
            return storage, faiss.SearchParameters(sel=selector)
        if self.lists is not None:
            return self.outer, self._wrapped(self._probing(selector, int(self.lists.nlist)))
        return self.outer, self.parameters(selector, float(self.outer.ntotal))

    def _probing(self, selector: Any, probes: int) -> Any:
        faiss = self._faiss
        kind = faiss.IVFPQSearchParameters if isinstance(self.lists, faiss.IndexIVFPQ) else faiss.SearchParametersIVF
        return kind(sel=selector, nprobe=probes)

    def _wrapped(self, inner: Any) -> Any:
        faiss = self._faiss
        for part in reversed(self.all):
            if isinstance(part, faiss.IndexRefine):
                inner = faiss.IndexRefineSearchParameters(k_factor=part.k_factor, base_index_params=inner)
            elif isinstance(part, faiss.IndexPreTransform):
                inner = faiss.SearchParametersPreTransform(index_params=inner)
        return inner
