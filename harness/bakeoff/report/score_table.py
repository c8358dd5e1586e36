"""The table of the first screen: one line per group of equal rows, and as many columns as fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from rich.cells import cell_len
from rich.text import Text

from bakeoff.core.figures import OwnColumn
from bakeoff.report.groups import LONGEST, RowGroup, name_without_store, shorten, store_name
from bakeoff.report.numbers import milliseconds, short_label, size
from bakeoff.report.sections import head_words
from bakeoff.report.verdict_words import Findings, unreliable
from bakeoff.results.schema import Row

LEADS, MAY_BE_BEST, OPEN, INCUMBENT, BEATS, WORSE = "★", "≈", "?", "◦", "+", "−"
INTERVAL, MEAN, RANDOM, EMPTY = "━", "●", "┊", "·"
DASH = "–"
GAP = 2
SHORTEST_LABEL = 9
WIDE = 90  # screen width from which measures take precedence over the bar
NARROW_BAR, USUAL_BAR, WIDE_BAR, WIDEST_BAR = 10, 14, 20, 30
FAR_BELOW = 0.75  # share of the way to the oracle; if no interval reaches it, the bar ends at the highest
STEP = 0.05
FEW_CATEGORIES = 3  # up to this many have a column each


@dataclass(frozen=True, slots=True)
class ScreenColumn:
    """A column: its heading and one cell per group."""

    head: str
    cells: tuple[str, ...]
    left: bool = False

    @property
    def width(self) -> int:
        """The width of the widest cell."""
        return max(map(cell_len, (self.head, *self.cells)))

    @property
    def empty(self) -> bool:
        """Whether no row has a figure."""
        return all(cell == DASH for cell in self.cells)

    @property
    def constant(self) -> bool:
        """Whether every row has the same figure."""
        return len(self.cells) > 1 and len(set(self.cells)) == 1


def mark(group: RowGroup, found: Findings) -> str:
    """A group's mark: compared with the incumbent if there is one, else with the best."""
    if not found.has_marks:
        return ""
    labels = [row.label for row in group.rows]
    standing = found.standing(labels[0])
    if found.has_incumbent:
        if found.verdict.baseline in labels:
            return INCUMBENT
        relation = standing.against.relation if standing and standing.against else ""
        return {"better": BEATS, "worse": WORSE, "undecided": MAY_BE_BEST}.get(relation, "")
    if standing is None:
        return ""
    if standing.mark == "leads":
        return LEADS
    return OPEN if standing.open else MAY_BE_BEST if standing.mark == "may be best" else ""


def legend(found: Findings, groups: Sequence[RowGroup], width: int, *, bars: bool = True) -> str:
    """The marks that occur. If the line is too long, the last ones are dropped."""
    occurring = {mark(group, found) for group in groups}
    meanings = (
        {INCUMBENT: "incumbent", BEATS: "beats it", MAY_BE_BEST: "undecided", WORSE: "worse"}
        if found.has_incumbent
        else {LEADS: "leads", MAY_BE_BEST: "may be best (95%)", OPEN: "open until graded"}
    )
    parts = [f"{sign} {meaning}" for sign, meaning in meanings.items() if sign in occurring]
    if parts and not found.has_incumbent and "" in occurring:
        parts.append("unmarked: worse")
    random = found.baselines.get("random")
    parts += [f"{INTERVAL} 95% interval"] if bars and any(_ends(group.first, found) for group in groups) else []
    parts += [f"{RANDOM} random {random:.2f}"] if bars and random is not None else []
    while parts and cell_len("  ".join(parts)) > width:
        parts.pop(-2 if len(parts) > 1 else -1)
    return "  ".join(parts)


