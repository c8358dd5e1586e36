"""A result over a single query: it has no intervals, reads back, and prints no nan."""

from __future__ import annotations

import re
from pathlib import Path

from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.report.console import console
from bakeoff.report.terminal import terminal
from bakeoff.results.compare import compare_results
from bakeoff.results.result import load
from bakeoff.results.save import save
from bakeoff.running.runner import run
from typer.testing import CliRunner

from tests.native_task import native_files, write_lineup


def test_a_single_query_prints_no_nan(tmp_path: Path) -> None:
    from bakeoff.cli.main import app

    path = write_lineup(
        tmp_path,
        native_files(queries={"q1": "copper"}, grades={"q1": {"1": 3, "2": 0, "3": 0}}),
        contenders='[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n',
    )
    folder = save(run(Lineup.read(path)), tmp_path / "results")
    assert [problem for problem in render(folder) if "could not" in problem] == []
    result = load(folder)
    (pair,) = compare_results([result]).pairs
    assert (pair.low, pair.high) == (None, None)
    with (screen := console()).capture() as shown:
        screen.print(terminal(result.summary))
    printed = [shown.get(), CliRunner().invoke(app, ["compare", str(folder)]).output]
    printed += [(folder / name).read_text() for name in ("matrix.md", "metrics_summary.json")]
    for text in printed:
        assert not re.search(r"\bnan\b", text)
        assert not re.search(r"\b1 (queries|pairs|grades|documents|rounds)\b", text)
