"""Commands with slightly wrong arguments: each says what is wrong and what to do, and writes nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest
from bakeoff.cli.shared_options import MOST_ROUNDS
from bakeoff.core.paths import root, task_file
from bakeoff.lineup.checks import MOST
from bakeoff.results.schema import read_summary

from tests import terminal
from tests.errors import says
from tests.facts import ids

ROOT = Path(__file__).parents[2]
POOL = root() / "corpora" / "wikipedia" / "articles.json"
REFERENCE = str(ROOT / "results" / "reference")


def bakeoff(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command with an empty cache and a wide screen."""
    return terminal.bakeoff(
        *arguments, cwd=folder, **{"BAKEOFF_HOME": str(folder / "home"), "COLUMNS": "200", **environment}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "docs").mkdir()
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "task.toml").write_text("")
    (tmp_path / "file.toml").write_text('task = "tsk"\n[[contender]]\nranker = "bm25"\n')
    (tmp_path / "nokey.toml").write_text("")
    (tmp_path / "quotes.toml").write_text('name = "mine"\ntask = wiki  # x\n')
    (tmp_path / "docs" / "a.txt").write_text("copper mines")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", REFERENCE, "--out", "taken"], "taken"),
        (["select", str(POOL), "--out", "taken"], "taken"),
        (["agreement", "wikipedia", "--out", "taken"], "taken"),
        (["corpus", "import", "docs", "--out", "taken"], "taken"),
        (["corpus", "import", "docs", "--out", "file/below.json"], "file"),
        (["queries", "generate", str(POOL), "--out", "file"], "file"),
        (["sweep", "--synthetic", "99999999999"], "GB"),
        (["run", "--offline", "--time-hosted", "5"], "--time-hosted"),
        (["grade", "wikipedia", "--judge", "llm", "--set", "temperature=hot", "--dry-run"], "'hot'"),
        (["grade", "wikipedia", "--judge", "llm", "--set", "price_in=cheap", "--dry-run"], "'cheap'"),
        (["show", "latest"], "latest"),
        (["show", "lastest"], "'latest'"),
        (["run", "docs"], "bakeoff init docs"),
        (["run", "fil.toml"], "'file.toml'"),
        (["run", "file2/fil.toml"], "file2/fil.toml"),
        (["run", "nosuch.toml"], "nosuch.toml"),
        (
            ["run", "quotes.toml"],
            "quotes.toml",
        ),
        (["run", "quotes.toml"], '"wiki"'),
        (["show", "results/nosuch"], "`latest`"),
        (["validate", "fil.toml"], "'file.toml'"),
        (["validate", "docs"], "task.toml"),
        (["validate", "tsk"], "'task'"),
        (["run", "file.toml"], "file.toml"),
        (["run", "file.toml"], "'task'"),
    ],
)
def test_it_is_said_what_is_wrong_and_nothing_is_written(folder: Path, arguments: list[str], said: str) -> None:
    before = sorted(folder.rglob("*"))
    code, _, err = bakeoff(folder, *arguments)
    assert code == 2, err
    says(err, said)
    assert [path for path in sorted(folder.rglob("*")) if "home" not in path.parts] == before


def test_a_folder_of_results_stands_for_its_newest(folder: Path) -> None:
    for name, day in (("later", "02"), ("sooner", "01")):
        shutil.copytree(REFERENCE, folder / "baseline" / name)
        summary = folder / "baseline" / name / "metrics_summary.json"
        content = json.loads(summary.read_text())
        summary.write_text(json.dumps(content | {"started": f"2026-01-{day}T00:00:00+00:00"}))
    code, _, err = bakeoff(folder, "gate", REFERENCE, "--baseline", "baseline")
    assert code == 0, err
    shown = json.loads(bakeoff(folder, "show", "baseline", "--json")[1])
    assert shown["folder"] == "baseline/later"


