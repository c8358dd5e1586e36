"""Line wrapping that keeps a number and its unit together."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from typing import TextIO

from bakeoff.core.printable import whole_number

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
