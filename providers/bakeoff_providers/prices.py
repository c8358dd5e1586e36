"""List prices, in a separate module so that reading a result needs no numpy."""

from __future__ import annotations

import msgspec


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """A list price with its date and source."""

    usd_per_million_tokens: float
    seen: str
    source: str