def test_a_baseline_is_another_result(folder: Path) -> None:
    """Of the folder that the checked result is in, too; where none is meant or left, one is named."""
    for name, day in (("monday", "01"), ("tuesday", "02"), ("sunday", "03")):
        shutil.copytree(REFERENCE, folder / "results" / name)
        summary = folder / "results" / name / "metrics_summary.json"
        content = json.loads(summary.read_text())
        summary.write_text(json.dumps(content | {"started": f"2026-01-{day}T00:00:00+00:00"}))
    code, out, err = bakeoff(folder, "gate", "latest", "--baseline", "results")
    assert code == 0, err
    says(out, "tuesday")
    example = "\n  remedy: bakeoff gate results/sunday --baseline results/tuesday\n"
    code, _, err = bakeoff(folder, "gate", "latest")
    assert code == 2
    assert err.endswith(example)
    says(err)
    code, _, err = bakeoff(folder, "gate", "latest", "--baseline", "latest")
    assert code == 2
    assert err.endswith(example)
    says(err, "latest")
    for name in ("monday", "tuesday"):
        shutil.rmtree(folder / "results" / name)
    code, _, err = bakeoff(folder, "gate", "latest", "--baseline", "results")
    assert code == 2
    says(err, "`bakeoff run`")
    code, _, err = bakeoff(folder, "gate", "latest", "--baseline", "docs")
    assert code == 2
    says(err)


def test_the_built_in_lineup_is_not_run_unnoticed(folder: Path) -> None:
    code, _, err = bakeoff(folder, "run", "--contender", "bm25", "--dry-run")
    assert code == 0, err
    says(err, "bakeoff.toml", "built-in", "line-up")
    (folder / "bakeoff.toml").write_text('task = "wikipedia"\n[[contender]]\nranker = "bm25"\n')
    assert bakeoff(folder, "run", "--dry-run")[2] == ""


@pytest.mark.parametrize("arguments", [["-h"], ["grade", "next", "-h"], ["run", "-h"]])
def test_h_is_help(folder: Path, arguments: list[str]) -> None:
    code, out, _ = bakeoff(folder, *arguments)
    assert code == 0
    assert out == bakeoff(folder, *arguments[:-1], "--help")[1]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [(["sweep", "--lineup", "own.toml"], "sweep lineup"), (["grade", "next", "--task", "task"], "grade next task")],
)
def test_an_argument_that_is_written_as_an_option_is_explained(
    folder: Path, arguments: list[str], written: str
) -> None:
    code, _, err = bakeoff(folder, *arguments)
    assert code == 2
    says(err)
    says(err, f"{written}")


def test_an_audit_of_a_person_says_who_can_be_audited(folder: Path) -> None:
    assert bakeoff(folder, "queries", "copy", "wikipedia", "mine")[0] == 0
    for path in (folder / "mine" / "annotations").glob("annotator_*.json"):
        path.write_text(path.read_text().replace('"kind": "model"', '"kind": "person"'))
    code, _, err = bakeoff(folder, "audit", "mine", "annotator_a")
    assert code == 2
    says(err, "'annotator_a'")
    says(err, "bakeoff grade mine --judge llm")


def test_a_home_that_is_a_file(folder: Path) -> None:
    code, _, err = bakeoff(folder, "run", "--contender", "fake", BAKEOFF_HOME=str(folder / "file"))
    assert code == 2
    says(err, "BAKEOFF_HOME")


def test_a_sweep_without_a_setting_that_works_names_the_cause(folder: Path) -> None:
    code, _, err = bakeoff(folder, "sweep", "--synthetic", "200", "--dimensions", "8", "--set", "index=HNSWW")
    assert code == 1
    says(err)
    assert "HNSWW" in err
    assert not (folder / "results").exists()


def test_a_store_that_is_not_installed_is_named_before_any_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bakeoff.search.stores import STORES

    monkeypatch.setattr(STORES.get("usearch"), "missing", classmethod(lambda cls, **_: "install bakeoff[usearch]"))
    code, _, err = bakeoff(folder, "sweep", "--store", "usearch", "--synthetic", "200")
    assert code == 1
    assert "usearch: install bakeoff[usearch]" in err


def _digests(task: Path) -> dict[str, str]:
    files = (file for file in sorted(task.rglob("*")) if file.is_file())
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_built_in_tasks_are_never_written_to_and_a_copy_can_be(folder: Path) -> None:
    shipped = task_file("wikipedia").parent
    before = _digests(shipped)
    for arguments in (["adjudicate", "wikipedia", "--majority"], ["annotate", "wikipedia", "--who", "me", "--no-open"]):
        code, _, err = bakeoff(folder, *arguments)
        assert code == 2
        assert "bakeoff queries copy wikipedia my-wikipedia" in err
    code, out, err = bakeoff(folder, "queries", "copy", "wikipedia", "mine")
    assert code == 0, err
    assert "mine/task.toml" in out
    code, _, err = bakeoff(folder, "adjudicate", "mine", "--majority")
    assert code == 0, err
    copied = json.loads((folder / "mine" / "ground_truth.json").read_text())["grades"]
    assert copied == json.loads((shipped / "ground_truth.json").read_text())["grades"]
    assert _digests(shipped) == before
    code, _, err = bakeoff(folder, "queries", "copy", "wikipedia", "mine")
    assert code == 2
    says(err)


