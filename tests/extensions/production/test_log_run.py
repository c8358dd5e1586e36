"""A sampled log as a task: `run` decides per query asked, worked out by hand, and `log matrix` has the same figures."""

from __future__ import annotations

import json
from collections import Counter
from operator import mul
from pathlib import Path
from typing import Any

import pytest
from bakeoff.cli.main import app
from bakeoff.core.files import write_json
from bakeoff.extensions.production.log_sample import sample_log
from bakeoff.extensions.several_results.task_table import combine
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import WEIGHTED
from bakeoff.results.compare import compare_results
from bakeoff.results.gate import gate
from bakeoff.results.result import Result, load
from bakeoff.results.summary import summarise
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError
from scipy import stats
from typer.testing import CliRunner

from tests.errors import refuses, says

# Asked 24 times: half of it is one query, a sixth another; of the eight in the tail, half are drawn.
COUNTS = Counter({"first": 12, "second": 4} | {f"rare{number}": 1 for number in range(8)})
SEARCH = """
HEAD, TAIL = {head!r}, {tail!r}
def head(text, k):
    return ["good", "bad"] if text in HEAD else ["bad", "good"]
def tail(text, k):
    return ["good", "bad"] if text in TAIL else ["bad", "good"]
"""
LINEUP = """
task = { format = "tables", name = "log", documents = "docs.csv", queries = "queries.jsonl", judgments = "grades.csv" }
measures = ["p@1", "mrr"]
rounds = 1
[[contender]]
retriever = "file:mine.py:head"
[[contender]]
retriever = "file:mine.py:tail"
"""


