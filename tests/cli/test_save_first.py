"""A run that was paid for is kept whatever its report does: figures are written before anything is rendered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bakeoff.core.facts import fact
from bakeoff.results.schema import read_detailed, read_summary

from tests.errors import says
from tests.native_task import native_files, write_lineup

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BREAKS = {
    "the page": "from bakeoff.report import result_page as broken; broken.page = fail",
    "the table in the terminal": "from bakeoff.report import first_screen as broken; broken.screen_lines = fail",
    "all of rendering": "import bakeoff.report as broken; broken.render = fail",
}
ADDITIONS = {
    "possible_winners": ("from bakeoff.results import summary as broken; broken.possible_winners = fail"),
    "unjudged": "from bakeoff.results import summary as broken; broken.unjudged_sections = fail",
    "breakdowns": ("from bakeoff.results import summary as broken; broken.breakdown_sections = fail"),
    "trec_commands": "from bakeoff.results import summary as broken; broken.trec_commands = fail",
    "kind_tables": "from bakeoff.tasks.kinds.base import TaskKind; TaskKind.extras = fail",
    "second_stages": "from bakeoff.running import runner as broken; broken.with_gains = fail",
    "task_warnings": "from bakeoff.running import runner as broken; broken.task_warnings = fail",
}


def _bakeoff(folder: Path, setup: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with a renderer that fails."""
    fail = "def fail(*given, **named):\n    raise RuntimeError('no ink')\n"
    return subprocess.run(
        [sys.executable, "-c", f"{fail}{setup}\nfrom bakeoff.cli.main import main; main()", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'harness'}:{ROOT / 'providers'}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("what", BREAKS)
def test_a_renderer_that_fails_leaves_the_figures(tmp_path: Path, what: str) -> None:
    lineup = write_lineup(tmp_path, native_files(), task='name = "own"', contenders='[[contender]]\nranker = "bm25"\n')
    done = _bakeoff(tmp_path, BREAKS[what], "run", lineup.name)
    assert done.returncode == 1, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    assert "RuntimeError: no ink" in done.stderr
    assert f"bakeoff report results/{folder.name}" in done.stderr
    assert read_summary(folder).ran[0].measures["ndcg@10"].mean > 0
    assert list(read_detailed(folder).contenders[0].queries) == ["q1", "q2", "q3"]
    assert (folder / "runs" / "bm25.trec").is_file()
    assert (folder / "judgments.qrels").is_file()
    again = _bakeoff(tmp_path, "", "report", str(folder))
    assert again.returncode == 0, again.stderr
    assert "ndcg" in (folder / "evaluation_report.html").read_text().lower()
    assert (folder / "matrix.md").is_file()


@pytest.mark.parametrize("what", ADDITIONS)
def test_an_addition_that_fails_costs_itself_and_not_the_figures(tmp_path: Path, what: str) -> None:
    contenders = '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    lineup = write_lineup(tmp_path, native_files(), task='name = "own"', contenders=contenders)
    done = _bakeoff(tmp_path, ADDITIONS[what], "run", lineup.name, "--no-charts")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    summary = read_summary(folder)
    assert summary.ran[0].measures["ndcg@10"].mean > 0
    assert fact("not_made", part=what, reason="RuntimeError: no ink") in summary.warnings


def test_tuned_weights_that_fail_cost_themselves(tmp_path: Path) -> None:
    contenders = (
        '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
        '[[fusion]]\nof = ["bm25", "fake+faiss"]\n'
    )
    lineup = write_lineup(tmp_path, native_files(), task='name = "own"', contenders=contenders)
    broken = "from bakeoff.running import runner as broken; broken.with_tuned_weights = fail"
    done = _bakeoff(tmp_path, broken, "run", lineup.name, "--no-charts", "--tune-weights")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    assert fact("not_made", part="tuned_weights", reason="RuntimeError: no ink") in read_summary(folder).warnings


DEAD = "import pathlib; from bakeoff.core import drawing; drawing._CHILD = pathlib.Path('dead.py')"


def test_a_drawing_library_that_ends_its_process_leaves_figures_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dead.py").write_text("import os\nos.abort()\n")
    lineup = write_lineup(tmp_path, native_files(), task='name = "own"', contenders='[[contender]]\nranker = "bm25"\n')
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))  # no bundle is kept there
    done = _bakeoff(tmp_path, DEAD, "run", lineup.name)
    sweep = "sweep --synthetic 200 --dimensions 8 --rounds 1 --set ef=8 --out swept"
    swept = _bakeoff(tmp_path, DEAD, *sweep.split())
    assert done.returncode == 1, done.stderr
    says(done.stderr, "-6")
    (folder,) = (tmp_path / "results").iterdir()
    assert read_summary(folder).ran
    assert (folder / "evaluation_report.html").is_file()
    assert swept.returncode == 0, swept.stderr
    says(" ".join(swept.stderr.split()), "-6")
    (folder,) = (tmp_path / "swept").iterdir()
    assert {file.name for file in folder.iterdir()} == {"sweep.json", "sweep.md", "sweep.html"}
