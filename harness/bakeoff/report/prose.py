"""A sentence on the console, wrapped as every printed line is."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from bakeoff.core.wrapping import wrapped


@dataclass(frozen=True, slots=True)
class Prose:
    """Lines that fit the screen; rich's own wrapping parts a figure from its unit and leaves blanks behind."""

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in wrapped(self.text, options.max_width):
            yield Text(line, style=self.style, no_wrap=True, overflow="ignore")