def traffic_folder(folder: Path) -> Path:
    sample_log(COUNTS, 6, 3, folder / "queries.jsonl")
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    rare = [row["text"] for row in rows if row["category"] == "tail"]
    assert [round(row["weight"] * 12) for row in rows] == [6, 2, 1, 1, 1, 1]
    (folder / "docs.csv").write_text("id,text\ngood,yes\nbad,no\n", encoding="utf-8")
    grades = "".join(f"{row['id']},good,1\n{row['id']},bad,0\n" for row in rows)
    (folder / "grades.csv").write_text("query,document,grade\n" + grades, encoding="utf-8")
    source = SEARCH.format(head=["first", rare[0]], tail=["second", *rare])
    (folder / "mine.py").write_text(source, encoding="utf-8")
    (folder / "bakeoff.toml").write_text(LINEUP, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = traffic_folder(tmp_path_factory.mktemp("traffic"))
    saved = _run(folder)
    return saved, load(saved)


def _run(folder: Path) -> Path:
    """By the command, which makes every report."""
    given = ["run", str(folder / "bakeoff.toml"), "--out", str(folder / "results"), "--no-charts"]
    ended = CliRunner().invoke(app, given)
    assert ended.exit_code == 0, ended.output
    (saved,) = (folder / "results").iterdir()
    return saved


def test_run_decides_per_query_asked_by_hand(result: tuple[Path, Result]) -> None:
    """`head` answers 12 + 1 of the drawn queries: 6/12 + 1/12. `tail` all others: 2/12 + 4/12, and 5 of 6 drawn ones.

    Only the tail is open, a third of the traffic, of which four queries were drawn: too few for more than Clopper and
    Pearson's interval of one of four for `head`, and of four of four for `tail`.
    """
    _, read = result
    rows = {row.label: row for row in read.summary.rows}
    head, tail = rows["head"].measures["p@1"], rows["tail"].measures["p@1"]
    one, four = (stats.binomtest(ones, 4).proportion_ci(0.95, "exact") for ones in (1, 4))
    assert head.mean == pytest.approx(7 / 12)
    assert (head.low, head.high) == pytest.approx((6 / 12 + one.low / 3, 6 / 12 + one.high / 3), abs=0.005)
    assert tail.mean == pytest.approx(0.5)
    assert (tail.low, tail.high) == pytest.approx((2 / 12 + four.low / 3, 2 / 12 + 1 / 3), abs=0.005)
    assert [float(read.values(label, "p@1").mean()) for label in ("head", "tail")] == pytest.approx([2 / 6, 5 / 6])
    assert rows["head"].categories["tail"]["p@1"] == pytest.approx(1 / 4)
    assert rows["head"].bounds["p@1"].irrelevant == pytest.approx(7 / 12)
    verdict = read.summary.verdict
    assert (verdict.leader, verdict.best_set) == ("head", ["head", "tail"])
    (pair,) = verdict.pairs
    assert pair.difference == pytest.approx(1 / 12)
    assert pair.t_p == pytest.approx(2 * stats.t.sf(2**0.5, 3))
    assert pair.p_holm > pair.t_p  # an imagined failure of the heaviest query
    assert {label: standing.mark for label, standing in verdict.standings.items()} == {
        "head": "leads", "tail": "may be best",
    }  # fmt: skip


def test_log_matrix_compare_and_gate_have_the_same_figures(result: tuple[Path, Result]) -> None:
    folder, read = result
    sample = folder.parent.parent / "queries.jsonl"
    printed = CliRunner().invoke(app, ["log", "matrix", str(folder), "--sample", str(sample), "-m", "p@1", "--json"])
    figures: dict[str, Any] = json.loads(printed.output)
    for row in read.summary.ran:
        value = row.measures["p@1"]
        assert list(figures["rows"][row.label].values())[:3] == pytest.approx([value.mean, value.low, value.high])
    (pair,) = read.summary.verdict.pairs
    assert figures["pairs"][0]["p_holm"] == pytest.approx(pair.p_holm)
    comparison = compare_results([read], "p@1")
    assert comparison.means == pytest.approx({"head": 7 / 12, "tail": 0.5})
    assert comparison.pairs == [pair]
    (check,) = gate(read, read, "p@1", contenders=["tail=head"]).checks
    assert (check.before, check.after) == pytest.approx((7 / 12, 0.5))


def test_an_audit_weighs_queries_by_traffic_and_a_plan_says_that_it_does_not(
    result: tuple[Path, Result], tmp_path: Path
) -> None:
    """As in the matrix: `head` answers 7/12 of the traffic, `tail` half of it and 5 of the 6 drawn queries."""
    folder = traffic_folder(tmp_path)
    grades = {query: {"good": 1, "bad": 0} for query in result[1].queries}
    for who, kind in (("judge", "model"), ("ann", "person")):
        write_json(folder / "annotations" / f"{who}.json", {"metadata": {"kind": kind}, "grades": grades})
    lineup = str(folder / "bakeoff.toml")
    audited = CliRunner().invoke(app, ["audit", lineup, "judge", "--lineup", lineup, "--samples", "10"])
    said = " ".join(audited.output.split())
    assert f"({WEIGHTED}): head 0.583, tail 0.500" in said, audited.output
    says(audited.output, "6 of 6")
    says(audited.output, "12 pairs", "22.1%")  # 1 − .05^(1/12)
    assert "κ 1.0000, quadratic 1.0000" in said
    planned = CliRunner().invoke(app, ["plan-queries", str(result[0]), "--difference", "0.1"]).output
    says(" ".join(planned.split()), "p@1")


def test_a_replay_of_the_tasks_own_queries_knows_their_traffic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both answer with the same two documents; the order is the same for one drawn query of the tail alone, 1/12."""
    monkeypatch.chdir(traffic_folder(tmp_path))
    swapped = 0.81 + 0.1 / 0.9 * 0.81  # RBO where the first places disagree and the first two agree
    printed = CliRunner().invoke(app, ["log", "replay", "head", "tail", "--json"])
    assert printed.exit_code == 0, printed.exception
    assert json.loads(printed.stdout)["rbo"] == pytest.approx(11 / 12 * swapped + 1 / 12), printed.output


def test_corrected_scores_say_that_drawn_queries_count_alike(tmp_path: Path) -> None:
    sample_log(Counter({f"query {n}": 1 + n % 5 for n in range(60)}), 30, 3, tmp_path / "queries.jsonl")
    (tmp_path / "docs.csv").write_text("id,text\ngood,query\nbad,no\n", encoding="utf-8")
    lineup = tmp_path / "bakeoff.toml"
    task = 'task = { format = "tables", name = "log", documents = "docs.csv", queries = "queries.jsonl" }'
    rows = '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    lineup.write_text(f'{task}\nmeasures = ["p@1"]\n{rows}', encoding="utf-8")
    grades = {query.id: {"good": 1, "bad": 0} for query in load_task(Lineup.read(lineup).task, tmp_path).queries}
    for who, kind in (("judge", "model"), ("ann", "person")):
        write_json(tmp_path / "annotations" / f"{who}.json", {"metadata": {"kind": kind}, "grades": grades})
    shown = CliRunner().invoke(app, ["grade", "corrected", str(lineup), "--lineup", str(lineup)])
    says(shown.output, "Drawn")


def test_every_head_says_what_the_means_are_over(result: tuple[Path, Result]) -> None:
    folder, _ = result
    says(CliRunner().invoke(app, ["show", str(folder)]).output, "traffic")
    shown = CliRunner().invoke(app, ["show", str(folder), "--full"]).output
    assert WEIGHTED in " ".join(shown.split())
    assert WEIGHTED in (folder / "matrix.md").read_text(encoding="utf-8").splitlines()[0]
    assert WEIGHTED in (folder / "evaluation_report.html").read_text(encoding="utf-8")
    for name in ("matrix.json", "metrics_summary.json"):
        assert json.loads((folder / name).read_text(encoding="utf-8"))["task"]["weighting"] == "traffic"
    compared = CliRunner().invoke(app, ["compare", str(folder)]).output
    assert WEIGHTED in " ".join(compared.split())


def test_without_the_columns_the_task_is_the_same_and_queries_count_alike(tmp_path: Path) -> None:
    lineup = Lineup.read(traffic_folder(tmp_path) / "bakeoff.toml")
    weighted = load_task(lineup.task, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    plain_rows = [{key: row[key] for key in ("id", "text", "category", "weight")} for row in rows]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in plain_rows), encoding="utf-8")
    plain = load_task(lineup.task, tmp_path)
    assert all(query.drawn is None for query in plain.queries)
    assert plain.fingerprint() == weighted.fingerprint()
    folder = _run(tmp_path)
    assert load(folder).summary.verdict.leader == "tail"
    for name in ("matrix.json", "metrics_summary.json", "detailed_results.json"):
        content = (folder / name).read_text(encoding="utf-8")
        assert "weighting" not in content
        assert '"drawn":' not in content


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"weight": 0.1}, "0.6"),
        ({"weight": "much"}, "'much'"),
        ({"weight": None}, "1"),
        ({"category": "torso"}, "stratum 'torso' has 2 queries, of 1 to 1"),
    ],
)
def test_weights_that_can_not_be_are_refused(change: dict[str, object], problem: str, tmp_path: Path) -> None:
    lineup = Lineup.read(traffic_folder(tmp_path) / "bakeoff.toml")
    first, *rest = (tmp_path / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [json.dumps(json.loads(first) | change), *rest]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with refuses(InputError, problem, file="queries.jsonl"):
        load_task(lineup.task, tmp_path)


def test_every_table_of_a_run_has_the_means_of_its_matrix(tmp_path: Path) -> None:
    """The second stage puts the right document first: 5/12 of the traffic gain by it, four of the six queries.

    Its error is that of `head`: the tail's alone, with 3 degrees of freedom.
    """
    folder = traffic_folder(tmp_path)
    with (folder / "mine.py").open("a", encoding="utf-8") as file:
        file.write("def right(query, documents):\n    return [float(text == 'yes') for text in documents]\n")
    more = (
        '[[fusion]]\nof = ["head", "tail"]\nlabel = "both"\n[[rerank]]\nof = "head"\nprovider = "file:mine.py:right"\n'
    )
    (folder / "bakeoff.toml").write_text(f'primary = "p@1"\n{LINEUP}{more}', encoding="utf-8")
    outcome = run(Lineup.read(folder / "bakeoff.toml"), Settings(tune_weights=True))
    rows = {row.label: row.measures["p@1"].mean for row in summarise(outcome).rows}
    (gain,) = outcome.extras.figures["second_stage"].values()
    assert (gain["before"], gain["after"], gain["gain"]) == pytest.approx((7 / 12, 1.0, 5 / 12))
    assert gain["before"] == pytest.approx(rows["head"])
    assert gain["p"] > 2 * stats.t.sf(5 / 12 / (0.5 / 144) ** 0.5, 3)  # an imagined failure of the heaviest query
    tuned = outcome.extras.figures["tuned_weights"]["both"]
    assert tuned["given"] == pytest.approx(rows["both"])
    shares = [query.drawn.weight for query in outcome.task.queries if query.drawn]
    assert tuned["out_of_fold"] == pytest.approx(sum(map(mul, shares, tuned["per_query"])))


def test_tasks_side_by_side_keep_their_weights(tmp_path: Path, result: tuple[Path, Result]) -> None:
    """`head` is better by 1/12 per query asked on both tasks, though `tail` answers more of the queries."""
    folder = traffic_folder(tmp_path)
    (folder / "bakeoff.toml").write_text(LINEUP.replace('name = "log"', 'name = "other"'), encoding="utf-8")
    table = combine([result[1], load(_run(folder))], "p@1")
    assert {row.label: row.by_task for row in table.rows} == {
        "head": pytest.approx({"log": 7 / 12, "other": 7 / 12}),
        "tail": pytest.approx({"log": 0.5, "other": 0.5}),
    }
    (pair,) = table.pairs
    assert (pair.a, pair.b) == ("head", "tail")
    assert pair.over_tasks.difference == pytest.approx(1 / 12)
