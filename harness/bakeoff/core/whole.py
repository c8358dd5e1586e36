"""Numbers as people write them."""

from __future__ import annotations

_DIGITS = 18  # what every library that we hand a number to can hold


def whole_number(text: str) -> int | None:
    """A number from 0 on in plain digits, or None: `²` is a digit to Python, and 5,000 digits are an error."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None
