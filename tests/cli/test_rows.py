"""What the command line makes of rows that can't run."""

from __future__ import annotations

from pathlib import Path

from tests.errors import refused, says
from tests.native_task import native_files, write_lineup
from tests.terminal import bakeoff

LOST = '[[contender]]\nprovider = "fake"\nstore = "faiss"\ndimensions = 900\n'


def test_no_row_that_ran_is_exit_1_without_a_result(tmp_path: Path) -> None:
    write_lineup(tmp_path, native_files(), contenders=LOST)
    done = bakeoff("run", "own.toml", cwd=tmp_path)
    refused(done, "fake@900+faiss", "900", code=1)
    says(done.stderr, "error:", "1")
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "results").glob("*/*"))


def test_the_other_rows_are_written_and_verbose_has_the_traceback(tmp_path: Path) -> None:
    write_lineup(tmp_path, native_files(), contenders=f'{LOST}[[contender]]\nranker = "bm25"\n')
    done = bakeoff("--verbose", "run", "own.toml", "--no-charts", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" in done.stderr
    says(done.stdout, "900 dimensions")
    assert list((tmp_path / "results").glob("*/metrics_summary.json"))
