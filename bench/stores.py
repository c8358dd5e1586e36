"""How far the harness is from bare metal, in one process and in turns: search times, exact search, memory.

    python bench/stores.py [--documents 500000] [--dimensions 384] [--queries 1000] [--rounds 3] [--small 20000]

1. The search time that the harness reports for faiss, flat and HNSW, against a bare loop over the index: within 10%.
2. Exact search for all queries, top 100: at most 1.2 × the bare matrix product in the same blocks, and not slower than
   sentence-transformers' semantic_search and faiss flat. A peer that is not installed is named and left out.
3. The most memory that exact search takes, the vectors included: below 1.3 × the vectors' own size.

Vectors lie in clusters. Exits 1 if a target is missed or an answer differs.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from turns import in_turns

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.core.clock import now
from bakeoff.embedding.chunking import Chunk
from bakeoff.extensions.storelab.vector_sample import VectorSample, synthetic
from bakeoff.search import brute_force
from bakeoff.search.index import Index
from bakeoff.search.stores.faiss import Faiss

DEPTH, TOP = 100, 100
OVERHEAD, PRODUCT, MEMORY = 1.10, 1.2, 1.3


def main() -> int:
    options = arguments()
    missed = harness_overhead(synthetic(options.small, options.dimensions, 300), options.rounds)
    gc.collect()
    before = psutil.Process().memory_info().rss
    sample = synthetic(options.documents, options.dimensions, options.queries)
    missed |= memory(sample, before)
    missed |= exact_search(sample, options.rounds)
    return int(missed)


def harness_overhead(sample: VectorSample, rounds: int) -> bool:
    """Single queries, one thread: the call that the harness times beside a bare `index.search`, loops in turns.

    Each query counts with its fastest turn: on a busy machine the median tells more of the neighbours.
    """
    print(f"\n1. One query at a time, {sample.name}, top {DEPTH + 1}, {len(sample.queries)} queries")
    print(f"   {'index':<8}{'bare p50 ms':>13}{'harness p50 ms':>16}{'ratio':>8}{'target':>8}")
    missed = False
    for name, turns in (("Flat", 5 * rounds), ("HNSW32", 40 * rounds)):
        with tempfile.TemporaryDirectory() as folder:
            store = Faiss(dimensions=sample.dimensions, folder=Path(folder), index=name)
            store.add(sample.ids, sample.documents)
        index = Index([Chunk(item, item, "") for item in sample.ids], DEPTH)
        fastest = {search: np.full(len(sample.queries), np.inf) for search in (bare_search, harness_search)}
        for turn in range(turns):
            for search in list(fastest) if turn % 2 else list(fastest)[::-1]:
                taken = [search(store, index, query) for query in sample.queries]
                fastest[search] = np.minimum(fastest[search], taken)
        bare, ours = (float(np.median(taken)) / 1e6 for taken in fastest.values())
        ratio = ours / bare
        failed = ratio > OVERHEAD
        missed |= failed
        print(
            f"   {name:<8}{bare:>13.4f}{ours:>16.4f}{ratio:>8.3f}{OVERHEAD:>8}",
            "MISSED" * failed,
        )
    return missed


def bare_search(store: Faiss, index: Index, query: Any) -> int:
    start = now()
    store._index.search(query[None], index.fetch_size())
    return now() - start


def harness_search(store: Faiss, index: Index, query: Any) -> int:
    start = now()
    store.search(query, index.fetch_size(), {})
    return now() - start


def exact_search(sample: VectorSample, rounds: int) -> bool:
    """All queries together, all cores, the fastest of several turns."""
    print(f"\n2. Exact search, {len(sample.queries)} queries × {sample.name}, top {TOP}, the fastest of {rounds} turns")
    jobs: dict[str, Callable[[], Any]] = {
        "bare product": lambda: product(sample),
        "bakeoff": lambda: brute_force.nearest(sample.queries, sample.documents, TOP),
        "faiss flat": faiss_flat(sample),
    }
    if importlib.util.find_spec("sentence_transformers"):
        jobs["sentence-transformers"] = semantic_search(sample)
    else:
        print("   sentence-transformers is not installed: left out")
    times, _, answers = in_turns(jobs, rounds)
    for name, seconds in times.items():
        print(f"   {name:<22}{seconds:>8.2f} s")
    rows, scores = answers["bakeoff"]
    missed = False
    print(f"   {'bakeoff against':<24}{'ratio':>8}{'target':>10}{'same answers':>14}")
    for peer, target in (("bare product", PRODUCT), ("faiss flat", 1.0), ("sentence-transformers", 1.0)):
        if peer not in times:
            continue
        ratio = times["bakeoff"] / times[peer]
        same = 1.0 if answers[peer] is None else agreement(rows, scores, *answers[peer])
        failed = ratio > target or same < 0.9999
        missed |= failed
        print(f"   {peer:<24}{ratio:>8.2f}{f'≤ {target}':>10}{same:>14.5f}", "MISSED" * failed)
    return missed


def product(sample: VectorSample) -> None:
    """The multiplications alone, in blocks of the same size, into one buffer."""
    out = np.empty((len(sample.queries), brute_force.BLOCK), dtype=np.float32)
    for start in range(0, len(sample.documents), brute_force.BLOCK):
        block = sample.documents[start : start + brute_force.BLOCK]
        np.matmul(sample.queries, block.T, out=out[:, : len(block)] if len(block) < brute_force.BLOCK else out)


def faiss_flat(sample: VectorSample) -> Callable[[], Any]:
    import faiss

    index = faiss.IndexFlatIP(sample.dimensions)
    index.add(sample.documents)

    def search() -> Any:
        faiss.omp_set_num_threads(psutil.cpu_count() or 1)
        scores, rows = index.search(sample.queries, TOP)
        return rows, scores

    return search


def semantic_search(sample: VectorSample) -> Callable[[], Any]:
    import torch
    from sentence_transformers.util import dot_score
    from sentence_transformers.util import semantic_search as search_all

    queries, documents = torch.from_numpy(sample.queries), torch.from_numpy(sample.documents)

    def search() -> Any:
        found = search_all(queries, documents, top_k=TOP, score_function=dot_score)
        rows = np.array([[hit["corpus_id"] for hit in hits] for hits in found])
        return rows, np.array([[hit["score"] for hit in hits] for hits in found])

    return search


def agreement(rows: Any, scores: Any, other_rows: Any, other_scores: Any) -> float:
    """Shared neighbours; one more counts where only the last digits of its score differ."""
    if np.abs(scores - other_scores).max() > 1e-4:
        return 0.0
    shared = [len(np.intersect1d(mine, theirs)) / TOP for mine, theirs in zip(rows, other_rows, strict=True)]
    return float(np.mean(shared))


def memory(sample: VectorSample, before: int) -> bool:
    """The peak while exact search runs, over what the process had before there were vectors."""
    process = psutil.Process()
    peak, done = process.memory_info().rss, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    brute_force.nearest(sample.queries, sample.documents, TOP)
    done.set()
    watcher.join()
    ratio = (peak - before) / sample.documents.nbytes
    failed = bool(ratio >= MEMORY)
    print(
        f"\n3. Memory: {sample.documents.nbytes / 1e6:.0f} MB of vectors, "
        f"peak {(peak - before) / 1e6:.0f} MB with them: {ratio:.2f} ×, target < {MEMORY} ×",
        "MISSED" * failed,
    )
    return failed


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--small", type=int, default=20_000, help="documents for single queries")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
