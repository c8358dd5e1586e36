"""Native tasks on disk: the one fixture of every test that needs such files.

The default one is small enough to be worked out by hand. Its words are shared so that BM25's order is plain: document 1
answers q1, document 2 answers q2, nothing answers q3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bakeoff.core.files import read_json, write_json
from bakeoff.extensions.testsets.new_task import write_task
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.tasks.formats.native import QueryFile

Grades = Mapping[str, Mapping[str, int]]

TEXTS = {1: ("Copper", "copper mine"), 2: ("Boats", "sailing lake"), 3: ("Trees", "forest trail")}
QUERIES = {"q1": "copper", "q2": "lake", "q3": "volcano"}
GRADES = {"q1": {"1": 3, "2": 0, "3": 0}, "q2": {"1": 0, "2": 2, "3": 1}, "q3": {"1": 0, "2": 0, "3": 0}}


def pages(texts: Mapping[int, tuple[str, str]] = TEXTS) -> list[dict[str, Any]]:
    """Articles by number, each a title and a summary."""
    return [
        {"page_id": number, "title": title, "summary": summary, "categories": ["city"]}
        for number, (title, summary) in texts.items()
    ]


def native_files(
    articles: Sequence[Mapping[str, Any]] | None = None,
    queries: Mapping[str, str] = QUERIES,
    grades: Grades = GRADES,
    *,
    category: Callable[[str], str] = lambda query: "x",
    where: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The content of the three files, by their names."""
    entries = [
        {
            "query_id": query,
            "query_text": text,
            "category": category(query),
            "where": (where or {}).get(query, {}),
        }
        for query, text in queries.items()
    ]
    return {
        "articles": {"articles": articles or pages()},
        "queries": {"queries": entries},
        "truth": {"grades": grades},
    }


def write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """One JSON file each; a text is written as it is, so that a test can break it."""
    for name, content in files.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))


def write_lineup(
    folder: Path, files: Mapping[str, Any], *, contenders: str, head: str = "", task: str = "", name: str = "own"
) -> Path:
    """The files and a line-up over them: `head` before the task, `task` in it, `contenders` after it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder, files)
    path = folder / f"{name}.toml"
    path.write_text(
        f'{head}\n[task]\nformat = "native"\narticles = "articles.json"\nqueries = "queries.json"\n'
        f'ground_truth = "truth.json"\n{task}\n{contenders}'
    )
    return path


def ungraded_task(folder: Path) -> Path:
    """Three documents and two queries as `queries generate` leaves them: a task folder without grades."""
    write_files(folder, native_files(queries={"q1": "digging for metal", "q2": "a day on the water"}, grades={}))
    return write_task(folder / "task", folder / "articles.json", read_json(folder / "queries.json", QueryFile))


def open_task(folder: Path) -> TaskFolder:
    return TaskFolder.open(str(folder / "task" / "task.toml"))


def annotate(folder: Path, who: str, grades: Grades, kind: str = "person") -> None:
    write_json(folder / "task" / "annotations" / f"{who}.json", {"metadata": {"kind": kind}, "grades": grades})


def without_annotations(queries: Path) -> None:
    """Takes the grades that built-in queries repeat out of a copy, for a test that changes its ground truth."""
    content = json.loads(queries.read_text(encoding="utf-8"))
    for query in content["queries"]:
        for repeated in ("relevance_annotations", "expected_results"):
            query.pop(repeated, None)
    queries.write_text(json.dumps(content), encoding="utf-8")