def _ends(row: Row, found: Findings) -> tuple[float, float] | None:
    value = row.measures[found.verdict.measure]
    return None if value.low is None or value.high is None else (value.low, value.high)


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of all bars: from random or the lowest interval to the oracle or the highest interval."""

    low: float
    high: float
    random: float | None

    @classmethod
    def over(cls, groups: Sequence[RowGroup], found: Findings) -> Scale:
        """The scale that covers all rows of a result."""
        random, oracle = found.baselines.get("random"), found.baselines.get("oracle")
        means = [found.mean(group.first) for group in groups]
        ends = [end for group in groups for end in _ends(group.first, found) or ()]
        low = _down(min([*means, *ends, *([random] if random is not None else [])]))
        high = _up(max([*means, *ends]))
        if oracle is not None and high > low + FAR_BELOW * (oracle - low):
            high = max(high, oracle)
        return cls(low, high if high > low else low + STEP, random)

    def head(self, width: int) -> str:
        """Both ends of the scale."""
        low, high = f"{self.low:.2f}", f"{self.high:.2f}"
        return low + " " * (width - len(low) - len(high)) + high

    def draw(self, row: Row, found: Findings, width: int) -> str:
        """One row's interval and mean."""
        signs = [EMPTY] * width
        if ends := _ends(row, found):
            first, last = (self._place(end, width) for end in ends)
            signs[first : last + 1] = [INTERVAL] * (last + 1 - first)
        if self.random is not None:
            signs[self._place(self.random, width)] = RANDOM
        signs[self._place(found.mean(row), width)] = MEAN
        return "".join(signs)

    def share(self, value: float) -> float:
        """How far along the scale a value is, from 0 to 1."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def _place(self, value: float, width: int) -> int:
        return min(width - 1, math.floor(self.share(value) * width))


def _down(value: float) -> float:
    return math.floor(round(value / STEP, 6)) * STEP


def _up(value: float) -> float:
    return math.ceil(round(value / STEP, 6)) * STEP


def latency(group: RowGroup, of: Callable[[Row], float | None]) -> str:
    """The times of a group's stores in order; a range for three or more."""
    figures = [value for row in group.same_name if (value := of(row)) is not None]
    if not figures:
        return DASH
    if len(figures) > 2:
        low, high = milliseconds(min(figures)), milliseconds(max(figures))
        return low if low == high else f"{low}{DASH}{high}"
    return f" {EMPTY} ".join(map(milliseconds, figures))


def stores(group: RowGroup) -> str:
    """Up to two store names, else the first and the number of others."""
    names = group.stores
    if len(names) > 2:
        return f"{names[0]} +{len(names) - 1}"
    return f" {EMPTY} ".join(names) or DASH


def p50(row: Row) -> float | None:
    """Median milliseconds from a query to its results."""
    return row.latency.total.p50 if row.latency else None


def p95(row: Row) -> float | None:
    """p95 milliseconds from a query to its results."""
    return row.latency.total.p95 if row.latency else None


def search_p50(row: Row) -> float | None:
    """Median milliseconds of a store's search."""
    return row.latency.search.p50 if row.latency else None


def own_text(column: OwnColumn, label: str) -> str:
    """Formats a figure of the task's kind."""
    value = column.values.get(label)
    if value is None:
        return DASH
    match column.quantity:
        case "percent":
            return f"{100 * value:.1f}"
        case "count":
            return f"{value:,.0f} ({value / column.of:.0%})" if column.of else f"{value:,.0f}"
        case "score":
            return f"{value:.3f}".replace("-", WORSE)
        case _:
            assert_never(column.quantity)


def short_head(found: Findings, measure: str) -> str:
    """A measure as the head of a narrow column."""
    return short_label(found.short_label(measure))


