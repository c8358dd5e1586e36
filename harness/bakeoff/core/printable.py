"""Text for people: control characters from data shown as �, and numbers, amounts and names as words."""

from __future__ import annotations

import re
from collections.abc import Sequence

# C0 but for tab and newline, DEL, C1, and the marks that turn the direction of what follows.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

MOST_LISTED = 12  # names in a sentence


def printable(text: str) -> str:
    """The text with a replacement character for each one that a terminal would obey."""
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
    """a, b and c; of very many the first."""
    if len(names) == 1 or len(names) > MOST_LISTED + 1:
        return some(names, MOST_LISTED)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def dollars(figure: float) -> str:
    """As few digits as tell it."""
    return "$0" if figure == 0 else f"${figure:.2f}" if figure >= 0.01 else f"${figure:.2g}"
