"""Tables in Markdown: text from data can't break out of its line or cell."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

from bakeoff.core.printable import printable

# What would make a link, an image or the target of one, or an address that becomes a link by itself.
_LINKS = (
    (re.compile(r"\](?=[(\[:])"), "&#93;"),
    (re.compile("://"), "&#58;//"),
    (re.compile(r"(?i)\b(www)\."), r"\1&#46;"),
    (re.compile(r"(?i)\b(mailto|xmpp):"), r"\1&#58;"),
    (re.compile(r"(?<=[\w.+-])@(?=[\w-]+\.)"), "&#64;"),
)


def inert(text: str) -> str:
    """One line that holds no markup: no cell ends early, no element begins, nothing is fetched or leads elsewhere."""
    text = printable(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    for pattern, instead in _LINKS:
        text = pattern.sub(instead, text)
    return text


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
