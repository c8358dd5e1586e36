"""What a reader sees at 80, 120 and 200 columns: screens of the stored result, so that no clock is in them.

`python -m tests.report.test_screens` writes them again; look at them before they are committed.
"""

from __future__ import annotations

import functools
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from bakeoff.core.facts import Section, TableCell, column, fact
from bakeoff.core.figures import Percentiles
from bakeoff.extensions.several_results import task_table as tasks_report
from bakeoff.extensions.several_results.task_table import TaskTable
from bakeoff.report.console import Screen, console
from bakeoff.report.grid import Figures, Grid
from bakeoff.report.matrix import matrix
from bakeoff.report.terminal import terminal
from bakeoff.results.current import current_summary
from bakeoff.results.schema import Summary
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from tests.examples import examples
from tests.native_task import annotate, ungraded_task
from tests.terminal import bakeoff

ROOT = Path(__file__).parents[2]
SCREENS = Path(__file__).parent / "screens"
WIDTHS = (80, 120, 200)
SEVERAL = """
measures = ["ndcg@10"]
rounds = 1
tasks = [{ task = "wikipedia", role = "domain" }, { task = "wikipedia-paraphrased", role = "general" }]
bases = { "without-a-stemmer" = "bm25" }
[[contender]]
ranker = "bm25"
[[contender]]
ranker = "bm25"
label = "without-a-stemmer"
options = { language = "none" }
"""


def screen(summary: Summary, width: int, *, wide: bool = False) -> str:
    printed = io.StringIO()
    Console(file=printed, width=width, markup=False, highlight=False, no_color=True).print(terminal(summary, wide=wide))
    return "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())


@functools.cache
def two_tasks() -> TaskTable:
    """Side by side, one contender made from the other; without a clock, so the same on every machine."""
    from bakeoff.extensions.several_results.task_table import combine
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.result import load
    from bakeoff.results.save import save
    from bakeoff.running.runner import run

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lineup.toml"
        file.write_text(SEVERAL)
        return combine([load(save(run(one), Path(folder) / "results")) for one in Lineup.read(file).per_task()])


def tasks_screen(width: int) -> str:
    printed = io.StringIO()
    target = Console(file=printed, width=width, markup=False, highlight=False, no_color=True)
    target.print(tasks_report.terminal(two_tasks()))
    return printed.getvalue()


def second_stage_screen(summary: Summary, width: int) -> str:
    """What a reranker adds to a result: its own column of times, and its table."""
    added: list[list[TableCell]] = [["granite+faiss+cohere-rerank-v3.5", 0.647, 0.651, 0.004, 0.87, 140.12, 0.00003]]
    section = Section(
        title=fact("second_stage", measure="NDCG@10"),
        head=[
            column("row"),
            column("first_stage", "fixed"),
            column("reranked", "fixed"),
            column("gain", "fixed", signed=True),
            column("p", "significant", 2),
            column("stage_p50", "fixed", 2, unit="ms"),
            column("gain_per_ms", "fixed", 5, signed=True),
        ],
        rows=added,
        notes=[fact("uncorrected_p")],
    )
    best = summary.verdict.leader
    rows = [
        msgspec.structs.replace(
            row, latency=msgspec.structs.replace(row.latency, rerank=Percentiles(60, 140.12, 161.5, 180.0))
        )
        if row.label == best and row.latency
        else row
        for row in summary.rows
    ]
    return screen(msgspec.structs.replace(summary, rows=rows, sections=[section]), width)


