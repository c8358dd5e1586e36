"""The verdict and the matrix for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from bakeoff.report.console import grid
from bakeoff.report.matrix import LEGEND, matrix
from bakeoff.report.notes import advice, headline, notes
from bakeoff.results.schema import Section, Summary

STYLES = {"name": "bold", "scale": "italic", "best": "bold green", "tied": "green", "doubt": "yellow", "lost": "dim"}


def terminal(summary: Summary) -> RenderableType:
    """All of a result in one screen or two."""
    content = matrix(summary)
    table = grid(*(column.head if column.is_text else f">{column.head}" for column in content.columns))
    lost: list[RenderableType] = []  # a reason may be long: below the table it does not widen a column
    for line in content.lines:
        if line.reason:
            lost.append(Text(f"{line.row.label} {line.reason}", style=STYLES["lost"]))
        else:
            cells = [line.cells[column.key] for column in content.columns]
            table.add_row(*(Text(cell.text, style=STYLES.get(cell.state, "")) for cell in cells))
    parts: list[RenderableType] = [Text(headline(summary), style="bold"), table, *lost]
    parts += [Text(LEGEND, style="dim"), Text("")]
    parts += [Text(sentence) for sentence in summary.verdict.sentences]
    parts += [Text(""), *(Text(line) for line in advice(summary)), Text("")]
    parts += [Text(note.sentence, style="yellow" if note.kind == "doubt" else "dim") for note in notes(summary)]
    for section in summary.sections:
        parts += [Text(""), _section(section), *(Text(note, style="dim") for note in section.notes)]
    return Group(*parts)


def _section(section: Section) -> RenderableType:
    title = Text(section.title, style="bold")
    if not section.head:
        return title
    name, *figures = section.head
    table = grid(name, *(f">{head}" for head in figures))
    for cells in section.rows:
        table.add_row(*map(Text, cells))
    return Group(title, table)
