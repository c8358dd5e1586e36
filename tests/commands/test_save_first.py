"""A run that was paid for is kept whatever its report does: figures are written before anything is rendered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bakeoff.results.schema import read_detailed, read_summary

from tests.native_task import native_files, write_lineup

ROOT = Path(__file__).parents[2]
BREAKS = {
    "the page": "from bakeoff.report import result_page as broken; broken.page = fail",
    "the table in the terminal": "from bakeoff.report import terminal as broken; broken.terminal = fail",
    "all of rendering": "import bakeoff.report as broken; broken.render = fail",
}


def _bakeoff(folder: Path, setup: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with a renderer that fails."""
    fail = "def fail(*given, **named):\n    raise RuntimeError('no ink')\n"
    return subprocess.run(
        [sys.executable, "-c", f"{fail}{setup}\nfrom bakeoff.cli import main; main()", *arguments],
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
