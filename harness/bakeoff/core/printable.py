"""Text for people: printable, counts and lists in words, Markdown tables, lines wrapped to the screen."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TextIO

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


PIPE_WIDTH = 100
HANG = 2  # extra indent of continuation lines

_TOKEN = re.compile(r"( *)(\S+)")
_FIGURE = re.compile(r"[(\[]*[~≈<>≤≥±+−-]*[$€]?\d([\d.,:]*\d)?")
_SIGNS = frozenset(["=", "→", "≥", "≤", "<", ">", "±", "−", "+", "×", "/", "≈", "·"])


def screen_width(stream: TextIO) -> int:
    """A terminal's width; for a pipe, COLUMNS or 100."""
    if stream.isatty():
        return shutil.get_terminal_size().columns
    return whole_number(os.environ.get("COLUMNS", "")) or PIPE_WIDTH


def wrap(text: str, width: int) -> list[str]:
    """Wraps a text at this width. Words are never broken; a word that is too long gets its own line."""
    return [line for paragraph in text.split("\n") for line in _lines(paragraph, width)]


def _lines(paragraph: str, width: int) -> Iterator[str]:
    if cells(paragraph) <= width:
        yield paragraph.rstrip()
        return
    indent = len(paragraph) - len(paragraph.lstrip(" "))
    hang = " " * (indent + HANG) if indent else ""
    line = ""
    for gap, chunk in _chunks(paragraph, width - len(hang)):
        if line.strip() and cells(line) + len(gap) + cells(chunk) > width:
            yield line.rstrip()
            line = hang + chunk
        else:
            line += gap + chunk
    yield line.rstrip()


def _chunks(paragraph: str, width: int) -> Iterator[tuple[str, str]]:
    """Words with the blanks before them. Words that belong together are one chunk if they fit the width."""
    gap, chunk, before, last = "", "", "", ""
    for blanks, word in _TOKEN.findall(paragraph):
        if chunk and not (_together(before, last, word) and cells(chunk) + len(blanks) + cells(word) <= width):
            yield gap, chunk
            chunk = ""
        if chunk:
            chunk += blanks + word
        else:
            gap, chunk = blanks, word
        before, last = last, word
    if chunk:
        yield gap, chunk


def _together(before: str, word: str, follower: str) -> bool:
    """A number and its unit, "4 of 5", the two ends of an interval, both sides of an operator."""
    if word in _SIGNS or follower in _SIGNS:
        return True
    if word == "of":
        return bool(_FIGURE.fullmatch(before) and _FIGURE.match(follower))
    if word[0] in "[(" and word[-1] == ",":
        return bool(_FIGURE.fullmatch(word[:-1]))
    return bool(_FIGURE.fullmatch(word)) and (follower[0].isalpha() or follower[0] in "[%×")


def cells(text: str) -> int:
    """The width of a text in terminal columns."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )
