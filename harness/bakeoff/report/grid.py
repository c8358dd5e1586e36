"""Tables that fit the screen: wide ones continue below, and no word or figure is broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from bakeoff.core.printable import wrap


@dataclass(frozen=True, slots=True)
class Prose:
    """Text wrapped to the screen. Rich would separate figures from units and leave trailing blanks."""

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in wrap(self.text, options.max_width):
            yield Text(line, style=self.style, no_wrap=True, overflow="ignore")


PROSE = 24  # wider text columns may be wrapped to this width
WIDE_GAP, GAP = 3, 2


class Figures(str):
    """A heading over figures, which are right-aligned and never wrapped."""

    __slots__ = ()


@dataclass(slots=True)
class Grid:
    """The layout of every table: headings, a rule, rows.

    The first `keys` columns are repeated when the table continues below; `wide` never splits.
    """

    heads: Sequence[str]
    keys: int = 1
    wide: bool = False
    title: str = ""
    caption: Prose | None = None
    rows: list[list[Text]] = field(default_factory=list)

    def add_row(self, *cells: str | Text) -> None:
        """Adds a row with one cell per heading."""
        row = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        self.rows.append(row + [Text("")] * (len(self.heads) - len(row)))

    def natural_width(self) -> int:
        """The width without splitting."""
        return _total(self._natural(), WIDE_GAP)

    def _natural(self) -> list[int]:
        return [max(cell_len(line) for line in self._texts(column)) for column in range(len(self.heads))]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Renders blocks of columns, none wider than the screen."""
        yield Prose(self.title, "italic")
        for columns, widths, gap in self._blocks(options.max_width):
            yield from self._block(console, columns, widths, gap)
            yield Text("")
        if self.caption:
            yield self.caption

    def _blocks(self, width: int) -> Iterator[tuple[list[int], list[int], int]]:
        natural = self._natural()
        everything = list(range(len(self.heads)))
        if self.wide or _total(natural, WIDE_GAP) <= width:
            yield everything, natural, WIDE_GAP
            return
        least = [self._least(column, natural[column]) for column in everything]
        if (spare := width - _total(least, GAP)) >= 0:  # text columns shrink, the widest first
            yield everything, _widen(least, natural, spare), GAP
            return
        columns = everything[: self.keys]
        for column in everything[self.keys :]:
            if len(columns) > self.keys and _total([least[at] for at in [*columns, column]], GAP) > width:
                yield self._fit_widths(columns, least, natural, width)
                columns = everything[: self.keys]
            columns.append(column)
        yield self._fit_widths(columns, least, natural, width)

    def _fit_widths(
        self, columns: list[int], least: Sequence[int], natural: Sequence[int], width: int
    ) -> tuple[list[int], list[int], int]:
        mine, wanted = [least[at] for at in columns], [natural[at] for at in columns]
        return list(columns), _widen(mine, wanted, max(0, width - _total(mine, GAP))), GAP

    def _texts(self, column: int) -> list[str]:
        return [self.heads[column], *(row[column].plain for row in self.rows)]

    def _least(self, column: int, natural: int) -> int:
        """A column's minimum width: all of a figure, the longest word of text."""
        if isinstance(self.heads[column], Figures) or natural <= PROSE:
            return natural
        longest = max((cell_len(word) for text in self._texts(column) for word in text.split()), default=0)
        return min(natural, max(PROSE, longest))

    def _block(self, console: Console, columns: list[int], widths: list[int], gap: int) -> Iterator[Text]:
        right = [isinstance(self.heads[column], Figures) for column in columns]
        heads = [Text(self.heads[column], style="bold") for column in columns]
        yield from _lines(console, heads, widths, right, gap)
        yield _plain("─" * _total(widths, gap))
        for row in self.rows:
            yield from _lines(console, [row[column] for column in columns], widths, right, gap)


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * max(0, len(widths) - 1)


def _widen(least: Sequence[int], natural: Sequence[int], spare: int) -> list[int]:
    widths = list(least)
    for at in sorted(range(len(widths)), key=lambda at: natural[at] - least[at]):
        more = min(spare, natural[at] - widths[at])
        widths[at] += more
        spare -= more
    return widths


def _lines(
    console: Console, cells: Sequence[Text], widths: Sequence[int], right: Sequence[bool], gap: int
) -> Iterator[Text]:
    """One row as one or more lines of wrapped text."""
    wrapped = [
        list(cell.wrap(console, width)) if cell_len(cell.plain) > width else [cell]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for number in range(max(map(len, wrapped))):
        line = _plain("")
        for at, parts in enumerate(wrapped):
            part = parts[number].copy() if number < len(parts) else Text("")
            part.rstrip()
            blank = " " * (widths[at] - cell_len(part.plain))
            line.append(" " * gap if at else "")
            line.append_text(Text.assemble(blank, part) if right[at] else Text.assemble(part, blank))
        line.rstrip()
        yield line


def _plain(text: str) -> Text:
    """A line that the console must not wrap again."""
    return Text(text, no_wrap=True, overflow="ignore")
