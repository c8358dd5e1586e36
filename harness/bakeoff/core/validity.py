"""Time-bound tasks: documents are valid from one day to another, and a query may ask about a day (`as_of`).

Both ends belong to the period, and an end that is not given is open. A query without a day is not time-bound.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, NamedTuple

from bakeoff_providers.errors import InputError

FROM, TO, AS_OF = "valid_from", "valid_to", "as_of"
_DAY = len("2026-11-16")


class Period(NamedTuple):
    """From the first to the last day on which a document is valid; an empty text is an open end."""

    first: str = ""
    last: str = ""

    def has(self, day: str) -> bool:
        """Whether a day is in it: ISO days are ordered as texts are."""
        return self.first <= day and (not self.last or day <= self.last)


def parse_day(value: Any, field: str) -> str:
    """A day as 2026-11-16; an empty text where the value is missing."""
    if value is None or value != value or value == "":  # pandas' missing values are not themselves
        return ""
    text = str(value)  # a date of a parquet file or a data frame, too
    try:
        if len(text) != _DAY:
            raise ValueError
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"{field} is {text[:60]!r}, not a day", remedy="write it as 2026-11-16") from None


def period_of(metadata: Mapping[str, Any]) -> Period:
    """When a document is valid, by its metadata; always, where they have no days."""
    period = Period(parse_day(metadata.get(FROM), FROM), parse_day(metadata.get(TO), TO))
    if period.last and period.first > period.last:
        raise InputError(
            f"{FROM} {period.first} is after {TO} {period.last}", remedy="swap them, or leave one out for an open end"
        )
    return period
