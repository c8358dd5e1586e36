"""Bars: nothing for work that is soon done, and rate and time left for work that lasts."""

from __future__ import annotations

import io
import re

import pytest
from bakeoff.report.console import LASTING, Bars
from rich.console import Console

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


@pytest.mark.parametrize("total", [0, 5])
def test_a_pipe_sees_nothing(total: int) -> None:
    bars, clock, written = _bars(terminal=False)
    with bars("reading", total) as advance:
        clock.now += 60
        advance(5)
    assert written.getvalue() == ""
