"""The commands as a user meets them, from the terminal."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import pytest
from bakeoff.cli import compare
from bakeoff.cli.command_table import all_commands
from bakeoff.cli.main import _verbose_first, app
from bakeoff.cli.shared_options import deliver
from bakeoff.core import printable
from bakeoff_providers.errors import BakeoffError, InputError, StoreError
from typer.testing import CliRunner

from tests.errors import says
from tests.terminal import ROOT, bakeoff, bakeoff_process


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    script = (
        "import sys\nsys.argv = ['bakeoff', '--help']\nfrom bakeoff.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'chromadb', 'faiss', 'ollama', 'sklearn', 'scipy', 'openai', 'voyageai', 'torch'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = bakeoff_process(cwd=tmp_path, code=script)
    assert done.returncode == 0, done.stderr
    assert "HEAVY []" in done.stdout
    named = set(re.findall(r"[a-z-]+", done.stdout))
    assert named.issuperset(all_commands())
    assert len(done.stdout.splitlines()) <= 50


def test_the_version_is_the_distributions(tmp_path: Path) -> None:
    done = bakeoff_process("--version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"bakeoff {version('bakeoff')}\n"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["run", "--verbose", "-y"], ["--verbose", "run", "-y"]),
        (["--verbose", "run"], ["--verbose", "run"]),
        (["run", "--", "--verbose"], ["run", "--", "--verbose"]),
        (["run", "--verbose", "--", "--verbose"], ["--verbose", "run", "--", "--verbose"]),
        ([], []),
    ],
)
def test_verbose_may_stand_anywhere_before_the_dashes(given: list[str], taken: list[str]) -> None:
    assert _verbose_first(given) == taken


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("by\nnothing"), 70, "ZeroDivisionError"),
        (BakeoffError("it failed"), 1, "error: it failed"),
        (InputError("is wrong", remedy="do better"), 2, "error: is wrong\n  remedy: do better"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
@pytest.mark.parametrize("verbose", [(), ("--verbose",)])
def test_errors_leave_in_words_and_with_their_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    said: str,
    verbose: tuple[str, ...],
) -> None:
    """A command that fails in each way; Ctrl-C ends the process itself."""

    def fail() -> None:
        raise error

    monkeypatch.setattr(compare, "score", fail)
    if code == 130:
        script = (
            "from bakeoff.cli import main as cli\nfrom bakeoff.cli import compare\n"
            "def fail() -> None:\n    raise KeyboardInterrupt\ncompare.score = fail\ncli.main()"
        )
        done = bakeoff_process("score", *verbose, cwd=tmp_path, code=script)
    else:
        done = bakeoff("score", *verbose, cwd=tmp_path)
    assert done.returncode == code
    says(done.stderr, said)
    assert ("Traceback" in done.stderr) == bool(verbose and code != 130)
    assert ("--verbose" in done.stderr) == (code == 70 and not verbose)
    assert bool(re.search(r"\n  at bakeoff[\w.]*:\d+\n", done.stderr)) == (code == 70)


def test_an_unforeseen_error_names_the_last_line_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failing line of `counted`, by its source; what it calls is this test's, and no place to look."""

    class Number(int):
        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError("two")

        __hash__ = int.__hash__

    monkeypatch.setattr(compare, "score", lambda: printable.pluralise(Number(2), "row"))
    done = bakeoff("score", cwd=tmp_path)
    source = (ROOT / "harness" / "bakeoff" / "core" / "printable.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, start=1) if "if number == 1" in text)
    assert done.returncode == 70
    says(done.stderr, "ZeroDivisionError", "bakeoff.core", f"{line}")


def test_a_run_prints_the_matrix_and_show_prints_it_again(tmp_path: Path) -> None:
    chosen = [part for name in ("fake", "bm25", "voyage") for part in ("--contender", name)]
    done = bakeoff_process("run", *chosen, "--rounds", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) <= 30
    (folder,) = (tmp_path / "results").iterdir()
    full = bakeoff("show", "latest", "--full", cwd=tmp_path).stdout
    says(full, "VOYAGE_API_KEY")
    summary = json.loads((folder / "metrics_summary.json").read_text())
    assert [row["not_run"]["kind"] for row in summary["rows"] if row.get("not_run")] == ["unavailable"] * 2
    oracle = next(row for row in summary["rows"] if row["label"] == "oracle")
    assert oracle["targets"] == {"p@5": True, "recall@10": True, "f1@5": True, "mrr": True}
    shown = bakeoff("show", "latest", cwd=tmp_path)
    decision, links, _ = shown.stdout.partition("\nbakeoff report ")
    assert links
    assert done.stdout.startswith(decision)
    assert all(screen.endswith(f"results/{folder.name}/\n") for screen in (shown.stdout, done.stdout))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "none.toml"], "none.toml"),
        (["run", "film"], "'films'"),
        (["run", "films", "--contender", "bm25", "--tune-weights"], "[[fusion]]"),
        (["run", "trips", "--set", "calibrate_thresholds=true"], "'calibrate_thresholds'"),
        (["run", "trips", "--set", "k"], "'k'"),
        (["run", "trips", "--set", "k=null"], "TOML"),
        (["run", "trips", "--set", "k=1", "--set", "k=2"], "--set"),
        (["run", "scholarships", "--set", "weights_file=none.json"], "none.json"),
        (["snapshot", "broken.toml"], "JSON"),
        (["run", "--contender", "minilmm"], "'minilm'"),
        (["run", "--store", "fais"], "'faiss'"),
        (["validate", "broken.toml"], "broken.toml"),
        (["validate", "task.toml"], "'wikpedia'"),
        (["show", "."], "metrics_summary.json"),
        (["select", "broken.toml"], "JSON"),
        (["models", "pull", "minilmm"], "'minilm'"),
        (["score", "own.qrels", "none.trec"], "none.trec"),
        (["score", "own.qrels", "nan.trec"], "nan.trec"),
        (["score", "own.qrels", "nan.trec", "-m", "ndgc@10"], "'ndcg'"),
        (["compare", "."], "metrics_summary.json"),
        (["gate", ".", "--baseline", "nowhere", "--junit", "x.xml"], "nowhere"),
    ],
)
def test_bad_input_ends_with_2_a_remedy_and_no_file(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "broken.toml").write_text("task =\n")
    (tmp_path / "task.toml").write_text('task = "wikpedia"\n[[contender]]\nranker = "bm25"\n')
    (tmp_path / "own.qrels").write_text("q 0 d 1\n")
    (tmp_path / "nan.trec").write_text("q Q0 d 1 nan tag\n")
    before = set(tmp_path.rglob("*"))
    done = bakeoff(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    says(done.stderr, said)
    assert "Traceback" not in done.stderr
    assert set(tmp_path.rglob("*")) == before


def test_list_tells_what_is_there_and_what_is_missing(tmp_path: Path) -> None:
    done = bakeoff("list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lacking = done.stdout.partition("need something:")[2].partition("stores")[0].split()
    assert "voyage" in lacking
    assert "minilm" not in lacking
    assert {"wikipedia", "neighbours", "beir", "ndcg@k", "profiles", "faiss", "bm25"} <= set(done.stdout.split())
    described = bakeoff("list", "voyage", cwd=tmp_path)
    says(described.stdout, "VOYAGE_API_KEY")
    assert bakeoff("list", "voyagee", cwd=tmp_path).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said", "file"),
    [
        (["trips"], "markov", "ranks/markov-1.npy"),
        (["films", "--contender", "bm25"], "NDCG@5", "ordered_report_k5.json"),
        (
            ["scholarships", "--contender", "tfidf", "--set", "calibrate_thresholds=true"],
            "NDCG@10",
            "artifacts/golden_eval_*.json",
        ),
    ],
)
def test_built_in_examples_run_by_their_names(tmp_path: Path, arguments: list[str], said: str, file: str) -> None:
    done = bakeoff_process("run", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    (folder,) = (tmp_path / "results").iterdir()
    assert list(folder.glob(file))


def test_select_draws_the_shipped_sample(tmp_path: Path) -> None:
    corpus = ROOT / "corpora" / "wikipedia"
    shipped = json.loads((corpus / "evaluate_articles.json").read_text())
    date = shipped["metadata"]["selection_date"]
    done = bakeoff("select", str(corpus / "articles.json"), "--date", date, "--out", "drawn.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "drawn.json").read_bytes() == (corpus / "evaluate_articles.json").read_bytes()


def test_a_result_by_its_newest_name_as_json_and_without_charts(tmp_path: Path) -> None:
    done = bakeoff("show", "latest", cwd=tmp_path)
    assert done.returncode == 2
    says(done.stderr)
    done = bakeoff("run", "--contender", "bm25", "--rounds", "1", "--no-charts", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    assert "bakeoff report latest --open" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f" results/{folder.name}/")
    assert (folder / "evaluation_report.html").is_file()
    assert not list(folder.rglob("*.png"))
    shown = bakeoff("show", "latest", cwd=tmp_path)
    assert "bm25" in shown.stdout.splitlines()[0]
    figures = json.loads(bakeoff("show", "latest", "--json", cwd=tmp_path).stdout)
    assert figures["folder"] == f"results/{folder.name}"
    assert (figures["verdict"]["leader"], figures["format"]) == ("bm25", 2)
    again = bakeoff("run", "--contender", "bm25", "--rounds", "1", "--no-charts", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["verdict"]["leader"] == "bm25"


def test_a_page_is_opened_in_the_browser(tmp_path: Path) -> None:
    note = tmp_path / "opened.txt"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {note}\n')
    browser.chmod(0o755)
    page = tmp_path / "page.html"
    reference = str(ROOT / "results" / "reference")
    done = bakeoff_process(  # Python looks for browsers once
        "report", reference, "--out", str(page), "--no-pictures", "--open", cwd=tmp_path, BROWSER=f"{browser} %s"
    )
    assert done.returncode == 0, done.stderr
    assert note.read_text().strip() == page.as_uri()


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(tmp_path: Path) -> None:
    script = (
        "import sys\nimport bakeoff.cli.main as cli\n"
        "def stop():\n    raise KeyboardInterrupt\ncli.app = stop\n"
        "sys.argv = ['bakeoff', 'run', 'my line-up.toml']\ncli.main()"
    )
    done = bakeoff_process(cwd=tmp_path, code=script)
    assert done.returncode == 130
    says(done.stderr)
    assert done.stderr.endswith("\n  bakeoff run 'my line-up.toml'\n")


def test_the_shell_can_complete(tmp_path: Path) -> None:
    done = bakeoff_process("--show-completion", "bash", cwd=tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0, done.stderr
    assert "_BAKEOFF_COMPLETE" in done.stdout or "COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("bakeoff val", ["validate"]),
        ("bakeoff c", ["compare", "corpus-size", "corpus", "canary", "cache"]),
        ("bakeoff queries i", ["import"]),
        ("bakeoff validate --no-h", ["--no-health"]),
        ("bakeoff grade next --pa", ["--page"]),
    ],
)
def test_the_shell_is_offered_commands_and_options(tmp_path: Path, typed: str, offered: list[str]) -> None:
    """As bash asks for them, of commands that are imported only when they are named."""
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = bakeoff(cwd=tmp_path, _BAKEOFF_COMPLETE="complete_bash", **asked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == offered


SECRET = "hunter2-Zq99"


@pytest.mark.parametrize(
    "arguments",
    [
        ["canary", "record", "openai", "--out", "x.canary", "--set"],
        ["canary", "check", "fake.canary", "--set"],
        ["loadtest", "--provider", "openai", "--set"],
        ["sweep", "--store", "qdrant", "--synthetic", "100", "--set"],
        ["run", "films", "--set"],
        ["embed", "films", "--out", "shards", "--set"],
        ["grade", "pairs", "wikipedia", "--judge", "llm", "--all-below", "10000000", "--set"],
        ["queries", "generate", str(ROOT / "corpora" / "wikipedia" / "articles.json"), "--maker", "llm", "--set"],
    ],
)
@pytest.mark.parametrize("address", [f"base_url=http://me:{SECRET}@127.0.0.1/v1", f"base_url=http://h/v1?key={SECRET}"])
def test_an_address_with_a_secret_can_not_be_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], address: str
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    refused = CliRunner().invoke(app, [*arguments, address])
    assert isinstance(refused.exception, InputError)
    assert refused.exception.place == "--set.base_url"
    assert SECRET not in f"{refused.exception} {refused.exception.remedy} {refused.output}"
    assert sorted(folder.rglob("*")) == before


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording, for the command that reads one before anything else."""
    place = tmp_path_factory.mktemp("secrets")
    made = CliRunner().invoke(app, ["canary", "record", "fake", "--calls", "2", "--out", str(place / "fake.canary")])
    assert made.exit_code == 0, made.output
    return place


@pytest.mark.parametrize(
    "existing",
    [f"http://me:{SECRET}@127.0.0.1:9", f"http://127.0.0.1:9?api-key={SECRET}", f"host=db password = {SECRET}"],
)
def test_an_address_with_a_secret_can_not_be_probed(tmp_path: Path, existing: str) -> None:
    store = "pgvector" if existing.startswith("host") else "qdrant"
    refused = bakeoff("probe", store, existing, cwd=tmp_path)
    assert refused.returncode == 2, refused.stderr
    says(refused.stderr, "EXISTING")
    assert SECRET not in refused.stdout + refused.stderr


@pytest.mark.parametrize(
    ("command", "code"),
    [(["probe", "pgvector", "env"], 3), (["run", "--no-charts"], 1)],
)
def test_a_database_whose_address_is_torn_keeps_its_password(tmp_path: Path, command: list[str], code: int) -> None:
    """libpq repeats an address without a scheme word by word."""
    pytest.importorskip("psycopg")
    (tmp_path / "bakeoff.toml").write_text(
        'task = "wikipedia"\nrounds = 1\n[[contender]]\nprovider = "fake"\nstore = "pgvector"\n'
    )
    ended = bakeoff(*command, cwd=tmp_path, PGVECTOR_URL=f"me:{SECRET}@db/x")
    assert ended.returncode == code, ended.stderr
    assert SECRET not in ended.stdout + ended.stderr
    assert "pgvector" in ended.stderr


def test_whatever_is_said_on_stderr_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a command prints by itself: a check that could not reach its service."""

    def fail() -> NoReturn:
        raise StoreError(f"no answer from http://me:{SECRET}@h/x?key={SECRET}")

    monkeypatch.setattr(compare, "score", lambda: deliver("probe", fail, as_json=False, metrics_file=None))
    done = bakeoff("score", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.endswith(" http://***@h/x?***\n")


def test_strict_fails_where_a_row_did_not_run(tmp_path: Path) -> None:
    (tmp_path / "l.toml").write_text(
        'task = "wikipedia"\nrounds = 1\n[[contender]]\nranker = "bm25"\n'
        '[[contender]]\nprovider = "voyage"\nstore = "faiss"\n'
    )
    loose = bakeoff("run", "l.toml", "--no-charts", "--out", "loose", cwd=tmp_path)
    strict = bakeoff("run", "l.toml", "--strict", "--no-charts", "--out", "strict", cwd=tmp_path)
    assert (loose.returncode, strict.returncode) == (0, 1)
    says(strict.stderr, "voyage+faiss")
    assert list((tmp_path / "strict").iterdir())  # the figures are kept