@pytest.fixture(scope="module")
def summary() -> Summary:
    return current_summary(ROOT / "results" / "reference")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_stored_screens(summary: Summary, width: int) -> None:
    assert screen(summary, width) == (SCREENS / f"reference-{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_stored_screens_of_several_tasks_and_of_a_second_stage(summary: Summary, width: int) -> None:
    for name, shown in (("tasks", tasks_screen(width)), ("second-stage", second_stage_screen(summary, width))):
        assert shown == (SCREENS / f"{name}-{width}.txt").read_text(encoding="utf-8")
        assert max(map(cell_len, shown.splitlines())) <= width
        assert not any(line != line.rstrip() for line in shown.splitlines())


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_no_line_is_too_long_and_no_cell_is_broken(summary: Summary, width: int) -> None:
    shown = screen(summary, width)
    assert max(map(cell_len, shown.splitlines())) <= width
    for line in matrix(summary).lines:
        if not line.reason:
            assert all(cell.text in shown for cell in line.cells.values())


def test_the_verdict_is_first_then_the_matrix_then_the_details(summary: Summary) -> None:
    shown = screen(summary, 200)
    places = [shown.index(words) for words in ("leads on", "Best so far:", "Model ", "★ leads", "exact search")]
    assert places == sorted(places)


def test_essential_columns_are_first_and_wide_keeps_one_table(summary: Summary) -> None:
    heads = [line for line in screen(summary, 80).splitlines() if line.startswith("Model")]
    assert heads[0].split() == ["Model", "Store", "NDCG@10", "[95%]", "MRR", "total", "p50", "ms", "cost"]
    assert len(heads) > 1
    assert len([line for line in screen(summary, 80, wide=True).splitlines() if line.startswith("Model")]) == 1


WORD = st.text("abcdefghij0.[]★", min_size=1, max_size=18)


@given(
    st.lists(st.tuples(st.booleans(), WORD), min_size=2, max_size=7),
    st.lists(st.lists(st.lists(WORD, max_size=6), min_size=7, max_size=7), min_size=1, max_size=4),
    st.integers(40, 120),
)
@settings(max_examples=examples(60), deadline=None)
def test_no_word_is_ever_broken(heads: list[tuple[bool, str]], rows: list[list[list[str]]], width: int) -> None:
    table = Grid([Figures(word) if figures else word for figures, word in heads])
    for row in rows:
        table.add_row(*(" ".join(words) for words in row[: len(heads)]))
    printed = io.StringIO()
    Screen(file=printed, width=width, markup=False, highlight=False).print(table)
    seen = printed.getvalue().split()
    for row in rows:
        for words in row[: len(heads)]:
            assert set(words) <= set(seen)


def test_a_head_may_begin_with_any_sign() -> None:
    table = Grid([">who", Figures(">9 ms")])
    table.add_row("ada", "7")
    printed = io.StringIO()
    Screen(file=printed, width=40).print(table)
    assert printed.getvalue().splitlines()[1:] == [">who   >9 ms", "────────────", "ada        7", ""]


def test_a_pipe_is_as_wide_as_columns_says_or_100(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    for given_, width in (("", 100), ("60", 60), ("wide", 100), ("0", 100)):
        monkeypatch.setenv("COLUMNS", given_)
        assert console().width == width


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["list", "minilm"],
        ["doctor"],
        ["validate", "wikipedia"],
        ["plan-queries", "results/reference", "--difference", "0.05"],
        ["plan-queries", "results/reference", "--difference", "0.05", "--width", "0.1", "--contenders", "4"],
        ["grade", "wikipedia", "--judge", "llm", "--model", "openai:gpt-4o-mini", "--dry-run"],
        ["compare", "results/reference", "--contender", "bm25", "--contender", "minilm"],
        ["queries", "--help"],
        ["cache", "--help"],
    ],
)
def test_every_line_of_every_command_fits_80_columns(arguments: list[str]) -> None:
    done = bakeoff(*arguments, cwd=ROOT, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) > 2
    assert [line for line in lines if cell_len(line) > 80] == []
    assert [line for line in lines if line != line.rstrip()] == []
    assert not any(line.endswith("...") for line in lines if not line.startswith("Usage:"))


def test_what_is_cached_fits_80_columns_in_one_table(tmp_path: Path) -> None:
    home = {"BAKEOFF_HOME": str(tmp_path / "home"), "COLUMNS": "80"}
    ran = bakeoff("run", "--contender", "tfidf", "--contender", "fake", "--no-charts", cwd=tmp_path, **home)
    assert ran.returncode == 0, ran.stderr
    lines = bakeoff("cache", "info", cwd=tmp_path, **home).stdout.splitlines()
    assert [line.split()[0] for line in lines if line and not line.startswith("─")][1:] == ["provider", "tfidf", "fake"]
    assert max(map(cell_len, lines[1:])) <= 80  # the first names the folder


