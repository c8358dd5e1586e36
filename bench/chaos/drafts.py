"""Runs that are interrupted while they ask, or meet a fault when all is paid: what the next command makes of them."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.processes import environment
from chaos.row import Figure, Plan, attempts
from tests.native_task import native_files, write_lineup
from tests.wire import WireServer

OWN = """
import pathlib, time
def search(text, k):
    time.sleep(0.02)
    with open(pathlib.Path(__file__).with_name("asked.txt"), "a") as file:
        file.write(text + "\\n")
    return ["1", "2"] if len(text) % 2 else ["3"]
"""
ROWS = """
[[contender]]
ranker = "bm25"
rerank = {{ provider = "cohere", options = {{ base_url = "{url}" }} }}
[[contender]]
provider = "openai"
store = ["faiss", "sqlite_vec"]
options = {{ base_url = "{openai}" }}
[[contender]]
label = "own"
retriever = "file:own.py:search"
[[fusion]]
label = "both"
of = ["bm25", "own"]
"""
CALLS = 26  # of the own retriever in a whole run: cold call, warm-up and three rounds of it and of its fusion
FAIL = "def fail(*given, **named):\n    raise RuntimeError('no ink')\n"
FAULTS = [
    "from bakeoff.results import summary as broken; broken.decide = fail",
    "from bakeoff.results import summary as broken; broken.task_averaging = fail",
    "from bakeoff.results import summary as broken; broken.Rows.of = fail",
    "from bakeoff.results import summary as broken; broken.Rows.baseline = fail",
    "from bakeoff.results import summary as broken; broken._documents = fail",
    "from bakeoff.results import save as broken; broken.detail = fail",
    "from bakeoff.results import save as broken; broken.qrels_text = fail",
    "from bakeoff.results import save as broken; broken.run_parts = lambda *_: (fail() for _ in [0])",
    "from bakeoff.results import schema as broken; broken.write_folder = fail",
    "from bakeoff.running import measuring as broken; broken.after_work = fail",
    "from bakeoff.running.scoring import Scorer; Scorer.score = fail",
    "from bakeoff.running.scoring import Scorer; Scorer.baselines = fail",
    "from bakeoff.running import scoring as broken; broken.random_expectation = fail",
    "from bakeoff.search.loss import Losses; Losses.of = fail",
    "from bakeoff.report import first_screen as broken; broken.screen_lines = fail",
    "from bakeoff.report import result_page as broken; broken.page = fail",
]


@dataclass(frozen=True)
class Finished:
    """A run that did not go to its end, and the one after it."""

    failed: bool
    unlike: bool
    twice: int
    left: int


def drafts(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Every other attempt is a fault after all was paid for; the others are kills and Ctrl-C at a random moment."""
    undisturbed = folder / "undisturbed"
    with WireServer() as wire:
        _write(undisturbed, wire)
        _start(undisturbed).communicate(timeout=300)
    expected = figures_of(undisturbed)

    def attempt(number: int, rng: random.Random) -> Finished:
        place, fault = folder / str(number), FAULTS[number // 2 % len(FAULTS)] if number % 2 else ""
        with WireServer() as wire:
            _write(place, wire)
            first = _start(place, fault)
            if not fault:
                _wait_for_calls(place, rng.randint(1, CALLS), first)
                time.sleep(rng.uniform(0, 0.05))
                first.send_signal(rng.choice([signal.SIGKILL, signal.SIGINT]))
            first.communicate(timeout=300)
            again = _start(place)
            again.communicate(timeout=300)
            bought = Counter(
                (request.path, request.body.get("query", ""), text)
                for request in wire.requests
                for text in request.texts
            )
        twice = sum(times - 1 for times in bought.values())
        unlike = figures_of(place) != expected
        return Finished(again.returncode != 0, unlike, twice, len(list(place.glob("results/*.draft"))))

    ended, missing = attempts(plan, "drafts", count, attempt)
    return [
        Figure(f"runs after {len(ended)} interruptions and late faults that failed", sum(one.failed for one in ended)),
        Figure("  whose figures differ from those of an undisturbed run", sum(one.unlike for one in ended)),
        Figure("  texts and pairs paid twice", sum(one.twice for one in ended)),
        Figure("  drafts left by the run after", sum(one.left for one in ended)),
        missing,
    ]


def _write(place: Path, wire: WireServer) -> None:
    rows = ROWS.format(url=wire.url, openai=wire.base("openai"))
    write_lineup(place, native_files(), head="rounds = 3", task='name = "own"', contenders=rows, name="line")
    (place / "own.py").write_text(OWN)


def _start(place: Path, setup: str = "") -> subprocess.Popen[str]:
    code = f"{FAIL}{setup}\nfrom bakeoff.cli.main import main; main()"
    command = [sys.executable, "-c", code, "run", "line.toml", "--no-charts"]
    return subprocess.Popen(
        command, cwd=place, env=environment(place), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _wait_for_calls(place: Path, calls: int, process: subprocess.Popen[str]) -> None:
    asked = place / "asked.txt"
    while process.poll() is None and (not asked.exists() or asked.read_text().count("\n") < calls):
        time.sleep(0.005)


def figures_of(place: Path) -> dict[str, Any]:
    """All that does not depend on the clock, of the newest result."""
    newest = max(place.glob("results/*/metrics_summary.json"), default=None)
    if newest is None:
        return {"no result": str(place)}
    summary = json.loads(newest.read_bytes())
    return {
        "rows": {row["label"]: (row["measures"], row.get("loss"), row.get("stable")) for row in summary["rows"]},
        "leader": summary["verdict"]["leader"],
        "runs": {path.name: path.read_text() for path in sorted((newest.parent / "runs").iterdir())},
    }
