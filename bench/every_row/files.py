"""Writes the line-up with every row type, its task and all that it names into a folder."""

from __future__ import annotations

import json
import shutil
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np

from every_row import mine
from tests.threaded_server import ThreadedServer

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


class SearchServer(ThreadedServer):
    """Answers as `mine.search` does and counts the queries."""

    def __init__(self, folder: Path) -> None:
        super().__init__(_Handler)
        self.articles = folder / "articles.json"
        self.queries: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    owner: SearchServer

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.owner.queries.append(body["query"])
        found = mine.search_in(self.owner.articles, body["query"], int(body["size"]))
        hits = [{"id": page, "score": score} for page, score in found]
        payload = json.dumps({"hits": hits}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def write_files(folder: Path, wire: str, search: str) -> tuple[Path, Path]:
    """Two line-ups over the built-in articles and queries: with every row, and those that can filter with filters."""
    shutil.copy(HERE / "mine.py", folder)
    articles = json.loads((ROOT / "corpora" / "wikipedia" / "evaluate_articles.json").read_bytes())
    queries = json.loads((ROOT / "queries" / "wikipedia" / "evaluate_queries.json").read_bytes())
    truth = json.loads((ROOT / "queries" / "wikipedia" / "ground_truth.json").read_bytes())
    filtered = [query | {"where": _filter(query["query_text"])} for query in queries["queries"]]
    for name, content in (
        ("articles", articles),
        ("queries", queries),
        ("filtered-queries", {"queries": filtered}),
        ("truth", truth),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
    _write_index(folder, articles["articles"])
    for seed in (1, 2):
        _write_answers(folder / f"given-{seed}.jsonl", truth["grades"], seed)
    _write_grading(folder / "grading", articles, queries["queries"][::4])
    every, some = (folder / f"{name}.toml" for name in ("every-row", "filtered"))
    every.write_text((HERE / "lineup.toml").read_text().replace("WIRE", wire).replace("SEARCH", search))
    some.write_text((HERE / "filtered.toml").read_text().replace("WIRE", wire))
    return every, some


def _write_grading(folder: Path, articles: dict[str, Any], queries: list[dict[str, Any]]) -> None:
    """A task without grades."""
    folder.mkdir()
    kept = ("query_id", "query_text", "category")
    (folder / "articles.json").write_text(json.dumps(articles))
    (folder / "queries.json").write_text(json.dumps({"queries": [{key: q[key] for key in kept} for q in queries]}))
    text = 'name = "grading"\nformat = "native"\narticles = "articles.json"\nqueries = "queries.json"\n'
    (folder / "task.toml").write_text(text)


def _filter(text: str) -> dict[str, str | list[str]]:
    if "Utah" in text:
        return {"state": "Utah"}
    return {"state": ["California", "Nevada"]} if "California" in text or "San Francisco" in text else {}


def _write_index(folder: Path, articles: list[dict[str, str]]) -> None:
    """A FAISS index of two entries for each document but the last."""
    import faiss

    entries = [(f"{a['page_id']}#{part}", a[part]) for a in articles[:-1] for part in ("title", "summary")]
    vectors = mine.embed([text for _, text in entries])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = faiss.IndexFlatIP(mine.D)
    index.add(vectors.astype(np.float32))
    faiss.write_index(index, str(folder / "documents.faiss"))
    (folder / "ids.txt").write_text("\n".join(name for name, _ in entries))


def _write_answers(path: Path, grades: dict[str, dict[str, int]], seed: int) -> None:
    """Grades with noise, as scores."""
    rng = np.random.default_rng(seed)
    lines = []
    for query, graded in grades.items():
        scores = {page: round(grade + rng.normal(0, 1.5), 6) for page, grade in graded.items()}
        ranked = sorted(scores, key=lambda page: -scores[page])[:15]
        lines.append(json.dumps({"query": query, "ranked": ranked, "scores": [scores[page] for page in ranked]}))
    path.write_text("\n".join(lines) + "\n")
