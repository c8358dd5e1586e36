"""Real results for the tests of reports: the shipped task, and one whose every text tries to break out."""

from __future__ import annotations

import json
from pathlib import Path

from bakeoff.core.paths import default_lineup
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.record import record
from bakeoff.run.runner import run

SCRIPT = "<script>window.hacked = 1; alert(1)</script>"
BREAKOUT = '</script><img src=x onerror="window.hacked = 2">'
QUOTES = '" onmouseover="window.hacked = 3" \' & <!-- \u2028 {{x}} \\'


def wikipedia_result(out: Path, *only: str) -> Path:
    """The built-in task, a few contenders that need neither weights nor network, and one that can't run."""
    from dataclasses import replace

    lineup = replace(Lineup.read(default_lineup()).narrowed(only or ("tfidf", "fake", "bm25", "voyage-4")), rounds=4)
    return record(run(lineup), out, command="bakeoff run --only tfidf")


def hostile_lineup(folder: Path) -> Path:
    """A line-up whose titles, queries, ids, categories and names are all hostile."""
    folder.mkdir(parents=True, exist_ok=True)
    articles = [
        {"page_id": 1, "title": SCRIPT, "summary": "copper mine", "categories": ["city"]},
        {"page_id": 2, "title": BREAKOUT, "summary": "sailing lake", "categories": ["city"]},
        {"page_id": 3, "title": QUOTES, "summary": "forest trail", "categories": ["city"]},
    ]
    truth = {f"q{BREAKOUT}": {"1": 3, "2": 0, "3": 1}, "q2": {"1": 0, "2": 2, "3": 0}}
    texts = {f"q{BREAKOUT}": f"copper {SCRIPT}", "q2": f"lake {BREAKOUT} {QUOTES}"}
    queries = [
        {
            "query_id": query,
            "query_text": texts[query],
            "category": SCRIPT if query == "q2" else BREAKOUT,
            "expected_results": [int(page) for page, grade in grades.items() if grade >= 2],
            "relevance_annotations": {page: grade for page, grade in grades.items() if grade},
        }
        for query, grades in truth.items()
    ]
    (folder / "articles.json").write_text(json.dumps({"articles": articles}))
    (folder / "queries.json").write_text(json.dumps({"queries": queries}))
    (folder / "truth.json").write_text(json.dumps({"grades": truth}))
    path = folder / "hostile.toml"
    path.write_text(
        f"name = 'hostile'\n[task]\nname = {json.dumps(SCRIPT)}\nformat = 'native'\narticles = 'articles.json'\n"
        "queries = 'queries.json'\nground_truth = 'truth.json'\n[[contender]]\nranker = 'bm25'\n"
        "[[contender]]\nprovider = 'fake'\nstore = 'faiss'\n"
    )
    return path


def hostile_result(folder: Path) -> Path:
    """Its result."""
    return record(run(Lineup.read(hostile_lineup(folder))), folder / "results")
