"""A large corpus on one machine, each side in a process of its own: python bench/scale.py [--documents 100000]

Texts and vectors are generated (`precomputed`), so that anybody can run it. Memory is the peak of the resident set
(VmHWM), time is CPU time, so that other work on the machine does not count. Goals are those of docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DIMENSIONS, QUERIES, DEPTH, BATCH = 384, 1_000, 100, 1024
LINEUP = """name = "scale"
task = {{ format = "beir", folder = "{folder}" }}
measures = ["ndcg@10", "recall@100"]
rounds = 1
depth = 100
[[contender]]
provider = "precomputed"
store = "faiss"
options = {{ documents = "{folder}/documents.npy", queries = "{folder}/queries.npy" }}
"""
IDENTITY: dict[str, str | int | float | bool | None] = {"provider": "scale", "dimensions": DIMENSIONS}


def generate(folder: Path, documents: int, asked_for: int) -> dict[str, float]:
    """A BEIR folder, and vectors for it: each query lies near one document, which is the relevant one."""
    import numpy as np

    random = np.random.default_rng(0)
    words = np.array([f"w{number:05d}" for number in range(30_000)])
    (folder / "qrels").mkdir(parents=True)
    matrix = np.lib.format.open_memmap(folder / "documents.npy", "w+", np.float32, (documents, DIMENSIONS))
    relevant = np.linspace(0, documents - 1, asked_for).astype(int)
    with (folder / "corpus.jsonl").open("w") as corpus:
        for start in range(0, documents, 10_000):
            size = min(10_000, documents - start)
            matrix[start : start + size] = random.standard_normal((size, DIMENSIONS), dtype=np.float32)
            for row, drawn in enumerate(words[random.integers(0, len(words), (size, 12))]):
                corpus.write(f'{{"_id": "d{start + row}", "title": "", "text": "{" ".join(drawn)}"}}\n')
    noise = random.standard_normal((asked_for, DIMENSIONS), dtype=np.float32)
    np.save(folder / "queries.npy", matrix[relevant] + 2 * noise)
    (folder / "documents.ids.txt").write_text("\n".join(f"d{number}" for number in range(documents)))
    (folder / "queries.ids.txt").write_text("\n".join(f"q{number}" for number in relevant))
    asked = [f'{{"_id": "q{number}", "text": "query {number}"}}\n' for number in relevant]
    (folder / "queries.jsonl").write_text("".join(asked))
    grades = [f"q{number}\td{number}\t1\n" for number in relevant]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(grades))
    return {}


def by_run(folder: Path) -> dict[str, float]:
    """`bakeoff run`, results and page included; what it read and wrote stays for the other sides."""
    from bakeoff.cli import main

    sys.argv = ["bakeoff", "run", str(folder / "lineup.toml"), "--out", str(folder / "results")]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    return {}


def by_script(folder: Path) -> dict[str, float]:
    """The same by hand: read texts and vectors, normalise, add, search one by one, score."""
    import faiss
    import msgspec
    import numpy as np

    faiss.omp_set_num_threads(1)
    task, index, texts = folder / "task", faiss.IndexFlatIP(DIMENSIONS), []
    with (task / "corpus.jsonl").open("rb") as corpus:
        for line in corpus:
            document = msgspec.json.decode(line)
            texts.append((document["_id"], document["text"]))
    ids = {name: row for row, name in enumerate((task / "documents.ids.txt").read_text().split())}
    matrix = np.load(task / "documents.npy", mmap_mode="r")
    for start in range(0, len(texts), BATCH):
        block = matrix[[ids[name] for name, _ in texts[start : start + BATCH]]]
        index.add(block / np.linalg.norm(block, axis=1, keepdims=True))
    gains = []
    for line, vector in zip((task / "queries.jsonl").open("rb"), np.load(task / "queries.npy"), strict=True):
        _, found = index.search(vector[None] / np.linalg.norm(vector), DEPTH)
        name = "d" + msgspec.json.decode(line)["_id"][1:]
        places = [place for place, row in enumerate(found[0][:10]) if texts[row][0] == name]
        gains.append(1 / np.log2(places[0] + 2) if places else 0.0)
    return {"ndcg": float(np.mean(gains))}


def by_exact(folder: Path) -> dict[str, float]:
    """The exact top 100 of the queries over the cached vectors, as truth and loss need it: memory that it adds."""
    rows = _cached(folder)
    import numpy as np
    from bakeoff.search.exact import nearest

    queries = np.ascontiguousarray(rows[np.linspace(0, len(rows) - 1, QUERIES).astype(np.int64)])
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak counts from here
    before = _peak_mb()
    nearest(queries, rows, DEPTH + 1)
    return {"added_mb": _peak_mb() - before}


def by_cache(folder: Path) -> dict[str, float]:
    """Opening the space, which checks every byte, and reading all vectors as they were bought."""
    start = time.process_time()
    rows = _cached(folder)
    vectors = rows.space.take(rows.places)
    return {"read_seconds": time.process_time() - start, "bytes": float(vectors.nbytes)}


def by_load(folder: Path) -> dict[str, float]:
    """`np.load` of the same bytes."""
    import numpy as np

    start = time.process_time()
    vectors = np.load(folder / "task" / "documents.npy")
    return {"read_seconds": time.process_time() - start, "bytes": float(vectors.nbytes)}


def to_cache(folder: Path) -> dict[str, float]:
    """The vectors in shards, as a provider that answers batches of 256 would leave them."""
    import numpy as np
    from bakeoff.embedding.cache import VectorCache

    space = VectorCache(folder / "cache").space(IDENTITY)
    matrix = np.load(folder / "task" / "documents.npy", mmap_mode="r")
    for start in range(0, len(matrix), 256):
        block = matrix[start : start + 256]
        space.put([f"d{start + row}" for row in range(len(block))], block, tokens=None)
    space.close()
    return {}


def _cached(folder: Path) -> Any:
    """All vectors of the shards, where they are on disk."""
    from bakeoff.embedding.cache import VectorCache
    from bakeoff.embedding.vector_rows import VectorRows

    space = VectorCache(folder / "cache").space(IDENTITY)
    return VectorRows(space, space.places(), (), DIMENSIONS)


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def make_task(folder: Path, documents: str, queries: str) -> dict[str, float]:
    """In a process of its own too: the peak of a child counts from its parent's size."""
    return generate(folder / "task", int(documents), int(queries))