def test_a_grading_that_grades_nothing_writes_nothing(folder: Path) -> None:
    assert bakeoff(folder, "queries", "copy", "wikipedia", "mine")[0] == 0
    before = _digests(folder / "mine")
    code, _, _ = bakeoff(folder, "grade", "mine", "--judge", "llm", "--offline")
    assert code != 0
    assert _digests(folder / "mine") == before


def test_help_of_grade_has_its_options_and_names_next(folder: Path) -> None:
    code, out, _ = bakeoff(folder, "grade", "--help")
    assert code == 0
    assert "--judge" in out
    says(out, "`bakeoff grade next TASK`")
    says(bakeoff(folder, "queries", "generate", "--help")[1], "[categories]")


def test_the_scholarships_run_without_pyarrow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    code, out, err = bakeoff(folder, "run", "scholarships", "--contender", "tfidf", "--no-charts")
    assert code == 0, err
    assert "tfidf" in out.splitlines()[0]
    assert "ivan, lena" in out
    (result,) = (folder / "results").iterdir()
    assert "kinds.label_modes" in ids(section.title for section in read_summary(result).sections)


def test_what_is_there_is_not_written_over_without_force(folder: Path) -> None:
    for arguments in (["corpus", "import", "docs", "--out", "file"], ["select", str(POOL), "--out", "file"]):
        code, _, err = bakeoff(folder, *arguments)
        assert code == 2
        assert "--force" in err
        assert (folder / "file").read_text() == "x"
        assert bakeoff(folder, *arguments, "--force")[0] == 0
        assert (folder / "file").read_text() != "x"
        (folder / "file").write_text("x")


def test_templates_ask_about_places_only_where_there_are_some(folder: Path) -> None:
    (folder / "docs" / "function wrappers").mkdir()
    (folder / "docs" / "lazy values").mkdir()
    (folder / "docs" / "function wrappers" / "b.txt").write_text("A decorator wraps a function and returns another.")
    (folder / "docs" / "lazy values" / "c.txt").write_text("Generators yield values lazily from an iterator protocol.")
    assert bakeoff(folder, "corpus", "import", "docs")[0] == 0
    code, out, err = bakeoff(
        folder, "queries", "generate", "articles.json", "--n", "2", "--max-overlap", "1", "--out", "asked"
    )
    assert code == 0, err
    assert "--maker llm" in out
    entries = json.loads((folder / "asked" / "queries.json").read_text())["queries"]
    assert {entry["category"] for entry in entries} == {"keywords"}
    assert bakeoff(folder, "queries", "generate", str(POOL), "--n", "1", "--out", "places")[0] == 0
    placed = json.loads((folder / "places" / "queries.json").read_text())["queries"]
    assert len({entry["category"] for entry in placed}) == 5


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "NaN", "1e999"])
@pytest.mark.parametrize(
    "option",
    ["run --max-cost", "embed --out x --max-cost", "gate latest --max-drop", "gate latest --alpha",
     "show latest --p95", "loadtest --rate", "loadtest --seconds", "loadtest --writes", "probe qdrant x --min-recall",
     "canary record fake --out x --max-cost", "run --equivalent-within"],
)  # fmt: skip
def test_no_option_takes_what_is_no_number(folder: Path, option: str, value: str) -> None:
    code, _, err = bakeoff(folder, *option.split(), value)
    assert code == 2
    says(err, option.split()[-1])


@pytest.mark.parametrize(
    "arguments",
    ["loadtest --rate 1e12", "loadtest --seconds 1e9", "loadtest --clients 99999999999", "run --rounds 10001",
     "sweep --rounds 10001", "loadtest --provider fake --words 99999999999999",
     "loadtest --provider fake --requests 99999999999999", "loadtest --provider fake --batch 99999999999999"],
)  # fmt: skip
def test_numbers_beyond_any_machine_are_refused(folder: Path, arguments: str) -> None:
    code, _, err = bakeoff(folder, *arguments.split())
    assert code == 2
    says(err)


def test_the_command_line_has_the_line_ups_bound_of_rounds() -> None:
    assert MOST["rounds"] == MOST_ROUNDS