class ScoreTable:
    """All lines of the table; a screen takes as many as fit."""

    def __init__(self, found: Findings) -> None:
        self.found, self.groups = found, found.groups
        self._rows = [row for group in self.groups for row in group.rows]
        self._doubt = "?" if unreliable(self._rows) else ""
        self.constants: list[str] = []  # figures shared by all rows, for the caption
        self._further = [column for column in self._further_columns() if not self._goes_to_caption(column)]

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self.groups)

    def _goes_to_caption(self, column: ScreenColumn) -> bool:
        if column.constant and not column.empty:
            self.constants.append(f"{column.head} {column.cells[0]}")
        return column.constant or column.empty

    def _column(self, head: str, cell: Callable[[RowGroup], str], *, left: bool = False) -> ScreenColumn:
        return ScreenColumn(head, tuple(map(cell, self.groups)), left)

    def _further_columns(self) -> list[ScreenColumn]:
        """The columns after the latency: the kind's own figures, a few categories, then the line-up's measures."""
        found, summary = self.found, self.found.summary
        decides, own = found.verdict.measure, summary.own_columns
        columns = [
            ScreenColumn(head_words(column.head), tuple(own_text(column, group.first.label) for group in self.groups))
            for column in own
        ]
        if not own and len(summary.task.categories) <= FEW_CATEGORIES:
            columns += [
                ScreenColumn(category, tuple(self._in_category(group, category) for group in self.groups))
                for category in summary.task.categories
            ]
        shown = {decides, *(column.measure for column in own)}
        columns += [
            ScreenColumn(short_head(found, measure), tuple(_mean(group.first, measure) for group in self.groups))
            for measure in summary.matrix_measures
            if measure not in shown
        ]
        return columns

    def _in_category(self, group: RowGroup, category: str) -> str:
        value = group.first.categories.get(category, {}).get(self.found.verdict.measure)
        return DASH if value is None else f"{value:.2f}"

    def lines(self, width: int, most: int, command: str) -> list[Text]:
        """Heading and rows, no wider than the screen. If not all fit, a last line counts the rest."""
        chosen = self._choose(most)
        columns, bar_width, name_width = self._fit(width)
        scale = Scale.over(self.groups, self.found)
        heads = [_set(column.head, column.width, left=column.left) for column in columns]
        heads.insert(self._bar_place, scale.head(bar_width))
        lines = [_row([_set("contender", name_width, left=True), *heads])]
        for at in chosen:
            group = self.groups[at]
            cells = [Text(_set(column.cells[at], column.width, left=column.left)) for column in columns]
            cells.insert(self._bar_place, _dim_dots(scale.draw(group.first, self.found, bar_width)))
            name = Text(_set(self._name(group, name_width), name_width, left=True))
            row = Text(" " * GAP).join([name, *cells])
            lines.append(screen_line(Text.assemble(f"{mark(group, self.found) or ' '} ", row), self._style(group)))
        return lines + self._rest(chosen, command, width)

    @property
    def _has_stores(self) -> bool:
        return len({store for row in self._rows if (store := store_name(row))}) > 1

    @property
    def _bar_place(self) -> int:
        return 2 if self._has_stores else 1

    def _name(self, group: RowGroup, width: int) -> str:
        alike = f" +{group.others} alike" if group.others else ""
        return shorten(group.name, min(LONGEST, width - len(alike))) + alike

    def _fit(self, width: int) -> tuple[list[ScreenColumn], int, int]:
        """The columns that fit, and the widths of bar and label. The bar gives way first, then the label."""
        found = self.found
        first = [self._column("store", stores, left=True)] if self._has_stores else []
        decides = self._column(short_head(found, found.verdict.measure), lambda group: f"{found.mean(group.first):.3f}")
        columns = [*first, decides]
        names = [group.title for group in self.groups]
        wanted = max([SHORTEST_LABEL, *map(cell_len, names)])
        median = self._column(f"p50 ms{self._doubt}", lambda group: latency(group, p50))
        tail = self._column(f"p95 ms{self._doubt}", lambda group: latency(group, p95))
        least_bar, usual_bar = (NARROW_BAR, WIDE_BAR) if width >= WIDE else (USUAL_BAR, USUAL_BAR)
        spare = width - 2 - wanted - _total(columns) - (GAP + NARROW_BAR)
        for candidates, bar in (([median], NARROW_BAR), (self._further, least_bar), ([tail], usual_bar)):
            for column in candidates:
                if column.empty:
                    continue
                if spare - (GAP + column.width) < bar - NARROW_BAR:
                    break  # keep the line-up's order
                columns.append(column)
                spare -= GAP + column.width
        bar = min(WIDEST_BAR, NARROW_BAR + max(0, spare))
        return columns, bar, max(SHORTEST_LABEL, wanted + min(0, spare))

    def _choose(self, most: int) -> list[int]:
        """Selects leader, incumbent, bm25, the rest of the set, then by mean. Sorted by mean."""
        if len(self.groups) <= most:
            return list(range(len(self.groups)))
        verdict = self.found.verdict

        def rank(at: int) -> tuple[int, int]:
            labels = {row.label for row in self.groups[at].rows}
            wanted = ({verdict.leader or ""}, {verdict.baseline}, {"bm25"}, set(verdict.best_set))
            return next((place for place, names in enumerate(wanted) if labels & names), len(wanted)), at

        return sorted(sorted(range(len(self.groups)), key=rank)[: max(1, most - 1)])

    def _rest(self, chosen: Sequence[int], command: str, width: int) -> list[Text]:
        left = [group for at, group in enumerate(self.groups) if at not in set(chosen)]
        if not left:
            return []
        in_set = set(self.found.verdict.best_set)
        open_ = sum(any(row.label in in_set for row in group.rows) for group in left)
        may = f", {open_} of which may be best" if open_ and not self.found.has_incumbent else ""
        text = f"  … {len(left)} more{may}" + (f": {command}" if command else "")
        return [screen_line(text if cell_len(text) <= width else f"  … {len(left)} more{may}")]

    def _style(self, group: RowGroup) -> str:
        if not self.found.has_marks:
            return ""
        if self.found.verdict.leader in {row.label for row in group.rows}:
            return "bold"
        return "" if mark(group, self.found) else "dim"


