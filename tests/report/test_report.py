"""The reports: the same words everywhere, nothing from data that acts, everything from the files alone."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path

import msgspec
import pytest
from bakeoff.core.facts import Failure
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import page_data, render
from bakeoff.report.charts import pictures
from bakeoff.report.exports import csv_text, json_bytes, latex, markdown
from bakeoff.report.frame import embedded
from bakeoff.report.notes import notes
from bakeoff.report.page_data import acting_limits, page_matrix, payload
from bakeoff.report.plots import charts, front_of
from bakeoff.report.result_page import page, task_facts, use_table
from bakeoff.report.terminal import terminal
from bakeoff.report.verdict_words import Findings, advice, pick_lines, verdict_sentences
from bakeoff.results.columns import columns, matrix_table, ordered_rows
from bakeoff.results.save import save
from bakeoff.results.schema import Detailed, Summary, read_detailed, read_summary
from bakeoff.running.runner import run
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.made import LONG, situations
from tests.report.parsed import ParsedPage
from tests.reporting import BREAKOUT, SCRIPT, hostile_result, wikipedia_result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wikipedia_result(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def result(folder: Path) -> tuple[Summary, Detailed]:
    return read_summary(folder), read_detailed(folder)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Summary, Detailed]:
    folder = hostile_result(tmp_path_factory.mktemp("hostile"))
    return read_summary(folder), read_detailed(folder)


def test_page_and_terminal_say_the_same(folder: Path, result: tuple[Summary, Detailed]) -> None:
    from rich.console import Console

    summary, _ = result
    screen = Console(width=260, file=io.StringIO(), record=True, markup=False, highlight=False)
    screen.print(terminal(summary))
    shown = screen.export_text()
    plain = html.unescape((folder / "evaluation_report.html").read_text())
    for sentence in [*verdict_sentences(summary), *(note.sentence for note in notes(summary))]:
        assert sentence in shown
        assert sentence in plain
    for sentence, (_, label, price) in zip(advice(summary), pick_lines(Findings(summary)), strict=True):
        assert sentence in shown
        assert label in plain
        assert price in plain


def test_rows_that_score_alike_share_a_line_and_no_column_is_empty(result: tuple[Summary, Detailed]) -> None:
    summary, _ = result
    made = page_matrix(Findings(summary))
    assert [[row.label for row in line.group.rows] for line in made.lines] == [
        ["bm25"], ["fake+faiss", "fake+chroma"], ["tfidf+faiss", "tfidf+chroma"]
    ]  # fmt: skip
    keys = [column.key for column in made.columns]
    assert keys[:4] == ["model", "store", "ndcg@10", "p50"]  # who, how good, how fast
    assert set(keys[4:]) == {"p@5", "recall@10", "f1@5", "mrr", "index"}  # everything costs $0
    tfidf = summary.row("tfidf+faiss").measures["ndcg@10"].mean
    cell = made.lines[2].cells["ndcg@10"]
    assert (cell.text, cell.value) == (f"{tfidf:.3f}", tfidf)
    assert [part.label for part in made.lines[2].cells["p50"].parts] == ["tfidf+faiss", "tfidf+chroma"]
    assert made.lines[0].verdict == "leads"


def test_limits_that_cannot_act_are_not_drawn(result: tuple[Summary, Detailed]) -> None:
    summary, _ = result
    assert [limit.key for limit in acting_limits(summary)] == ["p50", "index"]  # everything costs $0
    one = msgspec.structs.replace(summary, rows=[row for row in summary.rows if row.label == "bm25" or not row.ran])
    assert acting_limits(one) == []


def test_many_lines_are_folded_under_their_model() -> None:
    found = Findings(situations()["many-rows"])
    models = {row.label: row.model.partition("@")[0] for row in found.summary.rows}
    rows = [
        msgspec.structs.replace(row, model=models[row.label], provider=models[row.label]) for row in found.summary.rows
    ]
    made = page_matrix(Findings(msgspec.structs.replace(found.summary, rows=rows)))
    assert len(made.lines) == len(found.groups) > 15
    first = [line.group.name.partition("@")[0] for line in made.lines if line.folded is None]
    assert first == [LONG, "minilm", "wordllama", "bm25", "fake"]  # by the mean of the best of each
    assert sum(len(line.settings) for line in made.lines) == len(made.lines) - len(first)


def test_rows_stand_by_the_deciding_measure_then_scales_then_what_did_not_run(result: tuple[Summary, Detailed]) -> None:
    summary, _ = result
    rows = ordered_rows(summary)
    means = [row.measures["ndcg@10"].mean for row in rows if row.ran]
    assert means == sorted(means, reverse=True)
    assert [row.label for row in rows[-4:]] == ["oracle", "random", "voyage-4+faiss", "voyage-4+chroma"]
    assert "not run: VOYAGE_API_KEY is not set" in markdown(summary)


def test_the_page_sorts_by_unrounded_figures_from_the_better_end(
    folder: Path, result: tuple[Summary, Detailed]
) -> None:
    summary, _ = result
    made = ParsedPage((folder / "evaluation_report.html").read_text())
    lines = {str(values["model"]): values for values in made.values if "model" in values}
    for group in Findings(summary).groups:
        row = group.first
        expected: dict[str, float | None] = {name: row.measures[name].mean for name in summary.matrix_measures}
        times = [each.latency.total.p50 for each in group.rows if each.latency and each.latency.total.p50 is not None]
        expected["p50"] = min(times)
        assert {key: float(lines[group.name][key] or "nan") for key in expected} == expected
    measures = {name: made.first[name] for name in summary.matrix_measures}
    assert measures == dict.fromkeys(summary.matrix_measures, "descending")  # the best has most
    others = {key: order for key, order in made.first.items() if key not in measures}
    assert set(others.values()) == {"ascending"}  # the best is quickest and cheapest


def test_the_page_has_everything_inside_and_calls_nothing(folder: Path) -> None:
    made = (folder / "evaluation_report.html").read_text()
    assert "default-src 'none'" in html.unescape(made)
    seen = ParsedPage(made)
    assert seen.sources == ["data:,"]  # the icon that keeps browsers from asking for one
    assert not seen.elements & {"img", "iframe", "object", "embed", "base"}
    assert "@import" not in made


def test_what_comes_from_data_is_shown_and_never_acts(hostile: tuple[Summary, Detailed]) -> None:
    made = page(*hostile)
    seen = ParsedPage(made)
    assert seen.scripts == 4  # data, charts, Vega, ours
    assert not seen.handlers
    assert "img" not in seen.elements
    assert SCRIPT not in made
    assert "&lt;script&gt;window.hacked = 1" in made  # the task's name
    data = re.search(r'id="data">(.*?)</script>', made, re.DOTALL)
    assert data
    decoded = json.loads(data[1])
    assert SCRIPT in decoded["titles"]
    assert decoded["queries"][0]["id"] == f"q{BREAKOUT}"
    assert "<script" not in markdown(hostile[0])


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=9), st.lists(st.text(), max_size=3), max_size=3))
def test_embedded_json_cannot_end_its_element(content: object) -> None:
    text = embedded(content)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == content


def test_the_payload_is_small_and_right(result: tuple[Summary, Detailed]) -> None:
    summary, detailed = result
    made = payload(summary, detailed)
    assert made["contenders"] == [contender.label for contender in detailed.contenders]
    place = made["contenders"].index("fake+faiss")
    query = made["queries"][0]
    answer = detailed.contenders[place].queries[query["id"]]
    assert [made["titles"][number] for number in query["top"][place]] == [detailed.titles[d] for d in answer.ids[:10]]
    assert query["grades"][place] == answer.grades[:10]
    assert [made["texts"][number] for number in query["top"][place]] == [detailed.texts[d] for d in answer.ids[:10]]
    for number, grade, places in query["wanted"]:
        assert grade >= summary.task.rel
        title = made["titles"][number]
        found = [detailed.titles[document] for document in answer.ids]
        assert places[place] == (found.index(title) + 1 if title in found else 0)


def test_the_front_by_hand() -> None:
    points = {
        "slow best": (9.0, 0.9),
        "quick": (1.0, 0.5),
        "beaten": (2.0, 0.4),
        "middle": (3.0, 0.7),
        "twin": (9.5, 0.9),
        "quick, too": (1.0, 0.5 + 1e-15),
    }
    assert front_of(points) == ["quick", "middle", "slow best"]
    assert front_of({}) == []


def test_charts_are_valid_and_become_pictures(result: tuple[Summary, Detailed]) -> None:
    made = charts(*result)
    for chart in made:
        for panel in chart.panels:
            panel.to_dict(validate=True)
    assert [chart.key for chart in made] == [  # but for cost, which is the same for all
        "scores", "quality-latency", "categories", "measures-k", "latency", "differences",
    ]  # fmt: skip
    few = ("categories", "quality-latency", "scores")
    drawn, problems = pictures([chart for chart in made if chart.key in few])
    assert problems == []
    assert sorted(drawn) == [f"charts/{k}.{e}" for k in few for e in ("png", "svg")]
    for name, content in drawn.items():
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<svg")
        assert b"var(--" not in content


def test_intervals_are_there_for_every_cut(result: tuple[Summary, Detailed]) -> None:
    summary, _ = result
    for row in summary.ran:
        for name in ("p@1", "recall@3", "ndcg@5", "map@10"):
            value = row.measures[name]
            assert value.low is not None
            assert value.high is not None
            assert value.low <= value.mean <= value.high


def test_csv_and_json_hold_the_unrounded_figures(result: tuple[Summary, Detailed]) -> None:
    summary, _ = result
    read = list(csv.DictReader(io.StringIO(csv_text(summary))))
    assert [row["contender"] for row in read] == [row["contender"] for row in matrix_table(summary)]
    best = next(row for row in summary.rows if row.label == read[0]["contender"])
    assert float(read[0]["ndcg@10"]) == best.measures["ndcg@10"].mean
    assert read[-1]["not_run"] == "key_unset"
    parsed = json.loads(json_bytes(summary))
    assert parsed["rows"][0]["ndcg@10"] == best.measures["ndcg@10"].mean
    assert parsed["format"] == 2
    assert parsed["verdict"] == json.loads(msgspec.json.encode(summary.verdict))
    assert parsed["text"] == [*verdict_sentences(summary), *advice(summary)]


def test_a_formula_in_a_csv_is_only_text(result: tuple[Summary, Detailed]) -> None:
    changed = msgspec.structs.replace(result[0].rows[0], model='=HYPERLINK("x")')
    summary = msgspec.structs.replace(result[0], rows=[changed, *result[0].rows[1:]])
    assert next(csv.DictReader(io.StringIO(csv_text(summary))))["model"] != '=HYPERLINK("x")'
    assert "'=HYPERLINK" in csv_text(summary)


def test_latex_escapes_and_keeps_its_columns(result: tuple[Summary, Detailed]) -> None:
    reason = "50% of A_B & #1 {x} \\ ~^$"
    rows = [
        msgspec.structs.replace(row, not_run=Failure(kind="failed", error="Own", text=reason)) if row.not_run else row
        for row in result[0].rows
    ]
    summary = msgspec.structs.replace(result[0], rows=rows)
    text = latex(summary)
    assert r"50\% of A\_B \& \#1 \{x\} \textbackslash{} \textasciitilde{}\textasciicircum{}\$" in text
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    width = len(columns(summary))
    for line in body:
        cells = len(re.findall(r"(?<!\\)&", line)) + 1
        assert cells == (3 if r"\multicolumn" in line else width)


def test_markdown_keeps_its_columns(hostile: tuple[Summary, Detailed]) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", markdown(hostile[0]), re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert tables


def test_how_it_was_measured_tells_the_task_and_its_health(result: tuple[Summary, Detailed]) -> None:
    facts = dict(task_facts(*result))
    # 20 queries × 25 documents are all judged; what the files of the task hold
    truth = json.loads((Path(__file__).parents[2] / "queries/wikipedia/ground_truth.json").read_text())["grades"]
    grades = [grade for query in truth.values() for grade in query.values()]
    assert facts["Judgments"].startswith(f"{len(grades)}: {grades.count(3)} of grade 3, {grades.count(2)} of grade 2")
    relevant = [sum(grade >= 2 for grade in query.values()) for query in truth.values()]
    assert f"{min(relevant)} to {max(relevant)}" in facts["Relevant per query"]
    assert [row[0] for row in use_table(result[0])] == [row.label for row in result[0].ran]


@pytest.mark.parametrize("kept", [["voyage-4"], ["bm25"]], ids=["nothing ran", "one contender"])
def test_a_page_comes_out_of_the_smallest_results(
    kept: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bakeoff.core.paths import default_lineup

    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    folder = save(run(Lineup.read(default_lineup()).narrow(kept)), tmp_path)
    render(folder)
    made = (folder / "evaluation_report.html").read_text()
    assert ("Nothing ran" in made) == (kept == ["voyage-4"])
    assert csv_text(read_summary(folder))


def test_a_page_of_very_many_answers_has_the_best_contenders(
    result: tuple[Summary, Detailed], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, detailed = result
    monkeypatch.setattr(page_data, "ANSWERS", 2 * len(detailed.queries))
    means = {row.label: row.measures[summary.verdict.measure].mean for row in summary.ran}
    best = sorted(means, key=lambda label: -means[label])[:2]
    assert len(means) > 2
    assert set(payload(summary, page_data.shown_contenders(summary, detailed))["contenders"]) == set(best)
    text = page(summary, detailed, [])
    assert f"This page has the 2 best of {len(means)} contenders" in text
    assert all(label in text for label in means)
