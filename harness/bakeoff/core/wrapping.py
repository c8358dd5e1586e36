"""Sentences for a screen: lines that fit, in which no figure is parted from what it counts."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from typing import TextIO

from bakeoff.core.whole import whole_number

PIPE_WIDTH = 100
HANG = 2  # how much deeper the lines are that go on after an indented one

_TOKEN = re.compile(r"( *)(\S+)")
_FIGURE = re.compile(r"[(\[]*[~≈<>≤≥±+−-]*[$€]?\d([\d.,:]*\d)?")
_SIGNS = frozenset(["=", "→", "≥", "≤", "<", ">", "±", "−", "+", "×", "/", "≈", "·"])


def screen_width(stream: TextIO) -> int:
    """A terminal's own width; a pipe is as wide as COLUMNS says, or 100."""
    if stream.isatty():
        return shutil.get_terminal_size().columns
    return whole_number(os.environ.get("COLUMNS", "")) or PIPE_WIDTH


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text at this width. Words are never broken: one that is too long has a line of its own."""
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
    """Words with the blanks before them; those that belong together are one, unless that is wider than the screen."""
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
    """A figure and its unit, both figures of "4 of 5", the two ends of an interval, both sides of a sign."""
    if word in _SIGNS or follower in _SIGNS:
        return True
    if word == "of":
        return bool(_FIGURE.fullmatch(before) and _FIGURE.match(follower))
    if word[0] in "[(" and word[-1] == ",":
        return bool(_FIGURE.fullmatch(word[:-1]))
    return bool(_FIGURE.fullmatch(word)) and (follower[0].isalpha() or follower[0] in "[%×")


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )
