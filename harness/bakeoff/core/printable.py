"""Text for a terminal. From data, what would move the cursor, colour the screen or turn the direction is shown as �."""

from __future__ import annotations

import re
from collections.abc import Sequence

# C0 but for tab and newline, DEL, C1, and the marks that turn the direction of what follows.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with a replacement character for each one that a terminal would obey."""
    return _CONTROL.sub("\ufffd", text)


def counted(number: int, what: str) -> str:
    """`1 round`, `2 rounds`, `2 queries`."""
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else several}"


def some(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    listed = ", ".join(names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed
