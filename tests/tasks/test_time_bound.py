"""Time-bound tasks: dates in every format, their mistakes by file and place, and a run from files to page and back."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bakeoff as api
import pytest
from bakeoff.core.paths import lineup_file, root
from bakeoff.core.task import Task
from bakeoff.extensions.testsets.health import text_health
from bakeoff.extensions.testsets.plan_queries import plan_queries
from bakeoff.extensions.testsets.query_import import import_queries
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.compare import compare_results
from bakeoff.results.gate import gate
from bakeoff.running.runner import run
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError

from tests.cli.test_wrong_arguments import bakeoff
from tests.errors import refuses
from tests.facts import arguments
from tests.native_task import native_files, write_files, write_lineup

DATES = {
    "1": {"valid_from": "2020-01-01", "valid_to": "2020-12-31"},
    "2": {"valid_from": "2021-01-01"},
    "3": {},
}
DAYS = {"q1": "2020-06-01", "q2": "2021-01-01"}  # q3 is not time-bound
NATIVE = {"format": "native", "articles": "articles.json", "queries": "queries.json", "ground_truth": "truth.json"}


def _files() -> dict[str, Any]:
    """Three documents and three queries, of which two are about a day."""
    files = native_files(category={"q1": "bound", "q2": "bound", "q3": "free"}.__getitem__)
    for page in files["articles"]["articles"]:
        page |= DATES[str(page["page_id"])]
    for query in files["queries"]["queries"]:
        if query["query_id"] in DAYS:
            query["as_of"] = DAYS[query["query_id"]]
    return files


def _task(folder: Path, files: Mapping[str, Any]) -> Task:
    write_files(folder, files)
    return load_task(NATIVE, folder)


@pytest.fixture
def lineup(tmp_path: Path) -> Path:
    """Two rows of hand-written answers. q1: document 2 is out of date; q2: document 1 is."""
    answers = {
        "old": {"q1": ["2", "1", "3"], "q2": ["1", "2"], "q3": ["1", "2", "3"]},
        "new": {"q1": ["1", "3", "2"], "q2": ["2", "3", "1"], "q3": ["3", "2", "1"]},
    }
    rows = ""
    for name, ranked in answers.items():
        lines = [json.dumps({"query": query, "ranked": ids}) for query, ids in ranked.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
        rows += f'[[contender]]\nlabel = "{name}"\nanswers = "{name}.jsonl"\n'
    head = 'measures = ["mrr", "stale@1", "stale@2"]\nprimary = "mrr"'
    return write_lineup(tmp_path, _files(), contenders=rows, head=head)


def test_a_run_from_the_files_to_the_page_and_back(lineup: Path, tmp_path: Path) -> None:
    code, out, err = bakeoff(tmp_path, "run", str(lineup), "--no-charts")
    assert code == 0, err
    (folder,) = (tmp_path / "results").iterdir()
    result = api.load(folder)
    rows = {row.label: row for row in result.summary.rows}
    # old: q1 has 2, 1, 3 and q2 has 1, 2, so one of the first place and one of two is out of date. q3 counts nowhere.
    assert rows["old"].measures["stale@1"].mean == 1.0
    assert rows["old"].measures["stale@2"].mean == 0.5
    assert rows["new"].measures["stale@1"].mean == rows["new"].measures["stale@2"].mean == 0.0
    assert rows["oracle"].measures["stale@2"].mean == 0.0
    assert rows["random"].measures["stale@2"].mean == pytest.approx(1 / 3)  # one of three documents on either day
    assert {name: "stale@1" in figures for name, figures in rows["old"].categories.items()} == {
        "bound": True, "free": False,
    }  # fmt: skip
    assert "stale@1" in result.summary.diagnostic
    assert rows["old"].bounds.keys() == {"mrr"}
    assert arguments(result.summary.warnings, "dated_measures") == [
        {"measures": ["stale@1", "stale@2"], "dated": 2, "queries": 3}
    ]

    values = result.values("old", "stale@1")
    assert values[:2].tolist() == [1.0, 1.0]
    assert math.isnan(values[2])
    (last,) = [record for record in result.scores() if record["contender"] == "old" and record["query"] == "q3"]
    assert last["stale@1"] is None
    assert last["mrr"] == 0.0
    assert result.detailed.baselines["random"]["stale@1"] == [pytest.approx(1 / 3), pytest.approx(1 / 3), None]
    assert {query: info.as_of or "" for query, info in result.detailed.queries.items()} == {**DAYS, "q3": ""}
    assert result.to_polars("scores")["stale@1"].null_count() == 2

    (head,) = [line for line in out.splitlines() if "Stale@1" in line]
    assert "Stale@2" in head
    page = (folder / "evaluation_report.html").read_text(encoding="utf-8")
    assert "Stale@1" in page
    assert "2020-06-01" in page
    with (folder / "matrix.csv").open(newline="", encoding="utf-8") as file:
        matrix = {row["contender"]: row for row in csv.DictReader(file)}
    assert float(matrix["old"]["stale@1"]) == 1.0

    for refused in (
        lambda: compare_results([result], "stale@1"),
        lambda: gate(result, result, "stale@1"),
        lambda: plan_queries([result], "stale@1", width=0.1),
        lambda: result.values("old", "stale@3"),  # what was not stored can't be worked out without the dates
    ):
        with pytest.raises(InputError):
            refused()
    qrels, trec = folder / "judgments.qrels", folder / "runs" / "old.trec"
    assert bakeoff(tmp_path, "score", str(qrels), str(trec), "-m", "stale@1")[0] == 2


@pytest.mark.parametrize("command", ["run", "validate"])
def test_the_measure_needs_a_day_in_the_queries(lineup: Path, tmp_path: Path, command: str) -> None:
    files = _files()
    for query in files["queries"]["queries"]:
        query.pop("as_of", None)
    write_files(tmp_path, files)
    code, _, err = bakeoff(tmp_path, command, str(lineup))
    assert code == 2
    assert "measures" in err
    assert "as_of" in err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("file", "place", "field", "value"),
    [
        ("articles", 1, "valid_from", "2020-13-01"),
        ("articles", 1, "valid_from", "20200101"),
        ("articles", 1, "valid_to", "2020-01-01T00:00:00"),
        ("articles", 0, "valid_to", "2019-12-31"),  # before its first day
        ("articles", 2, "metadata", {"valid_to": "spring"}),
        ("queries", 1, "as_of", "2021-02-29"),
        ("queries", 0, "as_of", "yesterday"),
    ],
)
def test_a_wrong_date_is_named_by_file_and_place(
    tmp_path: Path, lineup: Path, file: str, place: int, field: str, value: Any
) -> None:
    files = _files()
    files[file][file][place][field] = value
    with pytest.raises(InputError) as caught:
        _task(tmp_path, files)
    assert caught.value.file == tmp_path / f"{file}.json"
    assert caught.value.place == f"$.{file}[{place}]"
    assert caught.value.remedy
    assert bakeoff(tmp_path, "run", str(lineup))[0] == 2


def test_a_missing_end_is_open_and_empty_ones_are_missing(tmp_path: Path) -> None:
    files = _files()
    files["articles"]["articles"][1] |= {"valid_to": None}
    files["queries"]["queries"][2] |= {"as_of": None}
    task = _task(tmp_path, files)
    assert [query.as_of for query in task.queries] == ["2020-06-01", "2021-01-01", ""]
    assert task.documents[1].metadata["valid_from"] == "2021-01-01"
    assert "valid_to" not in task.documents[1].metadata


def test_dates_are_part_of_the_fingerprint_of_time_bound_tasks_alone(tmp_path: Path) -> None:
    plain = _task(tmp_path, native_files(category={"q1": "bound", "q2": "bound", "q3": "free"}.__getitem__))
    undated = _files()
    for query in undated["queries"]["queries"]:
        query.pop("as_of", None)
    assert _task(tmp_path, undated).fingerprint() == plain.fingerprint()  # nobody asks about a day
    day, period = _files(), _files()
    day["queries"]["queries"][0]["as_of"] = "2020-06-02"
    period["articles"]["articles"][0]["valid_to"] = "2020-12-30"
    tasks = [plain, *(_task(tmp_path, files) for files in (_files(), day, period))]
    assert len({task.fingerprint() for task in tasks}) == 4


def _tables(folder: Path, documents: str, queries: str) -> Task:
    (folder / "documents.csv").write_text(documents)
    (folder / "queries.csv").write_text(queries)
    (folder / "grades.csv").write_text("query,document,grade\nq,a,1\n")
    paths = {"documents": "documents.csv", "queries": "queries.csv", "judgments": "grades.csv"}
    return load_task({"format": "tables", **paths}, folder)


DOCUMENTS = "id,text,valid_from,valid_to\na,copper,2020-01-01,\nb,lake,,2019-12-31\nc,mill,,\n"


def test_tables_have_dates_in_columns(tmp_path: Path) -> None:
    task = _tables(tmp_path, DOCUMENTS, "id,text,as_of\nq,copper,2020-01-01\nr,lake,\n")
    assert [query.as_of for query in task.queries] == ["2020-01-01", ""]
    with pytest.raises(InputError) as caught:
        _tables(tmp_path, DOCUMENTS, "id,text,as_of\nq,copper,2020-01-01\nr,lake,soon\n")
    assert (caught.value.file, caught.value.place) == (tmp_path / "queries.csv", "line 3")
    assert "columns.queries.as_of" in caught.value.remedy
    wrong = DOCUMENTS.replace("2019-12-31", "soon")
    with pytest.raises(InputError) as caught:
        _tables(tmp_path, wrong, "id,text,as_of\nq,copper,2020-01-01\n")
    assert (caught.value.file, caught.value.place) == (tmp_path / "documents.csv", "line 3")
    assert _tables(tmp_path, wrong, "id,text\nq,copper\n").queries  # a column of any content, where nobody asks


def test_beir_has_dates_in_its_metadata(tmp_path: Path) -> None:
    documents = [
        {"_id": "a", "title": "", "text": "copper", "metadata": {"valid_from": "2020-01-01"}},
        {"_id": "b", "title": "", "text": "lake", "metadata": {"valid_from": "2020-01-02", "valid_to": "2020-01-01"}},
    ]
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "copper", "as_of": "2020-01-01"}\n')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(document) + "\n" for document in documents))
    with pytest.raises(InputError) as caught:
        load_task({"format": "beir"}, tmp_path)
    assert (caught.value.file, caught.value.place) == (corpus, "line 2")
    corpus.write_text(json.dumps(documents[0]) + "\n")
    assert load_task({"format": "beir"}, tmp_path).queries[0].as_of == "2020-01-01"


def test_tasks_made_in_python_have_dates(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    corpus = pandas.DataFrame({"id": ["a", "b"], "text": ["x", "y"], "valid_to": ["2020-01-01", None]})
    queries = pandas.DataFrame({"id": ["q", "r"], "text": ["x", "y"], "as_of": ["2020-01-02", None]})
    qrels = pandas.DataFrame({"query": ["q"], "document": ["a"], "grade": [1]})
    task = Task.from_pandas(corpus, queries, qrels)
    assert [query.as_of for query in task.queries] == ["2020-01-02", ""]
    with refuses(InputError, "'q'"):
        Task.from_dicts({"a": "x"}, {"q": {"text": "x", "as_of": "soon"}}, {})
    with refuses(InputError, "'a'"):
        Task.from_dicts({"a": {"text": "x", "valid_to": "soon"}}, {"q": {"text": "x", "as_of": "2020-01-01"}}, {})


def test_imported_queries_keep_their_days(tmp_path: Path) -> None:
    path = tmp_path / "asked.csv"
    path.write_text("text,as_of\nwhat does it cost,2020-01-01\nwhat does it cost,2021-01-01\nwhere is it,\n")
    entries = import_queries(path, {}).file.queries
    assert [entry.as_of for entry in entries] == ["2020-01-01", "2021-01-01", None]  # of another day, another query
    path.write_text("text,as_of\nwhat does it cost,soon\n")
    with pytest.raises(InputError) as caught:
        import_queries(path, {})
    assert (caught.value.file, caught.value.place) == (path, "line 2")


def test_the_same_question_of_another_day_is_no_duplicate(tmp_path: Path) -> None:
    files = _files()
    for query in files["queries"]["queries"]:
        query["query_text"] = "what does a card cost"
    assert text_health(_task(tmp_path, files)).duplicates == []
    files["queries"]["queries"][1]["as_of"] = files["queries"]["queries"][0]["as_of"]
    assert text_health(_task(tmp_path, files)).duplicates == [("q1", "q2", 1.0)]


def test_the_built_in_task_is_graded_by_its_rule() -> None:
    """Grade 3: the same subject, in force on the day. 8 of its 24 rules are in force on any day, and 2 texts always."""
    articles = json.loads((root() / "corpora" / "house-rules" / "articles.json").read_text(encoding="utf-8"))
    folder = root() / "queries" / "time-bound"
    asked = json.loads((folder / "evaluate_queries.json").read_text(encoding="utf-8"))["queries"]
    grades = json.loads((folder / "ground_truth.json").read_text(encoding="utf-8"))["grades"]
    assert len(asked) == 18
    for query in asked:
        in_force = [
            page
            for page in articles["articles"]
            if page.get("valid_from", "") <= query["as_of"] <= (page.get("valid_to") or "9999")
        ]
        assert len(in_force) == 10
        right = [page for page in in_force if page.get("metadata", {}).get("subject") == query["metadata"]["subject"]]
        assert {name for name, grade in grades[query["query_id"]].items() if grade} == {right[0]["page_id"]}
        assert grades[query["query_id"]][right[0]["page_id"]] == 3
        assert len(grades[query["query_id"]]) == 26
        assert query.get("where", {"edition": 0})["edition"] in (0, right[0]["metadata"]["edition"])


def test_the_built_in_line_up_shows_what_a_filter_saves() -> None:
    outcome = run(Lineup.read(lineup_file(Path("time-bound"))).narrow(["bm25"], ()))
    stale = next(measure for measure in outcome.lineup.measures if str(measure) == "stale@1")
    assert outcome.baselines["oracle"][stale].tolist() == [0.0] * 18
    assert outcome.baselines["random"][stale].tolist() == [pytest.approx(16 / 26)] * 18
    (row,) = outcome.ran
    by_category = {
        category: [
            value
            for query, value in zip(outcome.task.queries, row.scores[stale], strict=True)
            if query.category == category
        ]
        for category in outcome.task.categories
    }
    assert by_category["filtered"] == [0.0] * 6
    assert sum(by_category["undated"]) > 0
