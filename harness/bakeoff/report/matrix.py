"""The comparison matrix: the same words and figures in the terminal, in Markdown, in LaTeX and on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from bakeoff.core.printable import dollars
from bakeoff.report.groups import name_without_store
from bakeoff.report.words import failure_words
from bakeoff.results.columns import MODEL, STORE, TOTAL, Column, Quantity, columns, ordered_rows
from bakeoff.results.schema import Kept, Row, Standing, Summary

BEST, MAY_BE_BEST, EQUIVALENT, OPEN, DOUBT, MET, MISSED, KEPT = "★", "≈", "≡", "?", "?", "✓", "✗", "†"


def keys(summary: Summary) -> list[str]:
    """The legend of the marks that occur in a result's matrix."""
    content = matrix(summary)
    marks = {
        (column.quantity, mark)
        for line in content.lines
        for column in content.columns
        if column.key in line.cells
        for mark in line.cells[column.key].marks.split()
    }
    cut = next((column.ending for column in content.columns if column.ending), "")
    meanings = {
        (Quantity.MEASURE, BEST): f"{BEST} leads",
        (Quantity.MEASURE, MAY_BE_BEST): f"{MAY_BE_BEST} may be best (95%)",
        (Quantity.MEASURE, EQUIVALENT): f"{EQUIVALENT} as good as the leader within the margin",
        (Quantity.MEASURE, OPEN): f"{OPEN} open until graded",
        (Quantity.MEASURE, MET): f"{MET} target met",
        (Quantity.MEASURE, MISSED): f"{MISSED} target missed",
        (Quantity.TIME, DOUBT): f"{DOUBT} unreliable timing, see below",
        (Quantity.TIME, KEPT): f"{KEPT} timed in an earlier run, see below",
    }
    said = [meaning for mark, meaning in meanings.items() if mark in marks]
    return said + ([f"({cut}): depth of the ranking, for a measure without a cut-off"] if cut else [])


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure with its interval, marks and emphasis."""

    figure: str
    state: str = ""
    interval: str = ""
    marks: str = ""

    @property
    def text(self) -> str:
        """The figure, interval and marks on one line."""
        return " ".join(part for part in (self.figure, self.interval, self.marks) if part)


UNKNOWN = Cell("–", "empty")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the matrix: cells by column key, or the reason why it did not run."""

    row: Row
    cells: Mapping[str, Cell] = field(default_factory=dict)
    reason: str = ""

    def texts(self, heads: Sequence[Column]) -> list[str]:
        """One text per column; a reason replaces the first figure."""
        rest = iter([self.reason])
        return [self.cells[column.key].text if column.key in self.cells else next(rest, "") for column in heads]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Columns and lines, the source of every report."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


def matrix(summary: Summary) -> Matrix:
    """The matrix of a result."""
    heads = columns(summary)
    best = {
        column.key: max((round(column.value(row) or 0.0, 12) for row in summary.ran), default=0.0)
        for column in heads
        if column.quantity is Quantity.MEASURE
    }
    return Matrix(tuple(heads), tuple(_line(row, summary, heads, best) for row in ordered_rows(summary)))


def _line(row: Row, summary: Summary, heads: Sequence[Column], best: Mapping[str, float]) -> Line:
    if row.not_run is not None:
        texts = {MODEL.key: Cell(name_without_store(row), "lost"), STORE.key: Cell(row.store or "–", "lost")}
        return Line(row, texts, f"not run: {failure_words(row.not_run)}")
    cells = {
        MODEL.key: Cell(name_without_store(row), "scale" if row.row_type == "baseline" else "name"),
        STORE.key: Cell(row.store or "–"),
    }
    for column in heads:
        match column.quantity:
            case Quantity.MEASURE:
                cell = _measure(row, column, summary, best[column.key])
            case Quantity.TIME:
                cell = _time(row, column)
            case Quantity.MONEY:
                cell = _money(row, column)
            case Quantity.SIZE:
                size = column.value(row)
                cell = UNKNOWN if size is None else Cell(f"{size:.2f}")
            case Quantity.SHARE:
                share = column.value(row)
                cell = UNKNOWN if share is None else Cell(f"{share:.2f}")
            case Quantity.TEXT:
                continue
            case _:
                assert_never(column.quantity)
        cells[column.key] = cell
    return Line(row, cells)


def _measure(row: Row, column: Column, summary: Summary, best: float) -> Cell:
    measure = column.key
    value = row.measures[measure]
    interval = ""
    if value.low is not None and value.high is not None:
        interval = f"[{value.low:.2f}, {value.high:.2f}]"
    state = ""
    marks: list[str] = []
    standing = summary.verdict.standings.get(row.label) if column.decides else None
    if standing is not None:
        state, marks = _standing_marks(standing)
    elif column.ranks and row.row_type != "baseline" and not column.decides and round(value.mean, 12) == best:
        state = "best"
    if measure in row.targets:
        marks.append(MET if row.targets[measure] else MISSED)
    return Cell(f"{value.mean:.3f}", state, interval if column.decides else "", " ".join(marks))


def _standing_marks(standing: Standing) -> tuple[str, list[str]]:
    match standing.mark:
        case "leads":
            return "best", [BEST]
        case "may be best":
            return "tied", [EQUIVALENT if standing.equivalent else MAY_BE_BEST]
        case "worse":
            marks = [EQUIVALENT] if standing.equivalent else [OPEN] if standing.open else []
            return "tied" if standing.equivalent else "", marks
        case _:
            assert_never(standing.mark)


def _time(row: Row, column: Column) -> Cell:
    figure = column.value(row)
    if figure is None:
        return UNKNOWN
    marks = [DOUBT] if row.latency and row.latency.doubts else []
    if row.latency and (kept := row.latency.kept) and column.name in (*kept.stages, TOTAL.name):
        marks.append(KEPT)
    return Cell(f"{figure:.2f}", "doubt" if marks else "", marks=" ".join(marks))


def earlier_timing_words(kept: Kept) -> str:
    """When and where a row's cached calls were timed."""
    stages = " and ".join({"embed": "embedding", "rerank": "reranking"}[stage] for stage in kept.stages)
    return f"{stages} was timed {kept.when} on {', '.join(kept.machines)}; not compared with times of this run"


def _money(row: Row, column: Column) -> Cell:
    if row.cost is None:
        return UNKNOWN
    usd = column.value(row)
    about = "~" if row.cost.tokens_estimated and usd else ""
    return Cell("unknown" if usd is None else f"{about}{dollars(usd)}")
