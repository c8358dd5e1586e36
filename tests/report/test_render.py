"""Rendering from the files of a result: whatever fails costs only itself."""

from __future__ import annotations

import html
import io
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
import pytest
from bakeoff import load
from bakeoff.core.files import write_json
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.report.charts import MISSING, chart_values
from bakeoff.report.terminal import terminal
from bakeoff.results.columns import columns
from bakeoff.results.save import save
from bakeoff.results.schema import DETAILED, SUMMARY, read_detailed, read_summary
from bakeoff.running.runner import run
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from tests.examples import examples
from tests.native_task import native_files, write_lineup
from tests.report.parsed import ParsedPage
from tests.reporting import wikipedia_result

EXPORTS = {"matrix.md", "matrix.tex", "matrix.csv", "matrix.json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wikipedia_result(tmp_path_factory.mktemp("results"))


def copied(folder: Path, target: Path) -> Path:
    """The two files of a result, and nothing else."""
    target.mkdir()
    for name in (SUMMARY, DETAILED):
        shutil.copy(folder / name, target / name)
    return target


def test_without_the_extra_the_page_says_what_to_install(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    result = copied(folder, tmp_path / "result")
    assert render(result, pictures=True) == [MISSING]
    made = (result / "evaluation_report.html").read_text()
    assert MISSING in html.unescape(made)
    assert "vegaEmbed=" not in made
    assert not (result / "charts").exists()
    assert ParsedPage(made).rows


def test_one_failing_chart_leaves_everything_else(folder: Path, tmp_path: Path) -> None:
    result = copied(folder, tmp_path / "result")
    summary = read_summary(result)
    first = summary.ran[0]
    broken = replace(first, categories={summary.task.categories[0]: {}})  # the deciding measure is not there
    write_json(result / SUMMARY, replace(summary, rows=[broken if row is first else row for row in summary.rows]))
    (problem,) = render(result, pictures=True)
    assert problem == "The chart 'NDCG@10 by category' could not be drawn: KeyError: 'ndcg@10'"
    made = (result / "evaluation_report.html").read_text()
    assert problem in html.unescape(made)
    assert made.count('class="chart"') == 9  # ten panels, but for the one that failed
    assert {path.stem for path in (result / "charts").iterdir()} == {
        "scores", "quality-latency", "measures-k", "differences", "latency",
    }  # fmt: skip
    assert {path.name for path in result.iterdir()} >= EXPORTS


def test_one_failing_file_leaves_everything_else(folder: Path, tmp_path: Path) -> None:
    result = copied(folder, tmp_path / "result")
    (result / "matrix.csv").mkdir()  # something stands where a file should be
    (problem,) = render(result, pictures=False)
    assert problem == f"matrix.csv could not be made: {result / 'matrix.csv'}: can't be written: Is a directory"
    assert {path.name for path in result.iterdir() if path.is_file()} == (
        EXPORTS - {"matrix.csv"} | {"evaluation_report.html", SUMMARY, DETAILED}
    )


@settings(deadline=None, max_examples=examples(200))
@given(st.text())
def test_no_text_in_a_chart_is_more_than_xml_can_hold(text: str) -> None:
    (cleaned,) = chart_values({"values": [text]})["values"]
    ElementTree.fromstring(f"<a>{escape(cleaned)}</a>")
    assert len(cleaned.splitlines()) <= 1


def test_control_characters_in_data_become_pictures_and_a_page(folder: Path, tmp_path: Path) -> None:
    result = copied(folder, tmp_path / "result")
    summary, detailed = read_summary(result), read_detailed(result)
    hostile = "a\x00b\x07c\x1bd\ufffee\uffff\u2028f\x85g\x0ch\x9bi"
    renamed = {row.label: f"{hostile} {row.label}" for row in summary.rows}
    rows = [replace(row, label=renamed[row.label], store=hostile) for row in summary.rows]
    contenders = [replace(contender, label=renamed[contender.label]) for contender in detailed.contenders]
    verdict = replace(
        summary.verdict,
        leader=renamed[str(summary.verdict.leader)],
        best_set=[renamed[label] for label in summary.verdict.best_set],
        standings={renamed[label]: replace(one, alike="") for label, one in summary.verdict.standings.items()},
        picks=[],
        outlook=None,
    )
    write_json(result / SUMMARY, replace(summary, rows=rows, verdict=verdict))
    queries = {
        name: replace(query, text=f"{hostile} {query.text}", category=f"{hostile} {query.category}")
        for name, query in detailed.queries.items()
    }
    write_json(result / DETAILED, replace(detailed, contenders=contenders, queries=queries))
    assert render(result, pictures=True) == []
    assert (result / "charts" / "quality-latency.png").read_bytes().startswith(b"\x89PNG")


def test_the_second_stage_has_a_column_of_its_own_where_there_is_one(tmp_path: Path, folder: Path) -> None:
    lineup = write_lineup(
        tmp_path,
        native_files(),
        head='measures = ["mrr"]\nrounds = 20',
        contenders='[[contender]]\nranker = "bm25"\nrerank = { provider = "fake", depth = 2 }\n',
    )
    result = save(run(Lineup.read(lineup)), tmp_path / "results")
    assert render(result, charts=False) == []
    detailed = {row.label: row for row in read_detailed(result).contenders}
    figure = f"{np.median(detailed['bm25+fake'].timing.rerank_ns) / 1e6:.2f}"
    table = next(part for part in (result / "matrix.md").read_text().split("\n\n") if part.startswith("| Model"))
    head, _, *lines = table.splitlines()
    column = [cell.strip() for cell in head.split("|")].index("rerank p50 ms")
    shown = {line.split("|")[1].strip(): line.split("|")[column].strip().split(" ")[0] for line in lines}
    assert (shown["bm25+fake"], shown["bm25"]) == (figure, "–")
    (record,) = [record for record in load(result).matrix() if record["contender"] == "bm25+fake"]
    assert f"{record['rerank p50 ms']:.2f}" == figure
    assert any(
        "rerank" in cell for row in ParsedPage((result / "evaluation_report.html").read_text()).rows for cell in row
    )
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(terminal(read_summary(result), wide=True))
    assert "rerank p50 ms" in console.export_text()
    assert "rerank" not in (folder / "matrix.md").read_text()  # no row of that result has one
    assert [column.key for column in columns(read_summary(folder))][-7:-3] == [
        "embed_p50", "search_p50", "total_p50", "total_p95",
    ]  # fmt: skip
