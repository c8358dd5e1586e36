"""What bench/scale.py measures, one function per side; each runs in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from own_process import peak_mb, printed

DIMENSIONS, DEPTH, BATCH, ASKED, READINGS = 384, 100, 1024, 1_000, 4
LINEUP = """name = "scale"
task = {{ format = "beir", folder = "{folder}" }}
measures = ["ndcg@10", "recall@100"]
rounds = 1
depth = 100
[[contender]]
provider = "{provider}"
store = "faiss"
options = {{ {options} }}
"""
IDENTITY: dict[str, str | int | float | bool | None] = {"provider": "scale", "dimensions": DIMENSIONS}


def generate(folder: Path, documents: str, queries: str) -> dict[str, float]:
    """A BEIR folder, vectors for it and line-ups: each query is near one document, which is the relevant one."""
    import numpy as np

    task, count, asked = folder / "task", int(documents), int(queries)
    generate_texts(folder, documents, queries, "12")
    random = np.random.default_rng(1)
    matrix = np.lib.format.open_memmap(task / "documents.npy", "w+", np.float32, (count, DIMENSIONS))
    for start in range(0, count, 10_000):
        block = matrix[start : start + 10_000]
        block[:] = random.standard_normal(block.shape, dtype=np.float32)
    noise = random.standard_normal((asked, DIMENSIONS), dtype=np.float32)
    np.save(task / "queries.npy", matrix[_relevant(count, asked)] + 2 * noise)
    (task / "documents.ids.txt").write_text("\n".join(f"d{number}" for number in range(count)))
    (task / "queries.ids.txt").write_text("\n".join(f"q{number}" for number in range(asked)))
    files = f'documents = "{task}/documents.npy", queries = "{task}/queries.npy"'
    (folder / "lineup.toml").write_text(LINEUP.format(folder=task, provider="precomputed", options=files))
    return {}


def generate_texts(folder: Path, documents: str, queries: str, length: str) -> dict[str, float]:
    """The same without vectors: documents of so many words, and line-ups that need none."""
    import numpy as np

    task, count, asked = folder / "task", int(documents), int(queries)
    random = np.random.default_rng(0)
    words = np.array([f"w{number:05d}" for number in range(30_000)])
    (task / "qrels").mkdir(parents=True)
    with (task / "corpus.jsonl").open("w") as corpus:
        for start in range(0, count, 10_000):
            drawn = words[random.integers(0, len(words), (min(10_000, count - start), int(length)))]
            for row, text in enumerate(drawn):
                corpus.write(f'{{"_id": "d{start + row}", "title": "", "text": "{" ".join(text)}"}}\n')
    texts = [f'{{"_id": "q{number}", "text": "query {number}"}}\n' for number in range(asked)]
    (task / "queries.jsonl").write_text("".join(texts))
    grades = [f"q{number}\td{row}\t1\n" for number, row in enumerate(_relevant(count, asked))]
    (task / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(grades))
    fake = LINEUP.format(folder=task, provider="fake", options=f"dimensions = {DIMENSIONS}")
    (folder / "fake.toml").write_text(fake)
    head, _, _ = fake.partition("[[contender]]")
    (folder / "bm25.toml").write_text(head + '[[contender]]\nranker = "bm25"\n')
    (folder / "hosted.toml").write_text(head + '[[contender]]\nprovider = "openai"\nstore = "faiss"\n')
    return {}


def _relevant(documents: int, queries: int) -> Any:
    import numpy as np

    return np.linspace(0, documents - 1, queries).astype(int)


def by_dry_run(folder: Path) -> dict[str, float]:
    """What a run with a hosted provider would cost: nothing is asked."""
    return by_run(folder, "hosted.toml", "--dry-run")


def by_run(folder: Path, lineup: str = "lineup.toml", *more: str) -> dict[str, float]:
    """`bakeoff run`, results and page included."""
    from bakeoff.cli.main import main

    sys.argv = ["bakeoff", "run", str(folder / lineup), "--out", str(folder / "results"), *more]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    return {}


def by_script(folder: Path) -> dict[str, float]:
    """The same by hand: read texts and vectors, normalise, add, search one by one, score NDCG@10 and recall@100."""
    import faiss
    import msgspec
    import numpy as np

    faiss.omp_set_num_threads(1)
    task, index, texts = folder / "task", faiss.IndexFlatIP(DIMENSIONS), []
    with (task / "corpus.jsonl").open("rb") as corpus:
        for line in corpus:
            document = msgspec.json.decode(line)
            texts.append((document["_id"], document["text"]))
    rows = {name: row for row, name in enumerate((task / "documents.ids.txt").read_text().split())}
    matrix = np.load(task / "documents.npy", mmap_mode="r")
    for start in range(0, len(texts), BATCH):
        block = matrix[[rows[name] for name, _ in texts[start : start + BATCH]]]
        index.add(block / np.linalg.norm(block, axis=1, keepdims=True))
    grades: dict[str, dict[str, int]] = {}
    for judgment in (task / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, name, grade = judgment.split("\t")
        grades.setdefault(query, {})[name] = int(grade)
    ndcg, recall = [], []
    for line, vector in zip((task / "queries.jsonl").open("rb"), np.load(task / "queries.npy"), strict=True):
        _, found = index.search(vector[None] / np.linalg.norm(vector), DEPTH)
        wanted = grades[msgspec.json.decode(line)["_id"]]
        gains = [wanted.get(texts[row][0], 0) for row in found[0]]
        ideal = sorted(wanted.values(), reverse=True)[:10]
        discounts = 1 / np.log2(np.arange(2, 12))
        ndcg.append(np.dot(gains[:10], discounts) / np.dot(ideal, discounts[: len(ideal)]))
        recall.append(np.count_nonzero(gains) / len(wanted))
    return {"ndcg": float(np.mean(ndcg)), "recall": float(np.mean(recall))}


def by_exact(folder: Path) -> dict[str, float]:
    """Memory that truth and loss add: the exact top 100 of the queries over the cached vectors, and what lists lack.

    The lists that are held against the truth have the relevant document second, after one that has no grade.
    """
    rows = _cached(folder)
    import numpy as np
    from bakeoff.core.ranking import Ranking
    from bakeoff.extensions.vectors.transfer import one_embedding
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.running.embeddings import Embeddings
    from bakeoff.running.settings import Settings
    from bakeoff.search.brute_force import nearest
    from bakeoff.search.exact_search import ExactSearch
    from bakeoff.search.loss import index_loss
    from bakeoff.tasks.kinds import load_kind

    lineup = Lineup.read(folder / "lineup.toml")
    task = load_kind(lineup.task, lineup.folder, lineup.overrides).task()
    index = Embeddings(task, DEPTH, Settings(), lineup.folder).index(one_embedding(lineup, None))
    relevant = _relevant(len(rows), len(task.queries))
    queries = np.ascontiguousarray(rows[relevant])
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    others = [f"d{row}" for row in np.setdiff1d(np.arange(min(len(rows), 2 * DEPTH + len(relevant))), relevant)]
    scores = tuple(np.linspace(1, 0, DEPTH).tolist())
    lists = [[others[0], f"d{row}", *others[1:]][:DEPTH] for row in relevant]
    retrieved = {
        query.id: Ranking(tuple(ids), scores[: len(ids)]) for query, ids in zip(task.queries, lists, strict=True)
    }
    search = ExactSearch(index, {query.id: vector for query, vector in zip(task.queries, queries, strict=True)}, rows)
    added, _ = _added(lambda: nearest(queries, rows, DEPTH + 1))
    loss_added, loss = _added(lambda: index_loss(search, task, retrieved))
    figures = {"ndcg_exact": loss.ndcg_exact, "ndcg_lost": loss.ndcg_lost, "recall": loss.recall}
    return {"added_mb": added, "loss_added_mb": loss_added, **figures}


def _added(work: Callable[[], Any]) -> tuple[float, Any]:
    """How far the peak rises while this is done, and what it gives."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak counts from here
    before = peak_mb()
    found = work()
    return peak_mb() - before, found


