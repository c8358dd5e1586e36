"""The terminal: one console setting for all commands, and the bars of long work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bakeoff.core.progress import Advance

PIPE_WIDTH = 200


def console(*, stderr: bool = False) -> Console:
    """Nothing from data is read as markup, and a table in a pipe is not cut to a screen's width."""
    screen = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(
        stderr=stderr, markup=False, highlight=False, width=None if screen else PIPE_WIDTH, soft_wrap=not screen
    )


def grid(*heads: str) -> Table:
    """The look of every table: a line under the heads, no boxes; a head that starts with > is over figures."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head.removeprefix(">"), justify="right" if head.startswith(">") else "left", overflow="fold")
    return table


class Bars:
    """Progress as bars on standard error; one display, so that work within work shows as lines below each other."""

    def __init__(self) -> None:
        target = console(stderr=True)
        self._display = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=target,
            transient=True,
            disable=not target.is_terminal,
        )
        self._open = 0

    @contextmanager
    def __call__(self, label: str, total: int) -> Iterator[Advance]:
        """A bar while the work lasts; the display ends with the last bar."""
        if self._open == 0:
            self._display.start()
        self._open += 1
        task = self._display.add_task(label, total=total)
        try:
            yield lambda steps: self._display.advance(task, steps)
        finally:
            self._display.remove_task(task)
            self._open -= 1
            if self._open == 0:
                self._display.stop()
