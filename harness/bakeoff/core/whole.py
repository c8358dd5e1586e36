"""Parsing of whole numbers."""

from __future__ import annotations

_DIGITS = 18  # fits every library that gets the number


def whole_number(text: str) -> int | None:
    """A non-negative integer in plain digits, else None. Python also accepts `²` as a digit."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None
