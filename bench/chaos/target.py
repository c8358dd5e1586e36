"""What a fuzzed input is: files that are read well, and what reads them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import typer
from bakeoff.cli.main import app
from bakeoff_providers.errors import BakeoffError

SILENT = (
    "serve",
    "annotate",
    "doctor",
    "models",
    "loadtest",
    "sweep",
    "footprint",
    "chat",
)  # they serve, ask or take long
LINEUP = """
name = "fuzz"
measures = ["p@5", "ndcg(gain=exp)@10", "p(rel=2)@5", "mrr"]
primary = "ndcg@10"
depth = 20
rounds = 1
seed = 7
task = { format = "native", articles = "articles.json", queries = "queries.json", ground_truth = "truth.json" }
categories = { a = "about", b = { about = "x", templates = ["{title}?"] } }
[[contender]]
ranker = "bm25"
[[contender]]
provider = "fake"
store = ["faiss", { name = "faiss", label = "flat", options = { index = "flat" } }]
dimensions = [16, 32]
precision = ["float32", "int8"]
options = { dimensions = 64 }
[[contender]]
provider = "openai"
model = "text-embedding-3-small"
store = "chroma"
options = { base_url = "http://127.0.0.1:9/v1" }
[[contender]]
answers = "answers-{seed}.jsonl"
seeds = [1, 2]
label = "given"
[[contender]]
retriever = { url = "http://127.0.0.1:9/search", body = { q = "{text}", size = "{k}" }, ids = "hits.*.id" }
options = { headers = { Authorization = "Bearer ${SEARCH_KEY}" } }
label = "endpoint"
[[rerank]]
of = "bm25"
provider = "fake"
depth = 5
[[fusion]]
label = "both"
of = ["bm25", "fake@16+faiss"]
weights = [0.5, 0.5]
c = 60.0
top_n = 10
"""


SMALL = """
task = { format = "native", articles = "articles.json", queries = "queries.json", ground_truth = "truth.json" }
rounds = 1
contender = [{ ranker = "bm25" }, { answers = "answers.jsonl", label = "given" }]
"""


@dataclass
class Target:
    """Files in a folder, and what reads them. Only our own errors may come out of `attempt`."""

    name: str
    folder: Path
    files: list[str]
    work: Callable[[Path, random.Random], Any]
    _said: list[str] = field(default_factory=list)

    def attempt(self, folder: Path, rng: random.Random) -> None:
        """Reads; bad input is what is expected here."""
        self._said.clear()
        try:
            said = self.work(folder, rng)
            if isinstance(said, str):
                self._said.append(said)
        except BakeoffError:
            pass

    def said(self) -> str:
        """What was typed, for inputs that are command lines."""
        return " ".join(COMMANDS[-1:]) if not self.files else ""


COMMANDS: list[str] = []


def command(*arguments: str) -> None:
    """The command line in this process: usage errors, bad input and ordinary ends are fine."""
    COMMANDS.append(" ".join(arguments))
    try:
        _command_line().main(list(arguments), prog_name="bakeoff", standalone_mode=False)
    except (BakeoffError, SystemExit):
        return
    except Exception as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        if not names & {"ClickException", "Exit", "Abort"}:  # typer has a click of its own
            raise


def load(work: Path, rng: random.Random) -> None:  # noqa: ARG001 - as every target
    """The task that a folder describes."""
    from bakeoff.tasks.load import load_task

    load_task("task.toml", work)


@lru_cache
def _command_line() -> Any:
    """Made once: most of the time of a command that refuses its input goes into this."""
    group: Any = typer.main.get_command(app)
    made = {name: group.get_command(None, name) for name in group.list_commands(None)}
    group.get_command = lambda _, name: made.get(name)
    return group


def write(folder: Path, files: dict[str, Any]) -> list[str]:
    """Writes them; a text as it is, anything else as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    return list(files)


def native_files() -> dict[str, Any]:
    """A task of three documents and two queries."""
    texts = {1: ("Copper", "copper mine"), 2: ("Boats", "sailing lake"), 3: ("Trees", "forest trail")}
    grades = {"q1": {"1": 3, "2": 0, "3": 0}, "q2": {"1": 0, "2": 2, "3": 1}}
    articles = [
        {"page_id": number, "title": title, "summary": text, "categories": ["city"]}
        for number, (title, text) in texts.items()
    ]
    queries = [
        {
            "query_id": query, "query_text": text, "category": "x", "expected_results": [number], "where": {},
            "relevance_annotations": {page: grade for page, grade in grades[query].items() if grade},
        }
        for query, text, number in (("q1", "copper", 1), ("q2", "lake", 2))
    ]  # fmt: skip
    return {
        "articles.json": {"articles": articles},
        "queries.json": {"queries": queries},
        "truth.json": {"grades": grades},
    }


def answers() -> str:
    """Rankings for it, as a file of answers."""
    rows = [{"query_id": query, "ids": ["1", "2"], "scores": [0.9, 0.1]} for query in ("q1", "q2")]
    return "\n".join(map(json.dumps, rows))
