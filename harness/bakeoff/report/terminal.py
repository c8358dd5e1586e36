"""All figures of a result for a terminal: the verdict first, then the matrix, then notes and tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from bakeoff.report.further_words import further_sentences
from bakeoff.report.grid import Figures, Grid, Prose
from bakeoff.report.matrix import Matrix, keys, matrix
from bakeoff.report.notes import headline, notes
from bakeoff.report.sections import TextTable, text_table
from bakeoff.report.verdict_words import advice, verdict_sentences
from bakeoff.results.columns import COST, MODEL, STORE, TOTAL, Column
from bakeoff.results.schema import Summary

STYLES = {"name": "bold", "scale": "italic", "best": "bold", "doubt": "yellow", "lost": "dim"}
KEYS = (MODEL.key, STORE.key)


def terminal(summary: Summary, *, wide: bool = False) -> RenderableType:
    """Prints all of a result. `wide` keeps the matrix in one table, whatever the screen width."""
    content = matrix(summary)
    lost = [line for line in content.lines if line.reason]  # a long reason would widen a column
    parts: list[RenderableType] = [Prose(headline(summary), "bold")]
    parts += [Prose(summary.task.about)] if summary.task.about else []
    parts += [Text("")]
    parts += [Prose(sentence) for sentence in [*verdict_sentences(summary), *further_sentences(summary)]]
    parts += [Text(""), *(Prose(line) for line in advice(summary))]
    parts += [_FittedMatrix(content, wide)]
    parts += [Prose(f"{line.row.label} {line.reason}", STYLES["lost"]) for line in lost]
    parts += [_Legend(keys(summary)), Text("")]
    parts += [Prose(note.sentence, "yellow" if note.topic == "doubt" else "dim") for note in notes(summary)]
    for section in map(text_table, summary.sections):
        parts += [Text(""), _section(section), *(Prose(note, "dim") for note in section.notes)]
    return Group(*parts)


class _FittedMatrix:
    """One table if it fits; otherwise the deciding columns, and the rest below."""

    def __init__(self, content: Matrix, wide: bool) -> None:
        self._content, self._wide = content, wide

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = _table(self._content, self._content.columns, wide=self._wide)
        if self._wide or whole.natural_width() <= options.max_width:
            yield whole
        else:
            yield _table(self._content, _essential_first(self._content.columns))


class _Legend:
    """The marks on one line if they fit, otherwise one per line."""

    def __init__(self, marks: Sequence[str]) -> None:
        self._marks = marks

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = "   ".join(self._marks)
        for text in [line] if cell_len(line) <= options.max_width else self._marks:
            yield Prose(text, "dim")


def _essential_first(columns: Sequence[Column]) -> list[Column]:
    """Sorts columns: name, deciding measure, MRR, total time, cost, then the rest."""
    essential = [column for column in columns if column.key in KEYS]
    essential += [column for column in columns if column.decides]
    essential += [column for column in columns if column.key in ("mrr", TOTAL.key, COST.key) and not column.decides]
    return essential + [column for column in columns if column not in essential]


def _table(content: Matrix, columns: Sequence[Column], *, wide: bool = False) -> Grid:
    table = Grid([column.head if column.is_text else Figures(column.head) for column in columns], len(KEYS), wide)
    for line in content.lines:
        if not line.reason:
            cells = [line.cells[column.key] for column in columns]
            table.add_row(*(Text(cell.text, style=STYLES.get(cell.state, "")) for cell in cells))
    return table


def _section(section: TextTable) -> RenderableType:
    title = Text(section.title, style="bold")
    if not section.heads:
        return title
    name, *figures = section.heads
    table = Grid([name, *(Figures(head) for head in figures)])
    for cells in section.rows:
        table.add_row(*cells)
    return Group(title, table)