def child(side: str, folder: Path, *more: str) -> dict[str, float]:
    """One side in a process of its own: CPU seconds, peak memory, and what it found out itself."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "BAKEOFF_HOME": str(folder / "home")}
    command = [sys.executable, __file__, "--side", side, *more, "--folder", str(folder)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--folder", type=Path, help="keep everything here; what is there already is not made again")
    parser.add_argument("--side", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        figures = globals()[options.side[0]](options.folder, *options.side[1:])
        print(json.dumps({"cpu": time.process_time(), "peak_mb": _peak_mb(), **figures}))
        return 0
    with tempfile.TemporaryDirectory(prefix="bakeoff-scale-") as temporary:
        return measure(options.folder or Path(temporary), options.documents, options.queries)


def measure(folder: Path, documents: int, queries: int) -> int:
    """Prints the table; 1 if a goal is missed."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "task").exists():
        child("make_task", folder, str(documents), str(queries))
    (folder / "lineup.toml").write_text(LINEUP.format(folder=folder / "task"))
    vectors_mb = documents * DIMENSIONS * 4 / 2**20
    run, script = child("by_run", folder), child("by_script", folder)
    if not (folder / "cache").exists():
        child("to_cache", folder)
    exact, cache, load = child("by_exact", folder), child("by_cache", folder), child("by_load", folder)
    *_, page = sorted((folder / "results").glob("*/evaluation_report.html"))
    rows = [
        ("peak of `run` over FAISS flat, MB", run["peak_mb"], 1.6 * vectors_mb + 400),
        ("exact top 100 of 1,000 queries: added MB", exact["added_mb"], 300),
        ("CPU of `run` / of a bare script", run["cpu"] / script["cpu"], 1.3),
        ("cached vectors read back / np.load", cache["read_seconds"] / load["read_seconds"], 2),
        ("page, MB", page.stat().st_size / 1e6, 5),
    ]
    print(f"{documents:,} documents × {DIMENSIONS} ({vectors_mb:,.0f} MB of vectors), {queries:,} queries, top {DEPTH}")
    for name, figure, goal in rows:
        print(f"  {name:<45} {figure:10,.2f}   goal ≤ {goal:,.2f}{'' if figure <= goal else '   MISSED'}")
    print(f"  CPU seconds: run {run['cpu']:.0f}, script {script['cpu']:.0f}; script's peak {script['peak_mb']:,.0f} MB")
    return int(any(figure > goal for _, figure, goal in rows))


if __name__ == "__main__":
    sys.exit(main())
