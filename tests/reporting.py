"""Real results for the tests of reports: the shipped task, and one whose every text tries to break out."""

from __future__ import annotations

import json
from pathlib import Path

from bakeoff.core.paths import default_lineup
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.results.save import save
from bakeoff.running.runner import run

from tests.native_task import native_files, pages, write_lineup

SCRIPT = "<script>window.hacked = 1; alert(1)</script>"
BREAKOUT = '</script><img src=x onerror="window.hacked = 2">'
QUOTES = '" onmouseover="window.hacked = 3" \' & <!-- \u2028 {{x}} \\'


def wikipedia_result(out: Path, *only: str) -> Path:
    """The built-in task, a few contenders that need neither weights nor network, and one that can't run."""
    from dataclasses import replace

    lineup = replace(Lineup.read(default_lineup()).narrow(only or ("tfidf", "fake", "bm25", "voyage-4")), rounds=4)
    folder = save(run(lineup), out, command="bakeoff run --contender tfidf")
    render(folder)
    return folder


def hostile_lineup(folder: Path) -> Path:
    """A line-up whose titles, queries, ids, categories and names are all hostile."""
    first = f"q{BREAKOUT}"
    files = native_files(
        pages({1: (SCRIPT, "copper mine"), 2: (BREAKOUT, "sailing lake"), 3: (QUOTES, "forest trail")}),
        {first: f"copper {SCRIPT}", "q2": f"lake {BREAKOUT} {QUOTES}"},
        {first: {"1": 3, "2": 0, "3": 1}, "q2": {"1": 0, "2": 2, "3": 0}},
        category=lambda query: SCRIPT if query == "q2" else BREAKOUT,
    )
    contenders = "[[contender]]\nranker = 'bm25'\n[[contender]]\nprovider = 'fake'\nstore = 'faiss'\n"
    task = f"name = {json.dumps(SCRIPT)}"
    return write_lineup(folder, files, head="name = 'hostile'", task=task, contenders=contenders, name="hostile")


def hostile_result(folder: Path) -> Path:
    """Its result."""
    result = save(run(Lineup.read(hostile_lineup(folder))), folder / "results")
    render(result)
    return result
