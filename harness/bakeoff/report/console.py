"""The terminal: one console setting for all commands, and the bars of long work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from bakeoff.core.printable import printable
from bakeoff.core.progress import Advance
from bakeoff.core.wrapping import screen_width
from bakeoff.report.grid import Grid
from bakeoff.report.prose import Prose

if TYPE_CHECKING:
    from rich.progress import Progress


class Screen(Console):
    """A console that never cuts a line off: what is wider than the screen is the terminal's to fold."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich prints, uncropped; a text is wrapped as every sentence is."""
        super().print(
            *(Prose(part) if isinstance(part, str) else part for part in objects), **{"crop": False, **options}
        )

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Colours are ours; control characters in a text are data, which the terminal must not obey."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def console(*, stderr: bool = False) -> Console:
    """Nothing from data is read as markup. A pipe is as wide as COLUMNS says, or 100."""
    stream = sys.stderr if stderr else sys.stdout
    return Screen(stderr=stderr, markup=False, highlight=False, width=None if stream.isatty() else screen_width(stream))


def grid(*heads: str) -> Grid:
    """The look of every table: a line under the heads, no boxes; a head that starts with > is over figures."""
    return Grid(heads)


class Bars:
    """Progress as bars on standard error; one display, so that work within work shows as lines below each other."""

    def __init__(self) -> None:
        target = console(stderr=True)
        self._display = _display(target) if target.is_terminal else None
        self._open = 0

    @contextmanager
    def __call__(self, label: str, total: int) -> Iterator[Advance]:
        """A bar while the work lasts; the display ends with the last bar."""
        display = self._display
        if display is None:
            yield lambda _steps: None
            return
        if self._open == 0:
            display.start()
        self._open += 1
        task = display.add_task(label, total=total)
        try:
            yield lambda steps: display.advance(task, steps)
        finally:
            display.remove_task(task)
            self._open -= 1
            if self._open == 0:
                display.stop()


def _display(target: Console) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=target, transient=True)
