"""Tables in Markdown: text from data can't break out of its line or cell."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence


def inert(text: str) -> str:
    """One line that holds no markup: no cell ends early, no element begins."""
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, figures: Container[int] = ()) -> list[str]:
    """The lines of a table; the columns with these numbers hold figures and are set to the right."""
    rule = ["--:" if place in figures else "---" for place in range(len(heads))]
    return [_line(map(inert, heads)), f"|{'|'.join(rule)}|", *(_line(map(inert, cells)) for cells in rows)]


def section_lines(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> list[str]:
    """A headed part: title, table where there is one, notes."""
    table = [*markdown_table(heads, rows), ""] if heads else []
    return [f"## {inert(title)}", "", *table, *(f"- {inert(note)}" for note in notes), ""]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
