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
from tests.errors import says

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
    [("documents.csv", "documents.csv"), ("queries.csv", "queries.csv")],
)
def test_an_empty_table_is_named_itself_and_not_the_judgments(shop: Path, file: str, said: str) -> None:
    (shop / file).write_text("id,text\n")
    code, _, err = bakeoff(shop, "validate", "shop.toml")
    assert code == 2
    says(err, said)
    assert "judgments.csv" not in err


@pytest.mark.parametrize(
    ("old", "new", "problem", "remedy"),
    [
        ("[task]", 'mesures = ["p@5"]\n[task]', "'mesures'", "'measures'"),
        ("ranker =", "rankr =", "'rankr'", "'ranker'"),
        (
            'ranker = "bm25"',
            'provider = "fake"\nstore = "faiss"\nprecision = ["float32", "int4"]',
            "'int4'",
            "'int8'",
        ),
        (
            'ranker = "bm25"',
            'provider = "fake"\nstore = "faiss"\nchunking = { strategy = "sentences" }',
            "'sentences'",
            "'sentence'",
        ),
        ('ranker = "bm25"', 'ranker = "bm25"\noptions = { k1 = "low" }', "'low'", ""),
        ('format = "tables"', "", "format", "native"),
        ('queries = "queries.csv"', "", "'tables'", "`bakeoff options tables`"),
    ],
)
def test_a_line_up_with_a_slip_is_told_what_would_do(shop: Path, old: str, new: str, problem: str, remedy: str) -> None:
    (shop / "shop.toml").write_text(LINEUP.replace(old, new))
    code, _, err = bakeoff(shop, "validate", "shop.toml")
    assert code == 2
    says(err, problem)
    says(err, remedy)
    assert "None" not in err


@pytest.mark.parametrize(
    ("option", "remedy"),
    [("weights_file=x.json", "profiles"), ("drop_emty=true", "'drop_empty'")],
)
def test_an_option_of_another_kind_of_task_is_named_with_its_kind(shop: Path, option: str, remedy: str) -> None:
    code, _, err = bakeoff(shop, "run", "shop.toml", "--set", option)
    assert code == 2
    says(err, "--set", "'graded'", "'tables'", f"{option.partition('=')[0]!r}")
    says(err, remedy)


def test_a_lead_has_its_size_and_its_interval(tmp_path: Path) -> None:
    _, out, err = bakeoff(tmp_path, "run", "trips", "--no-charts", "--contender", "markov", "--contender", "majority")
    says(out.splitlines()[0], "markov", "MRR", "majority", "0.05")
    assert not err
    assert "free" not in out  # no price is known


def test_what_a_task_is_stands_in_every_report(tmp_path: Path) -> None:
    about = "A stress test of meaning without words: "
    code, _, err = bakeoff(tmp_path, "run", "wikipedia-paraphrased", "--contender", "bm25", "--no-charts")
    assert code == 0, err
    (result,) = (tmp_path / "results").iterdir()
    page = (result / "evaluation_report.html").read_text(encoding="utf-8")
    assert page.index('id="method"') < page.index(about) < page.index("<script")
    assert (result / "matrix.md").read_text(encoding="utf-8").splitlines()[2].startswith(about)
    assert bakeoff(tmp_path, "show", "latest", "--full")[1].splitlines()[1].startswith(about)


def test_what_a_task_is_must_be_text(shop: Path) -> None:
    (shop / "shop.toml").write_text(LINEUP.replace("[task]", "[task]\nabout = 5"))
    code, _, err = bakeoff(shop, "validate", "shop.toml")
    assert code == 2
    says(err, "5")


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
    says(err)
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
    assert asked.count(" file ") == 3
    assert [what in asked for what in ("documents:", "queries:", "judgments (")] == [True] * 3
    says(asked, "2 documents", "2 queries")
