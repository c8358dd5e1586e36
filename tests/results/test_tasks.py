"""A line-up over several tasks: each is run as usual, then they are put side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.cli import app
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.tasks import sentences
from bakeoff.results.result import load
from bakeoff.results.tasks import combine
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

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


def test_results_of_one_task_are_refused(results: Path) -> None:
    one = load(next(path for path in results.iterdir() if (path / "metrics_summary.json").is_file()))
    with pytest.raises(InputError, match="several results"):
        combine([one])
    with pytest.raises(InputError, match="two results are of task"):
        combine([one, one])


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("", "there is no task"),
        ('task = "a"\n[[tasks]]\ntask = "b"\n', "there is a task and"),
        ('[[tasks]]\ntask = "x/a"\n[[tasks]]\ntask = "y/a"\n', "two tasks are called 'a'"),
        ('task = "a"\n[bases]\nbm25 = "bm26"\n', "no contender is called 'bm26'"),
        ('[[tasks]]\ntask = "a"\nrole = "other"\n', "role"),
    ],
)
def test_what_is_wrong_in_the_file_is_said(tmp_path: Path, head: str, problem: str) -> None:
    (tmp_path / "own.toml").write_text(head + CONTENDERS)
    with pytest.raises(InputError, match=problem):
        Lineup.read(tmp_path / "own.toml")
