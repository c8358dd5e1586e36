"""Terminal output: the console configuration shared by all commands, and progress bars."""

from __future__ import annotations

import datetime
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from bakeoff.core.printable import printable, screen_width
from bakeoff.core.progress import Advance
from bakeoff.report.grid import Prose

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LASTING = 1.0  # seconds after which work shows a bar
PATIENCE = 5.0  # seconds without progress before a line names the pending work
LINE_EVERY = 30.0  # seconds between lines if standard error is a pipe or a file


# Each in one cell, so that tables keep their widths.
_ASCII = str.maketrans("★≈━●┊·◦−–…×’ρ─→", "*~-o:.o--~x'r->")
_WIDE_LOCALES = ("zh", "ja", "ko")  # whose terminals may draw ★ and ━ two cells wide


def _draws_signs(encoding: str) -> bool:
    """Whether the terminal draws our symbols, each in one cell."""
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "")
    try:
        "★≈━●┊·◦−–…".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return not locale.startswith(_WIDE_LOCALES)


class Screen(Console):
    """A console that never crops a line; the terminal folds wider ones.

    If the terminal can't draw our symbols, ASCII ones are used.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Prints like rich, uncropped, with text wrapped like every sentence."""
        super().print(
            *(Prose(part) if isinstance(part, str) else part for part in objects), **{"crop": False, **options}
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders our colours; control characters in text are removed."""
        plain = not _draws_signs(self.encoding)
        for segment in super().render(renderable, options):
            text = segment.text.translate(_ASCII) if plain else segment.text
            yield segment if segment.control else Segment(printable(text), segment.style)


def console(*, stderr: bool = False) -> Console:
    """A console without markup. A pipe has COLUMNS or 100 columns. NO_COLOR also turns off bold."""
    stream = sys.stderr if stderr else sys.stdout
    return Screen(
        stderr=stderr,
        markup=False,
        highlight=False,
        width=None if stream.isatty() else screen_width(stream),
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


class Bars:
    """Progress bars on standard error, with rate and time left. Short work shows none.

    Nested work shows as lines of one display. A pipe gets a plain line now and then, and none in the first half minute.
    If nothing moves, a line names the pending work.
    """

    def __init__(
        self,
        target: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        line_every: float = LINE_EVERY,
        patience: float = PATIENCE,
    ) -> None:
        self._target, self._clock, self._line_every = target or console(stderr=True), clock, line_every
        self._display: Progress | None = None
        self._last_line = self._news = clock()
        self._open: list[_Bar] = []
        self._patience, self._idle = patience, threading.Event()
        self._idle.set()

    @contextmanager
    def __call__(self, label: str, total: int) -> Iterator[Advance]:
        """Shows a bar during the work; the display ends with the last bar."""
        self._news = self._clock()
        bar = _Bar(label, total, self._news)
        self._open.append(bar)
        if self._idle.is_set():
            self._idle.clear()
            threading.Thread(target=self._watch, daemon=True, name="bakeoff-progress").start()
        try:
            yield lambda steps: self._advance(bar, steps)
        finally:
            self._open.remove(bar)
            self._news = self._clock()
            if not self._open:
                self._idle.set()
            if self._display is not None and bar.shown is not None:
                self._display.remove_task(bar.shown)
                if not self._open:
                    self._display.stop()
                    self._display = None

    def _advance(self, bar: _Bar, steps: int) -> None:
        now = self._news = self._clock()
        bar.done += steps
        if not self._target.is_terminal:
            self._tell(now)
            return
        if bar.shown is None and now - bar.start < LASTING:
            return
        display = self._display or _display(self._target, self._clock)
        for waiting in self._open:  # and the work that contains it
            if waiting.shown is None:
                waiting.shown = display.add_task(waiting.label, total=waiting.total or None, pace="")
        if bar.shown is not None:
            display.update(bar.shown, completed=bar.done, pace=bar.pace(now))
        if self._display is None:
            self._display = display
            display.start()

    def _watch(self) -> None:
        """Names the innermost work after a while without progress, then every half minute."""
        told = news = self._news
        while not self._idle.wait(min(1.0, self._patience / 5)):
            now, waiting = self._clock(), self._open[-1:]
            if self._news != news:
                told = news = self._news
            if waiting and now - told >= (self._patience if told == news else self._line_every):
                told = now
                self._target.print(f"waiting for {waiting[0].label} ({now - news:.0f} s)", soft_wrap=True)

    def _tell(self, now: float) -> None:
        """Prints one line about all running work, outermost first."""
        if now - self._last_line < self._line_every:
            return
        self._last_line = now
        self._target.print("; ".join(bar.line(now) for bar in self._open), soft_wrap=True)


@dataclass(slots=True)
class _Bar:
    """Running work."""

    label: str
    total: int
    start: float
    done: int = 0
    shown: TaskID | None = None

    def pace(self, now: float) -> str:
        """The rate so far and the time left."""
        if not self.done or now <= self.start:
            return ""
        per_second = self.done / (now - self.start)
        rate = f"{per_second:,.1f}/s" if per_second >= 1 else f"{60 * per_second:.1f}/min"
        left = datetime.timedelta(seconds=round(max(0, self.total - self.done) / per_second))
        return f"{rate}, {left} left" if self.total else rate

    def line(self, now: float) -> str:
        """The progress as one line of text."""
        if not self.total and not self.done:
            return self.label
        done = f"{self.label} {self.done:,} of {self.total:,}" if self.total else f"{self.label} {self.done:,}"
        pace = self.pace(now)
        return f"{done} ({pace})" if pace else done


def _display(target: Console, clock: Callable[[], float]) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"))
    return Progress(*columns, console=target, transient=True, get_time=clock)
