"""Data that the documentation's examples run on, too large to be kept: always the same, made from seeds."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.extensions.production.simulated_users import EXAMINED

ROOT = Path(__file__).parent.parent
PERSONAL = ("mail ada@example.org", "order 5550 1234 56")


def make(name: str, folder: Path) -> None:
    """Makes one of the folders that a block of the documentation runs in."""
    folder.mkdir(parents=True)
    MAKERS[name](folder)


def _traffic(folder: Path) -> None:
    """A search log, an interleaved one and one of two arms, by users that click as the position-based model says."""
    rng = random.Random(2026)
    queries = [f"query {number}" for number in range(200)]
    wanted = {query: [rng.betavariate(0.4, 1.2) for _ in range(10)] for query in queries}
    weights = [1 / (rank + 1) for rank in range(len(queries))]
    rows: list[dict[str, Any]] = []
    for query in rng.choices(queries, weights, k=6000):
        order = rng.sample(range(10), 10)
        clicks = [at for at, look in zip(order, EXAMINED, strict=True) if rng.random() < look * wanted[query][at]]
        day = f"2026-11-{rng.randint(1, 14):02}T{rng.randint(8, 20):02}:00:00"
        rows.append(_row(query, rng.randrange(1000), order, clicks) | {"time": day})
    rows += [_row(text, 1, [0], []) | {"time": "2026-11-02T09:00:00"} for text in PERSONAL for _ in range(3)]
    _write(folder / "raw.jsonl", rows)
    _write(folder / "interleaved.jsonl", _interleaved(rng))
    _write(folder / "arms.jsonl", _arms(rng))


def _interleaved(rng: random.Random) -> Iterable[dict[str, Any]]:
    """The new system's documents are clicked more often."""
    for _ in range(400):
        team = [side for _ in range(5) for side in rng.sample("ab", 2)]
        clicks = [at for at, side in enumerate(team) if rng.random() < EXAMINED[at] * (0.3 if side == "b" else 0.2)]
        yield _row("any", rng.randrange(150), range(10), clicks) | {"team": team}


def _arms(rng: random.Random) -> Iterable[dict[str, Any]]:
    """Each user meets one arm; in the new one the first click comes earlier."""
    for user in range(600):
        arm = "new" if user % 2 else "old"
        for session in range(rng.randint(1, 4)):
            clicks = [at for at in range(10) if rng.random() < EXAMINED[at] * (0.22 if arm == "new" else 0.16)][:1]
            row = _row("any", user, range(10), clicks)
            yield row | {"arm": arm, "session": f"{user}-{session}", "time": f"2026-11-{session + 1:02}T10:00:00"}


def _row(query: str, user: int, order: Iterable[int], clicks: Iterable[int]) -> dict[str, Any]:
    names = [f"d{at}" for at in order], [f"d{at}" for at in clicks]
    return {"query": query, "user": f"u{user}", "shown": names[0], "clicked": names[1]}


def _live(folder: Path) -> None:
    """A Chroma collection whose graph was built badly on purpose."""
    import chromadb
    import numpy as np

    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(5000, 64)).astype(np.float32)
    client = chromadb.PersistentClient(str(folder / "live"))
    hnsw: Any = {"hnsw": {"space": "cosine", "max_neighbors": 4, "ef_construction": 8, "ef_search": 10}}
    collection = client.create_collection("docs", configuration=hnsw, embedding_function=None)
    for start in range(0, len(vectors), 1000):
        ids = [f"d{number}" for number in range(start, start + 1000)]
        collection.add(ids=ids, embeddings=vectors[start : start + 1000])


def _days(folder: Path) -> None:
    """Runs of bm25 and tfidf on the built-in task, and a later one of bm25 without a stemmer."""
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.save import save
    from bakeoff.running.runner import Settings, run, vectors_folder

    head = 'task = "wikipedia"\nmeasures = ["ndcg@10", "recall@10"]\nrounds = 1\n[[contender]]\nranker = "bm25"\n'
    tuesday = head + 'options = { language = "none" }\n'
    monday = head + '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    (folder / "results").mkdir()
    for name, text in (("monday", monday), ("tuesday", tuesday)):
        (folder / f"{name}.toml").write_text(text)
        saved = save(run(Lineup.read(folder / f"{name}.toml"), Settings(cache=vectors_folder())), folder / "all")
        saved.rename(folder / "results" / name)