def by_cache(folder: Path) -> dict[str, float]:
    """Opening the space, which checks every byte, and reading all vectors as they were bought; without imports."""
    from bakeoff.embedding.cache import VectorCache

    def read() -> Any:
        space = VectorCache(folder / "cache").space(IDENTITY)
        return space.take(space.places())

    return _least(read)


def by_load(folder: Path) -> dict[str, float]:
    """`np.load` of the same bytes."""
    import numpy as np

    return _least(lambda: np.load(folder / "task" / "documents.npy"))


def _least(read: Callable[[], Any]) -> dict[str, float]:
    """CPU time of the quickest reading: a virtual machine may take a second to give the first gigabyte of memory."""
    seconds = []
    for _ in range(READINGS):
        start = time.process_time()
        vectors = read()
        seconds.append(time.process_time() - start)
        size = float(vectors.nbytes)
        del vectors
    return {"read_seconds": min(seconds), "bytes": size}


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


def by_kill(folder: Path) -> dict[str, float]:
    """A run that is killed (SIGKILL) in the middle of embedding, and the same run again: what was asked for twice."""
    command = [sys.executable, __file__.replace("_sides", ""), "--side", "by_run", "fake.toml", "--folder", str(folder)]
    kept = folder / "home" / "vectors"
    total = sum(1 for _ in (folder / "task" / "corpus.jsonl").open("rb"))
    half = total * DIMENSIONS * 4 // 2
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    while running.poll() is None and sum(file.stat().st_size for file in kept.glob("*/*.f32")) < half:
        time.sleep(0.05)
    assert running.poll() is None, "the run ended before it was killed"
    running.send_signal(signal.SIGKILL)
    running.wait()
    after_kill = _rows(kept)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ, check=True)
    in_files = sum(file.stat().st_size for file in kept.glob("*/*.f32")) // (4 * DIMENSIONS)
    return {"after_kill": after_kill, "twice": float(in_files - _rows(kept)), "all": float(_rows(kept))}


def _rows(kept: Path) -> float:
    from bakeoff.embedding.cache import VectorCache

    return float(sum(space.vectors for space in VectorCache(kept).spaces()))


def by_browser(folder: Path) -> dict[str, float]:
    """Seconds until the page has loaded and can be used, in Chromium; the median of three."""
    from report import opened

    *_, page = sorted((folder / "results").glob("*/evaluation_report.html"))
    loaded, drawn = opened(page, 3, charts=True)
    return {"loaded": loaded, "drawn": drawn}


def _cached(folder: Path) -> Any:
    """All vectors of the shards, where they are on disk."""
    from bakeoff.embedding.cache import VectorCache
    from bakeoff.embedding.vector_rows import VectorRows

    space = VectorCache(folder / "cache").space(IDENTITY)
    return VectorRows(space, space.places(), (), DIMENSIONS)


def child(side: str, folder: Path, *more: str) -> dict[str, float]:
    """One side in a process of its own: CPU seconds, peak memory, and what it found out itself."""
    place, home = folder.resolve(), str(folder.resolve() / "home")
    command = ["scale.py", "--side", side, *more, "--folder", str(place)]
    figures: dict[str, float] = printed(*command, OMP_NUM_THREADS="1", BAKEOFF_HOME=home)
    return figures
