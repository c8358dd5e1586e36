"""Text from data for a terminal: what would move the cursor, colour the screen or turn the direction is shown as �."""

from __future__ import annotations

import re

# C0 but for tab and newline, DEL, C1, and the marks that turn the direction of what follows.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with a replacement character for each one that a terminal would obey."""
    return _CONTROL.sub("\ufffd", text)