def _scifact(folder: Path) -> None:
    """Line-ups over indexes and for sizes, on BEIR's SciFact."""
    data = Path(os.environ["BAKEOFF_DATA"]).resolve()
    scifact = data / "scifact" if (data / "scifact").is_dir() else data
    measures = 'measures = ["ndcg@10", "recall@100"]\nrounds = 1\n'
    head = f'{measures}[task]\nname = "scifact"\nformat = "beir"\nfolder = "{scifact}"\n'
    stores = [
        '{ name = "faiss", label = "hnsw", options = { index = "HNSW32" } }',
        '{ name = "faiss", label = "ivf", options = { index = "IVF256,Flat", nprobe = 2 } }',
        '{ name = "faiss", label = "ivfpq", options = { index = "IVF64,PQ32" } }',
        '{ name = "faiss", label = "rabitq", options = { index = "RaBitQ,RFlat" } }',
        '"chroma"',
    ]
    listed = ", ".join(stores)
    top = head.replace(', "recall@100"]', "]\ndepth = 10")
    (folder / "sizes.toml").write_text(
        head + '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "wordllama"\nstore = "faiss"\n'
    )
    (folder / "indexes.toml").write_text(f'{top}[[contender]]\nprovider = "wordllama"\nstore = [{listed}]\n')


def _shop(folder: Path) -> None:
    """The files that docs/reference/tasks.md shows."""
    text = (ROOT / "docs" / "reference" / "tasks.md").read_text(encoding="utf-8")
    for name, content in re.findall(r"^`(\w+\.\w+)`:\n\n```\w*\n(.*?)^```", text, re.M | re.S):
        (folder / name).write_text(content, encoding="utf-8")


def _gallery(folder: Path) -> None:
    """The line-ups of docs/gallery.md, over BEIR's SciFact."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for name, content in re.findall(r"^`(\w+\.toml)`:\n\n```toml\n(.*?)^```", text, re.M | re.S):
        (folder / name).write_text(content, encoding="utf-8")


def _misspelt(folder: Path) -> None:
    """The same with a slip in the judgments."""
    _shop(folder)
    file = folder / "judgments.csv"
    file.write_text(file.read_text(encoding="utf-8").replace("q1,19,Irrelevant", "q1,19,Exat"), encoding="utf-8")


def _trec(folder: Path) -> None:
    """Qrels, and a run with a score that is none."""
    (folder / "judgments.qrels").write_text("q1 0 d1 1\n", encoding="utf-8")
    (folder / "bad.trec").write_text("q1 Q0 d1 1 0.9 mine\nq1 Q0 d2 2 nan mine\n", encoding="utf-8")


def _sample(folder: Path) -> None:
    """The documents of the built-in task."""
    shutil.copy(ROOT / "corpora" / "wikipedia" / "evaluate_articles.json", folder)


def _audited(folder: Path) -> None:
    """The built-in task, whose first annotator stands for people who graded five queries."""
    from bakeoff.extensions.testsets.new_task import copy_task

    copy_task("wikipedia", folder / "task")
    file = folder / "task" / "annotations" / "annotator_a.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["metadata"]["kind"] = "person"
    content["grades"] = dict(list(content["grades"].items())[::4])
    file.write_text(json.dumps(content), encoding="utf-8")
    (folder / "task" / "annotations" / "adjudication.json").unlink()


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _partly(folder: Path) -> None:
    """The built-in task without a third of its grades, and two contenders that need nothing."""
    from bakeoff.extensions.testsets.new_task import copy_task

    copy_task("wikipedia", folder / "task")
    file, rng = folder / "task" / "ground_truth.json", random.Random(3)
    truth = json.loads(file.read_text())
    truth["grades"] = {
        query: {document: grade for document, grade in sorted(grades.items()) if rng.random() > 1 / 3}
        for query, grades in truth["grades"].items()
    }
    file.write_text(json.dumps(truth))
    file = folder / "task" / "evaluate_queries.json"
    content = json.loads(file.read_text())
    for query in content["queries"]:
        for repeated in ("relevance_annotations", "expected_results"):
            query.pop(repeated, None)
    file.write_text(json.dumps(content))
    (folder / "words.toml").write_text(
        'task = "task"\n[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    )


def _asked(folder: Path) -> None:
    """The help centre with its queries, and no grades."""
    from tests.terminal import bakeoff

    shutil.copytree(ROOT / "tests" / "docs_corpora" / "centre", folder, dirs_exist_ok=True)
    for command in ("corpus import help", "queries import asked.csv"):
        bakeoff(*command.split(), cwd=folder)


MAKERS: dict[str, Callable[[Path], None]] = {
    "empty": lambda folder: None,
    "asked": _asked,
    "traffic": _traffic,
    "live": _live,
    "days": _days,
    "scifact": _scifact,
    "shop": _shop,
    "gallery": _gallery,
    "misspelt": _misspelt,
    "trec": _trec,
    "sample": _sample,
    "audited": _audited,
    "partly": _partly,
}
