"""What was measured outlives the process: a run that was killed or that met a fault is finished, and pays once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core.paths import is_draft
from bakeoff.report.words import failure_words
from bakeoff.results.result import Result, load
from bakeoff.results.schema import find, read_summary
from bakeoff.running.draft import Draft

from tests.facts import arguments
from tests.native_task import native_files, write_lineup
from tests.wire import PROXIES, WireServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OWN = """
import os, pathlib, signal
here = pathlib.Path(__file__).parent
calls = 0

def search(text, k):
    global calls
    calls += 1
    with open(here / "asked.txt", "a") as file:
        file.write(text + "\\n")
    plan = (here / "plan.txt").read_text().split() if (here / "plan.txt").exists() else []
    if plan and calls == int(plan[1]):
        os.kill(os.getpid(), getattr(signal, plan[0]))
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
isolate = false
[[fusion]]
label = "both"
of = ["bm25", "own"]
"""
QUERIES = 3
ROUNDS = 2


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def _write(folder: Path, wire: WireServer) -> Path:
    rows = ROWS.format(url=wire.url, openai=wire.base("openai"))
    lineup = write_lineup(
        folder, native_files(), head=f"rounds = {ROUNDS}", task='name = "own"', contenders=rows, name="line"
    )
    (folder / "own.py").write_text(OWN)
    return lineup


def _bakeoff(folder: Path, *arguments: str, setup: str = "") -> subprocess.CompletedProcess[str]:
    fail = "def fail(*given, **named):\n    raise RuntimeError('no ink')\n"
    variables = {name: value for name, value in os.environ.items() if name not in PROXIES}
    variables |= {"PYTHONPATH": f"{ROOT / 'harness'}:{ROOT / 'providers'}", "BAKEOFF_HOME": str(folder / "home")}
    variables |= {"OPENAI_API_KEY": "k" * 20, "CO_API_KEY": "k" * 20}
    return subprocess.run(
        [sys.executable, "-c", f"{fail}{setup}\nfrom bakeoff.cli.main import main; main()", *arguments],
        cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def _run(folder: Path, setup: str = "") -> subprocess.CompletedProcess[str]:
    return _bakeoff(folder, "run", "line.toml", "--no-charts", setup=setup)


def _result(folder: Path) -> Result:
    (only,) = find(folder / "results")
    return load(only)


def _drafts(folder: Path) -> list[Path]:
    return [path for path in (folder / "results").glob("*") if is_draft(path)]


def _figures(result: Result) -> dict[str, Any]:
    """All that does not depend on the clock."""
    rows = result.summary.rows
    return {
        "values": {label: result.values(label, "ndcg@10").tolist() for label in result.labels},
        "rankings": {
            one.label: {query: answer.ids for query, answer in one.queries.items()}
            for one in result.detailed.contenders
        },
        "measures": {row.label: row.measures for row in rows},
        "loss": {row.label: row.loss for row in rows},
        "stable": {row.label: row.stable for row in rows},
        "usd": {row.label: row.cost.usd for row in rows if row.cost},
        "not run": {row.label: failure_words(row.not_run) for row in rows if row.not_run},
        "leader": result.summary.verdict.leader,
    }  # fmt: skip


def _bought(wire: WireServer) -> Counter[tuple[str, str, str]]:
    """How often each text was asked for; a reranker is asked for a text beside each query."""
    return Counter(
        (request.path, request.body.get("query", ""), text) for request in wire.requests for text in request.texts
    )


@pytest.fixture
def undisturbed(tmp_path: Path, wire: WireServer) -> dict[str, Any]:
    _write(tmp_path / "undisturbed", wire)
    done = _run(tmp_path / "undisturbed")
    assert done.returncode == 0, done.stderr
    assert _drafts(tmp_path / "undisturbed") == []
    figures = _figures(_result(tmp_path / "undisturbed"))
    assert figures["not run"] == {}
    wire.requests.clear()
    return figures


# Cold call and warm-up are 4 calls of `own` and as many of the fusion that asks it; a round is QUERIES calls of each.
MOMENTS = {"cold": 1, "first round": 10, "fusion's first round": 12, "second round": 16}


@pytest.mark.parametrize(
    ("sent", "moment"), [*(("SIGKILL", moment) for moment in MOMENTS), ("SIGINT", "cold"), ("SIGINT", "second round")]
)
def test_an_interrupted_run_is_finished_with_equal_figures_and_pays_once(
    tmp_path: Path, wire: WireServer, undisturbed: dict[str, Any], moment: str, sent: str
) -> None:
    _write(tmp_path, wire)
    plan = tmp_path / "plan.txt"
    plan.write_text(f"{sent} {MOMENTS[moment]}")
    ended = _run(tmp_path)
    assert ended.returncode == (-9 if sent == "SIGKILL" else 130), ended.stderr
    assert find(tmp_path / "results") == []
    plan.unlink()
    again = _run(tmp_path)
    assert again.returncode == 0, again.stderr
    assert _figures(_result(tmp_path)) == undisturbed
    assert _drafts(tmp_path) == []
    assert set(_bought(wire).values()) == {1}


def test_rows_that_are_complete_are_shown_and_finished_without_asking(
    tmp_path: Path, wire: WireServer, undisturbed: dict[str, Any]
) -> None:
    _write(tmp_path, wire)
    (tmp_path / "plan.txt").write_text("SIGKILL 12")  # own answered a whole round, the fusion did not
    _run(tmp_path)
    (draft,) = _drafts(tmp_path)
    (tmp_path / "plan.txt").unlink()
    (tmp_path / "asked.txt").unlink()
    wire.requests.clear()
    before = {path: path.read_bytes() for path in draft.rglob("*") if path.is_file()}
    shown = _bakeoff(tmp_path, "show", str(draft))
    assert shown.returncode == 0, shown.stderr
    assert {path: path.read_bytes() for path in draft.rglob("*") if path.is_file()} == before
    done = _bakeoff(tmp_path, "report", str(draft), "--no-pictures")
    assert done.returncode == 0, done.stderr
    assert _drafts(tmp_path) == []
    assert wire.requests == []
    assert not (tmp_path / "asked.txt").exists()
    figures = _figures(_result(tmp_path))
    lost = {"both", "bm25+cohere"}  # the last rows of the line-up
    assert figures["not run"].keys() == lost
    whole = {label: values for label, values in undisturbed["values"].items() if label not in lost}
    assert figures["values"] == whole


SUMMARY = "from bakeoff.results import summary as broken; broken."
FAULTS = {
    "decide": f"{SUMMARY}decide = fail",
    "task_averaging": f"{SUMMARY}task_averaging = fail",
    "RowMaker.of": f"{SUMMARY}RowMaker.of = fail",
}


@pytest.mark.parametrize("where", FAULTS)
def test_a_fault_in_the_verdict_leaves_a_result_without_one(tmp_path: Path, wire: WireServer, where: str) -> None:
    _write(tmp_path, wire)
    done = _run(tmp_path, FAULTS[where])
    assert done.returncode == 0, done.stderr
    result = _result(tmp_path)
    assert result.summary.verdict.without_verdict == "fault"
    assert [lost["reason"] for lost in arguments(result.summary.warnings, "not_made")] == ["RuntimeError: no ink"]
    (folder,) = find(tmp_path / "results")
    assert len(list((folder / "runs").iterdir())) == 6
    assert (folder / "evaluation_report.html").is_file()
    (draft,) = _drafts(tmp_path)
    wire.requests.clear()
    (tmp_path / "asked.txt").unlink()
    finished = _run(tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert not draft.exists()
    assert wire.requests == []
    assert not (tmp_path / "asked.txt").exists()
    assert read_summary(find(tmp_path / "results")[-1]).verdict.leader


COSTS_A_PART = {
    "detail": f"{SUMMARY}detail = fail; import bakeoff.results.save as other; other.detail = fail",
    "RowMaker.baseline": f"{SUMMARY}RowMaker.baseline = fail",
    "titles": f"{SUMMARY}_documents = fail",
    "baselines": "from bakeoff.running import scoring as broken; broken.random_expectation = fail",
    "after_work": "from bakeoff.running import measuring as broken; broken.after_work = fail",
    "run_parts": "import bakeoff.results.save as broken; broken.run_parts = lambda *_: (fail() for _ in [0])",
    "qrels_text": "import bakeoff.results.save as broken; broken.qrels_text = fail",
    "Losses.of": "from bakeoff.search.loss import Losses; Losses.of = fail",
    "np.seterr": "import numpy; numpy.seterr(all='raise')",
}


@pytest.mark.parametrize("where", COSTS_A_PART)
def test_a_fault_in_a_part_costs_that_part(tmp_path: Path, wire: WireServer, where: str) -> None:
    _write(tmp_path, wire)
    done = _run(tmp_path, COSTS_A_PART[where])
    assert done.returncode == 0, done.stderr
    (folder,) = find(tmp_path / "results")
    summary = read_summary(folder)
    assert summary.verdict.leader
    assert [row.label for row in summary.rows if row.not_run] == []
    assert (folder / "evaluation_report.html").is_file()
    assert _drafts(tmp_path) == []


FULL = (
    "import errno\nfrom bakeoff.results import schema as broken\n"
    "def full(*_):\n    raise OSError(errno.ENOSPC, 'No space left on device')\nbroken.write_atomic = full"
)


@pytest.mark.parametrize(
    ("setup", "code"),
    [(FULL, 2), ("from bakeoff.running.scoring import Scorer; Scorer.score = fail", 1)],
    ids=["full disk", "scoring"],
)
def test_a_result_that_could_not_be_written_is_made_from_the_draft(
    tmp_path: Path, wire: WireServer, undisturbed: dict[str, Any], setup: str, code: int
) -> None:
    _write(tmp_path, wire)
    done = _run(tmp_path, setup)
    assert done.returncode == code, done.stderr
    assert find(tmp_path / "results") == []
    (draft,) = _drafts(tmp_path)
    assert f"bakeoff report results/{draft.name}" in done.stderr
    wire.requests.clear()
    (tmp_path / "asked.txt").unlink()
    finished = _bakeoff(tmp_path, "report", str(draft), "--no-pictures")
    assert finished.returncode == 0, finished.stderr
    assert _figures(_result(tmp_path)) == undisturbed
    assert wire.requests == []
    assert not (tmp_path / "asked.txt").exists()


def test_another_line_up_does_not_take_up_the_draft(tmp_path: Path, wire: WireServer) -> None:
    lineup = _write(tmp_path, wire)
    assert _run(tmp_path, FULL).returncode == 2
    (draft,) = _drafts(tmp_path)
    lineup.write_text(lineup.read_text().replace("rounds = 2", "rounds = 1"))
    assert _run(tmp_path).returncode == 0
    assert draft.exists()
    lineup.write_text(lineup.read_text().replace("bm25", "tfidf"))
    assert _bakeoff(tmp_path, "report", str(draft)).returncode == 2
    assert draft.exists()


def test_a_draft_that_is_being_written_is_locked(tmp_path: Path, wire: WireServer) -> None:
    _write(tmp_path, wire)
    assert _run(tmp_path, FULL).returncode == 2
    (draft,) = _drafts(tmp_path)
    held = Draft.open(draft)
    for command in ("show", "report"):
        assert _bakeoff(tmp_path, command, str(draft)).returncode == 2
    held.close()
    assert _bakeoff(tmp_path, "show", str(draft)).returncode == 0
