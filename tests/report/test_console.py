"""Bars: nothing for work that is soon done, and rate and time left for work that lasts."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import pytest
from bakeoff.cli.main import app
from bakeoff.report.console import LASTING, LINE_EVERY, Bars, console
from rich.console import Console
from rich.text import Text

from tests.native_task import native_files, write_lineup

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def _bars(*, terminal: bool = True) -> tuple[Bars, Clock, io.StringIO]:
    written, clock = io.StringIO(), Clock()
    return Bars(Console(file=written, force_terminal=terminal, width=100), clock), clock, written


def _text(written: io.StringIO) -> str:
    return CONTROLS.sub("", written.getvalue())


def test_work_that_is_soon_done_shows_nothing() -> None:
    bars, clock, written = _bars()
    with bars("reading", 10) as advance:
        for _ in range(10):
            clock.now += LASTING / 11
            advance(1)
    assert written.getvalue() == ""


def test_work_that_lasts_shows_its_rate_and_the_time_left_beside_what_it_is_part_of() -> None:
    bars, clock, written = _bars()
    with bars("preparing", 3), bars("adding", 1000) as advance:
        clock.now += 2
        advance(100)  # 50 a second: 900 are left
    shown = _text(written)
    assert "preparing" in shown
    assert re.search(r"adding\s.*100/1000\s+50\.0/s, 0:00:18 left", shown)
    with bars("scoring", 4) as advance:  # the display can be used again
        clock.now += 120
        advance(1)
    assert re.search(r"scoring\s.*1/4\s+0\.5/min, 0:06:00 left", _text(written))


def test_a_pipe_gets_a_plain_line_every_half_minute() -> None:
    bars, clock, written = _bars(terminal=False)
    with bars("preparing", 3), bars("document vectors", 2466) as advance:
        for _ in range(70):  # 70 seconds, 10 texts in each
            clock.now += 1
            advance(10)
    assert written.getvalue().splitlines() == [
        "preparing 0 of 3; document vectors 300 of 2,466 (10.0/s, 0:03:37 left)",
        "preparing 0 of 3; document vectors 600 of 2,466 (10.0/s, 0:03:07 left)",
    ]


def test_what_ends_within_half_a_minute_writes_nothing_into_a_pipe() -> None:
    bars, clock, written = _bars(terminal=False)
    with bars("reading", 5) as advance:
        clock.now += LINE_EVERY - 1
        advance(5)
    assert written.getvalue() == ""


@pytest.mark.parametrize(("total", "line"), [(0, "reading 5 (5.0/s)"), (5, "reading 5 of 5 (5.0/s, 0:00:00 left)")])
def test_how_often_a_pipe_is_told_can_be_said(total: int, line: str) -> None:
    written, clock = io.StringIO(), Clock()
    bars = Bars(Console(file=written, width=100), clock, line_every=1)
    with bars("reading", total) as advance:
        clock.now += 1
        advance(5)
    assert written.getvalue() == f"{line}\n"


def test_progress_in_a_pipe_leaves_the_output_to_be_read_by_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Bars.__init__, "__defaults__", (None, Clock(), 0.0, 5.0))
    write_lineup(tmp_path, native_files(), head="rounds = 1", contenders='[[contender]]\nranker = "bm25"\n')
    monkeypatch.chdir(tmp_path)
    app(["run", "own.toml", "--json", "--no-charts"], standalone_mode=False)
    out, err = capfd.readouterr()
    assert json.loads(out)["rows"][0]["label"] == "bm25"
    assert "bm25: texts 3 of 3" in err


@pytest.mark.parametrize("terminal", [True, False])
def test_work_without_news_names_what_is_waited_for(terminal: bool) -> None:
    written = io.StringIO()
    bars = Bars(Console(file=written, force_terminal=terminal, width=100), patience=0.05)
    with bars("preparing", 3), bars("mine+faiss", 0):
        deadline = time.monotonic() + 10
        while not written.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "mine+faiss" in _text(written)
    assert "preparing" not in _text(written)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "escapes"), [("1", False), ("", True)])
def test_no_color_sends_no_escape_to_a_terminal(monkeypatch: pytest.MonkeyPatch, no_color: str, escapes: bool) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stdout", terminal := _Terminal())
    console().print(Text("bold", style="bold"))
    assert ("\x1b" in terminal.getvalue()) == escapes
    assert "bold" in terminal.getvalue()
