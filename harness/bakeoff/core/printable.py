"""Text for people: no control characters, counts and lists as phrases, whole numbers, Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

# C0 except tab and newline, DEL, C1, and bidirectional control characters.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# Links, images, link targets, and addresses that turn into links by themselves.
_LINKS = (
    (re.compile(r"\](?=[(\[:])"), "&#93;"),
    (re.compile("://"), "&#58;//"),
    (re.compile(r"(?i)\b(www)\."), r"\1&#46;"),
    (re.compile(r"(?i)\b(mailto|xmpp):"), r"\1&#58;"),
    (re.compile(r"(?<=[\w.+-])@(?=[\w-]+\.)"), "&#64;"),
)

MOST_LISTED = 12  # names in a sentence
_DIGITS = 18  # fits every library that gets the number


def printable(text: str) -> str:
    """Replaces every character that a terminal would interpret."""
    return _CONTROL.sub("\ufffd", text)


def pluralise(number: int, what: str) -> str:
    """`1 round`, `2 rounds`, `2 queries`."""
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else several}"


def some(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    first = ", ".join(names[:most])
    return f"{first} and {len(names) - most} more" if len(names) > most else first


def join_names(names: Sequence[str]) -> str:
    """`a, b and c`; of a long list, the first names."""
    if len(names) == 1 or len(names) > MOST_LISTED + 1:
        return some(names, MOST_LISTED)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def dollars(figure: float) -> str:
    """A dollar amount in as few digits as needed."""
    return "$0" if figure == 0 else f"${figure:.2f}" if figure >= 0.01 else f"${figure:.2g}"


def whole_number(text: str) -> int | None:
    """A non-negative integer in plain digits, else None. Python also accepts `²` as a digit."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def inert(text: str) -> str:
    """Text on one line without markup: it ends no cell, starts no element and links nowhere."""
    text = printable(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    for pattern, instead in _LINKS:
        text = pattern.sub(instead, text)
    return text


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, figures: Container[int] = ()) -> list[str]:
    """The lines of a table. Columns with these numbers hold figures and are right-aligned."""
    rule = ["--:" if place in figures else "---" for place in range(len(heads))]
    return [_line(map(inert, heads)), f"|{'|'.join(rule)}|", *(_line(map(inert, cells)) for cells in rows)]


def section_lines(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> list[str]:
    """A section: title, table if there is one, notes."""
    table = [*markdown_table(heads, rows), ""] if heads else []
    return [f"## {inert(title)}", "", *table, *(f"- {inert(note)}" for note in notes), ""]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
