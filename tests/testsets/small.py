"""A task small enough to be worked out by hand: three documents, two queries, no grades yet."""

from __future__ import annotations

import json
from pathlib import Path

from bakeoff.core.files import write_json
from bakeoff.tasks.formats.native import Article, ArticleFile, QueryEntry, QueryFile
from bakeoff.testsets.task_folder import TaskFolder, write_task

TEXTS = {1: ("Copper", "copper mine"), 2: ("Boats", "sailing lake"), 3: ("Trees", "forest trail")}
QUERIES = {"q1": "digging for metal", "q2": "a day on the water"}


def make_task(folder: Path) -> Path:
    articles = [Article(page_id=n, title=title, summary=text) for n, (title, text) in TEXTS.items()]
    write_json(folder / "articles.json", ArticleFile(articles=articles))
    entries = [
        QueryEntry(query_id=q, query_text=text, category="x", expected_results=[], relevance_annotations={})
        for q, text in QUERIES.items()
    ]
    return write_task(folder / "task", folder / "articles.json", QueryFile(queries=entries))


def open_task(folder: Path) -> TaskFolder:
    return TaskFolder.open(str(folder / "task" / "task.toml"))


def annotate(folder: Path, who: str, grades: dict[str, dict[str, int]], kind: str = "person") -> None:
    path = folder / "task" / "annotations" / f"{who}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"metadata": {"kind": kind}, "grades": grades}))