class StoreTable:
    """The table for rows that score alike: search time, total time and size."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.rows = sorted(found.summary.ran, key=lambda row: search_p50(row) or math.inf)
        doubt = "?" if unreliable(self.rows) else ""
        names = {name_without_store(row) for row in self.rows}
        score = self._column(short_head(found, found.verdict.measure), lambda row: f"{found.mean(row):.3f}")
        self._columns = [
            self._column("store", lambda row: shorten(store_name(row) or row.label), left=True)
            if len(names) == 1
            else self._column("contender", lambda row: shorten(row.label), left=True),
            *([] if score.constant else [score]),
            self._column(f"search p50 ms{doubt}", lambda row: _ms(search_p50(row))),
            self._column(f"total p50 ms{doubt}", lambda row: _ms(p50(row))),
            self._column(f"total p95 ms{doubt}", lambda row: _ms(p95(row))),
            self._column("index", lambda row: DASH if row.index_bytes is None else size(row.index_bytes)),
        ]
        self.constants: list[str] = []

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def _column(self, head: str, cell: Callable[[Row], str], *, left: bool = False) -> ScreenColumn:
        return ScreenColumn(head, tuple(map(cell, self.rows)), left)

    def lines(self, width: int, most: int, command: str) -> list[Text]:
        """Heading and rows, fastest first."""
        columns: list[ScreenColumn] = []
        for column in self._columns:
            if not column.empty and 2 + _total([*columns, column]) - GAP <= width:
                columns.append(column)
        shown = len(self.rows) if len(self.rows) <= most else max(1, most - 1)
        lines = [_row([_set(column.head, column.width, left=column.left) for column in columns])]
        for at in range(shown):
            lines.append(_row([_set(column.cells[at], column.width, left=column.left) for column in columns]))
        if shown < len(self.rows):
            lines.append(screen_line(f"  … {len(self.rows) - shown} more" + (f": {command}" if command else "")))
        return lines


def _ms(value: float | None) -> str:
    return DASH if value is None else milliseconds(value)


def _mean(row: Row, measure: str) -> str:
    value = row.measures.get(measure)
    return DASH if value is None else f"{value.mean:.2f}"


def _total(columns: Sequence[ScreenColumn]) -> int:
    return sum(column.width + GAP for column in columns)


def _set(text: str, width: int, *, left: bool) -> str:
    blank = " " * (width - cell_len(text))
    return text + blank if left else blank + text


def _row(cells: Sequence[str]) -> Text:
    return screen_line("  " + (" " * GAP).join(cells))


def _dim_dots(bar: str) -> Text:
    text = Text(bar)
    text.highlight_regex(f"{EMPTY}+", "dim")
    return text


def screen_line(text: str | Text, style: str = "") -> Text:
    """A line that the console must not wrap again."""
    line = Text.assemble(text, style=style, no_wrap=True, overflow="ignore")
    line.rstrip()
    return line