def _of_ones_own(folder: Path) -> None:
    """Documents without a place, tables, and a task that two people graded differently."""
    (folder / "help").mkdir()
    for number, topic in enumerate(("refunds of parcels", "winter tyres", "insurance claims")):
        text = f"All about {topic}: what {topic} are, and who pays for {topic}."
        (folder / "help" / f"a-document-with-a-rather-long-name-{number}.txt").write_text(text)
    for number in range(12):
        (folder / "help" / f"a picture with a rather long name and many words in it {number:02}.png").write_bytes(b"x")
    (folder / "documents.csv").write_text("id,text\n1,lamp\n2,desk\n")
    (folder / "queries.csv").write_text("id,text\nq1,lamp\n")
    ungraded_task(folder)
    grades = {"q1": {"1": 3, "2": 0, "3": 0}, "q2": {"1": 0, "2": 1, "3": 0}}
    annotate(folder, "ada", grades)
    annotate(folder, "bob-of-the-other-department", {**grades, "q2": {"1": 3, "2": 0, "3": 2}})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["corpus", "import", "help", "--out", "imported.json"], "… and 2 more, all in imported.json"),
        (["queries", "import", "queries.csv", "--out", "imported"], "1 query imported"),
        (["queries", "generate", "generated.json", "--out", "generated"], "no document names a city, county or state"),
        (["queries", "copy", "wikipedia-paraphrased", "copied"], "copied/task.toml"),
        (["init", "--documents", "documents.csv", "--queries", "queries.csv", "--out", "a-line-up-of-lamps.toml"],
         "a-line-up-of-lamps.toml: written; its task has 2 documents, 1 query, no judgments yet"),
        (["adjudicate", "task", "--majority"], "warning: 3 pairs have no majority"),
        (["agreement", "task"], "2 annotators, 6 pairs, 3 graded differently"),
        (["validate", "wikipedia-paraphrased", "--no-health"], "A stress test of meaning without words"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)  # fmt: skip
def test_every_line_about_ones_own_files_fits_80_columns(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.cli.test_wrong_arguments import bakeoff

    _of_ones_own(tmp_path)
    bakeoff(tmp_path, "corpus", "import", "help", "--out", "generated.json")
    code, out, err = bakeoff(tmp_path, *arguments, COLUMNS="80")
    assert code == 0, err
    assert said in " ".join(out.split())
    assert [line for line in out.splitlines() if cell_len(line) > 80] == []


def test_notices_and_the_word_at_an_interruption_fit_a_terminal() -> None:
    """At a terminal of 80 columns; a log, which is no terminal, keeps each in one line."""
    script = (
        "from bakeoff.cli import shared_options, signals\nfrom bakeoff.core.facts import quote\n"
        "shared_options.warn(quote('word ' * 30))\nshared_options.notice('word ' * 30)\n"
        "signals.leave(0, signals.message())\n"
    )
    environment = os.environ | {"COLUMNS": "80", "PYTHONPATH": f"{ROOT / 'harness'}:{ROOT / 'providers'}"}
    reader, writer = pty.openpty()
    subprocess.run([sys.executable, "-c", script], stderr=writer, env=environment, check=True)
    os.close(writer)
    lines = os.read(reader, 65536).decode().splitlines()
    os.close(reader)
    assert max(map(len, lines)) <= 80
    assert [line.split(":")[0] for line in lines if ":" in line] == ["warning", "notice", "interrupted"]
    logged = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, env=environment, check=True)
    assert len(logged.stderr.splitlines()) == 3


def test_no_color_and_a_terminal_of_80_columns() -> None:
    """A real terminal: NO_COLOR leaves no colours, and the first table fits."""
    reader, writer = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    environment |= {
        "NO_COLOR": "1",
        "COLUMNS": "80",
        "TERM": "xterm",
        "PYTHONPATH": f"{ROOT / 'harness'}:{ROOT / 'providers'}",
    }
    command = [sys.executable, "-m", "bakeoff", "show", "results/reference"]
    with subprocess.Popen(command, stdout=writer, stderr=writer, cwd=ROOT, env=environment) as process:
        os.close(writer)
        chunks = []
        while True:
            try:
                chunk = os.read(reader, 65536)
            except OSError:
                break
            if not chunk:
                break
            chunks.append(chunk)
    assert process.returncode == 0
    shown = b"".join(chunks).decode()
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", shown)  # bold and dim may stay, colours may not
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown).replace("\r", "")
    assert max(map(cell_len, plain.splitlines())) <= 80


if __name__ == "__main__":
    stored = current_summary(ROOT / "results" / "reference")
    for size in WIDTHS:
        screens = {
            "reference": screen(stored, size),
            "tasks": tasks_screen(size),
            "second-stage": second_stage_screen(stored, size),
        }
        for name, text in screens.items():
            (SCREENS / f"{name}-{size}.txt").write_text(text, encoding="utf-8")
