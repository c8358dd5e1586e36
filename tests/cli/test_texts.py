"""What people read when something is wrong, or when two figures seem to disagree: each text names its real cause."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bakeoff.cli.shared_options import result_path

from tests.cli.test_wrong_arguments import ROOT, bakeoff

LINEUP = """
[task]
format = "tables"
documents = "documents.csv"
queries = "queries.csv"
judgments = "judgments.csv"

[[contender]]
ranker = "bm25"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "documents.csv").write_text("id,text\nd1,desk lamp\nd2,oak desk\n")
    (tmp_path / "queries.csv").write_text("id,text\nq1,lamp\nq2,desk\n")
    (tmp_path / "judgments.csv").write_text("query,document,grade\nq1,d1,1\nq2,d2,1\n")
    (tmp_path / "shop.toml").write_text(LINEUP)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "said"),
    [("documents.csv", "documents.csv: has no documents"), ("queries.csv", "queries.csv: has no queries")],
)
def test_an_empty_table_is_named_itself_and_not_the_judgments(shop: Path, file: str, said: str) -> None:
    (shop / file).write_text("id,text\n")
    code, _, err = bakeoff(shop, "validate", "shop.toml")
    assert code == 2
    assert said in err
    assert "judgments.csv" not in err


@pytest.mark.parametrize(
    ("old", "new", "problem", "remedy"),
    [
        ("[task]", 'mesures = ["p@5"]\n[task]', "there is no key 'mesures'", "did you mean 'measures'?"),
        ("ranker =", "rankr =", "contender 1: there is no key 'rankr'", "did you mean 'ranker'?"),
        (
            'ranker = "bm25"',
            'provider = "fake"\nstore = "faiss"\nprecision = ["float32", "int4"]',
            "contender 1, precision 2: 'int4' is not one of: float32, int8, binary",
            "did you mean 'int8'?",
        ),
        (
            'ranker = "bm25"',
            'provider = "fake"\nstore = "faiss"\nchunking = { strategy = "sentences" }',
            "'sentences' is not one of: whole, fixed, sentence, semantic, recursive, markdown",
            "did you mean 'sentence'?",
        ),
        ('ranker = "bm25"', 'ranker = "bm25"\noptions = { k1 = "low" }', "contender 1, k1: 'low' is not a number", ""),
        ('format = "tables"', "", "a task needs a format", "one of: native, beir, tables"),
        ('queries = "queries.csv"', "", "format 'tables' needs queries (table of queries)", "`bakeoff options tables`"),
    ],
)
def test_a_line_up_with_a_slip_is_told_what_would_do(shop: Path, old: str, new: str, problem: str, remedy: str) -> None:
    (shop / "shop.toml").write_text(LINEUP.replace(old, new))
    code, _, err = bakeoff(shop, "validate", "shop.toml")
    assert code == 2
    assert problem in err
    assert remedy in err
    assert "None" not in err


@pytest.mark.parametrize(
    ("option", "remedy"),
    [("weights_file=x.json", "tasks of kind profiles have it"), ("drop_emty=true", "did you mean 'drop_empty'?")],
)
def test_an_option_of_another_kind_of_task_is_named_with_its_kind(shop: Path, option: str, remedy: str) -> None:
    code, _, err = bakeoff(shop, "run", "shop.toml", "--set", option)
    assert code == 2
    assert f"--set: a task of kind 'graded' and format 'tables' has no option {option.partition('=')[0]!r}" in err
    assert remedy in err


def test_a_lead_over_one_row_is_not_the_smallest_of_several_and_has_its_price(tmp_path: Path) -> None:
    _, out, err = bakeoff(tmp_path, "run", "trips", "--no-charts", "--contender", "markov", "--contender", "majority")
    assert "It is better than majority, by 0.052 (p (Holm) = " in out, err
    assert "Cost of the best: none. No price is known for it." in out
    assert "tie group" not in out


def test_what_a_task_is_stands_in_the_head_of_every_report(tmp_path: Path) -> None:
    about = "A stress test of meaning without words: "
    code, out, err = bakeoff(tmp_path, "run", "wikipedia-paraphrased", "--contender", "bm25", "--no-charts")
    assert code == 0, err
    assert out.splitlines()[1].startswith(about)
    (result,) = (tmp_path / "results").iterdir()
    page = (result / "evaluation_report.html").read_text(encoding="utf-8")
    assert page.index("<h1>") < page.index(about) < page.index('id="verdict"')
    assert (result / "matrix.md").read_text(encoding="utf-8").splitlines()[2].startswith(about)
    assert bakeoff(tmp_path, "show", "latest")[1].splitlines()[1].startswith(about)


def test_what_a_task_is_must_be_text(shop: Path) -> None:
    (shop / "shop.toml").write_text(LINEUP.replace("[task]", "[task]\nabout = 5"))
    code, _, err = bakeoff(shop, "validate", "shop.toml")
    assert code == 2
    assert "about: 5 is not text" in err


def test_latest_is_what_was_started_last_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, started in (
        ("20260102-000000-x", "2026-01-02T00:00:00+00:00"),
        ("reference", "2026-01-01T00:00:00+00:00"),
    ):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "metrics_summary.json").write_text(json.dumps({"started": started}))
    monkeypatch.chdir(tmp_path)
    assert result_path(Path("latest")) == Path("results/20260102-000000-x")


def test_latest_is_a_result_wherever_one_is_taken(shop: Path) -> None:
    code, _, err = bakeoff(shop, "compare", "latest")
    assert code == 2
    assert "no result under results/ yet" in err
    (shop / "shop.toml").write_text(LINEUP + '\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n')
    assert bakeoff(shop, "run", "shop.toml", "--no-charts")[0] == 0
    (result,) = (shop / "results").iterdir()
    shutil.copytree(result, shop / "before")
    for arguments in (
        ["compare", "latest"],
        ["gate", "latest", "--baseline", "before"],
        ["gate", "before", "--baseline", "latest"],
        ["plan-queries", "latest", "--width", "0.1", "--variance", "0.04"],
        ["export-mteb", "latest", "--out", "mteb", "--task", "SciFact"],
        ["history", "latest"],
    ):
        code, _, err = bakeoff(shop, *arguments)
        assert code == 0, (arguments, err)
        assert "latest" not in err


def test_init_asks_at_a_terminal_for_what_it_is_not_given(shop: Path) -> None:
    keyboard, terminal = os.openpty()
    os.write(keyboard, b"documents.csv\nqueries.csv\n\n")
    done = subprocess.run(
        [sys.executable, "-m", "bakeoff", "init"], cwd=shop, stdin=terminal, capture_output=True, text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ("harness", "providers"))},
    )  # fmt: skip
    os.close(keyboard)
    os.close(terminal)
    assert done.returncode == 0, done.stderr
    asked = done.stdout + done.stderr
    assert [asked.count(f"he file of the {what}") for what in ("documents", "queries", "judgments")] == [1, 1, 1]
    assert "its task has 2 documents, 2 queries, no judgments yet" in asked
