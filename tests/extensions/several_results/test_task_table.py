"""A line-up over several tasks: each is run as usual, then they are put side by side."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.extensions.several_results.nested import NestedDifference, estimate_nested
from bakeoff.extensions.several_results.task_table import TaskTable, Transfer, _pairs, blocks, combine, sentences
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.result import load
from bakeoff.statistics.averaging import PerQuery
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

from tests.errors import refuses

WORDS = ["copper", "lake", "forest", "rail", "boat", "stone", "river", "mill"]
CONTENDERS = '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'


def _beir(folder: Path, count: int, shift: int) -> None:
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{n}", "title": "", "text": "{WORDS[n % 8]} {WORDS[n % 3]} {n}"}}\n' for n in range(24))
    )
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"_id": "q{n}", "text": "{WORDS[n % 8]} {n + shift}"}}\n' for n in range(count))
    )
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\t{n + shift}\t1\n" for n in range(count))
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    _beir(folder / "one", 12, 8)
    _beir(folder / "two", 6, 3)
    (folder / "both.toml").write_text(
        'measures = ["ndcg@10"]\n[bases]\n"tfidf+faiss" = "bm25"\n'
        '[[tasks]]\ntask = {format = "beir", folder = "one"}\nrole = "domain"\n'
        '[[tasks]]\ntask = {format = "beir", folder = "two"}\nname = "second"\nrole = "general"\n' + CONTENDERS
    )
    ran = CliRunner().invoke(app, ["run", str(folder / "both.toml"), "--out", str(folder / "results")])
    assert ran.exit_code == 0, ran.output
    assert "macro mean" in ran.output
    return folder / "results"


def test_every_task_has_a_result_and_one_table_has_all(results: Path) -> None:
    folders = sorted(path for path in results.iterdir() if (path / "metrics_summary.json").is_file())
    both = [load(folder) for folder in folders]
    both.sort(key=lambda result: result.summary.task.name)
    table = combine(both)
    assert table.tasks == ["one", "second"]
    assert table.roles == {"one": "domain", "second": "general"}
    assert table.queries == {"one": 12, "second": 6}
    for row in table.rows:
        means = [float(result.values(row.label).mean()) for result in both]
        assert list(row.by_task.values()) == pytest.approx(means)
        assert row.macro == pytest.approx(sum(means) / 2)
        assert row.wins == sum(
            mean == max(r.by_task[t] for r in table.rows) for t, mean in zip(table.tasks, means, strict=True)
        )
    (pair,) = table.pairs
    macro = {row.label: row.macro for row in table.rows}
    assert pair.over_tasks.difference == pytest.approx(macro[pair.a] - macro[pair.b])
    assert [(one.role, one.label, one.base) for one in table.transfer] == [
        ("domain", "tfidf+faiss", "bm25"),
        ("general", "tfidf+faiss", "bm25"),
    ]
    domain = float((both[0].values("tfidf+faiss") - both[0].values("bm25")).mean())
    assert table.transfer[0].over_tasks.difference == pytest.approx(domain)
    assert "2 tasks can't show anything about others" in " ".join(sentences(table))
    written = next(results.glob("*-and-1-more/tasks.md")).read_text()
    assert "## NDCG@10 by task" in written
    for row in table.rows:
        (line,) = [
            line for line in written.partition("## NDCG@10 by task")[2].split("##")[0].splitlines() if row.label in line
        ]
        assert all(f"{mean:.3f}" in line for mean in (*row.by_task.values(), row.macro))


def test_json_is_one_document_with_every_task_and_what_holds_over_them(results: Path) -> None:
    out = results.parent / "again"
    lineup = str(results.parent / "both.toml")
    ran = CliRunner().invoke(app, ["run", lineup, "--out", str(out), "--json", "--no-charts"])
    assert ran.exit_code == 0, ran.output
    document = json.loads(ran.stdout)
    assert [task["task"]["name"] for task in document["tasks"]] == ["one", "second"]
    for task in document["tasks"]:
        stored = json.loads((Path(task["folder"]) / "metrics_summary.json").read_bytes())
        assert {key: task[key] for key in stored} == stored
    assert document["over_tasks"] == json.loads((Path(document["folder"]) / "tasks_summary.json").read_bytes())
    macro = {row["label"]: row["macro"] for row in document["over_tasks"]["rows"]}
    means = [{row["label"]: row["measures"]["ndcg@10"]["mean"] for row in task["rows"]} for task in document["tasks"]]
    assert macro == pytest.approx({label: (means[0][label] + means[1][label]) / 2 for label in macro})
    assert {"wins", "by_task"} <= set(document["over_tasks"]["rows"][0])
    assert "p_holm" in document["over_tasks"]["pairs"][0]
    folders = [task["folder"] for task in document["tasks"]]
    alone = CliRunner().invoke(app, ["tasks", *folders, "--json"])
    table = json.loads(alone.stdout)
    assert table.pop("text")
    assert table == document["over_tasks"]


def test_one_of_several_tasks_has_no_table_over_tasks(tmp_path: Path) -> None:
    _beir(tmp_path / "one", 12, 8)
    (tmp_path / "alone.toml").write_text('[[tasks]]\ntask = {format = "beir", folder = "one"}\n' + CONTENDERS)
    ran = CliRunner().invoke(
        app, ["run", str(tmp_path / "alone.toml"), "--out", str(tmp_path / "out"), "--json", "--no-charts"]
    )
    document = json.loads(ran.stdout)
    assert (len(document["tasks"]), document["over_tasks"], document["folder"]) == (1, None, None)


def test_a_dry_run_plans_every_task_and_adds_up(results: Path) -> None:
    ran = CliRunner().invoke(app, ["run", str(results.parent / "both.toml"), "--dry-run"])
    assert ran.exit_code == 0, ran.output
    rows = [line.split() for line in ran.stdout.splitlines() if "tfidf+faiss" in line]
    # 24 documents for both, and 12 queries for the one, 6 for the other
    assert [(row[0], row[1], row[2]) for row in rows] == [("one", "tfidf+faiss", "36"), ("second", "tfidf+faiss", "30")]
    assert "in total for 2 tasks about $0.000000; no request was sent" in ran.stdout


def test_results_of_one_task_are_refused(results: Path) -> None:
    one = load(min(path for path in results.iterdir() if (path / "metrics_summary.json").is_file()))
    assert one.summary.task.name == "one"
    with refuses(InputError):
        combine([one])
    with refuses(InputError, "'one'"):
        combine([one, one])


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("", "task"),
        ('task = "a"\n[[tasks]]\ntask = "b"\n', "task"),
        ('[[tasks]]\ntask = "x/a"\n[[tasks]]\ntask = "y/a"\n', "'a'"),
        ('task = "a"\n[bases]\nbm25 = "bm26"\n', "'bm26'"),
        ('[[tasks]]\ntask = "a"\nrole = "other"\n', "role"),
    ],
)
def test_what_is_wrong_in_the_file_is_said(tmp_path: Path, head: str, problem: str) -> None:
    (tmp_path / "own.toml").write_text(head + CONTENDERS)
    with refuses(InputError, problem, file="own.toml"):
        Lineup.read(tmp_path / "own.toml")


def test_rows_that_score_alike_on_every_task_are_one_hypothesis() -> None:
    """Six queries of two tasks fall from 1 to 0, in two stores: the p of one pair, whatever the number of stores."""
    fallen = np.array([0.0] * 6 + [1.0] * 6)
    rows = {"good": np.ones(12), "faiss": fallen, "chroma": fallen.copy()}
    scores = {"one": rows, "two": {label: np.ones(12) for label in rows}}
    pairs = _pairs(list(rows), scores, dict.fromkeys(scores, PerQuery()), bounded=True)
    assert [(pair.a, pair.b) for pair in pairs] == [("good", "faiss"), ("good", "chroma"), ("faiss", "chroma")]
    alone = estimate_nested([1 - fallen, np.zeros(12)]).p
    assert [pair.p_holm for pair in pairs] == pytest.approx([alone, alone, 1.0])
    assert 2 / 2**6 <= alone < 0.05


def test_what_is_corrected_says_so() -> None:
    over = NestedDifference(difference=0.1, low=None, high=None, p=0.01, p_tasks=0.5, least=0.5)
    gained = Transfer(label="new", base="old", role="domain", tasks=["one"], over_tasks=over, p_holm=0.02)
    table = TaskTable(
        measure="ndcg@10",
        tasks=["one"],
        roles={},
        queries={"one": 5},
        rows=[],
        pairs=[],
        transfer=[gained],
        left_out=[],
    )
    assert "new gained 0.100 on domain tasks against old (p (Holm) = 0.02)." in sentences(table)
    assert blocks(table)[-1][2] == [["new − old", "domain (1)", "+0.1000", "0.0200", "0.5000"]]
