"""How many examples a property gets that asks for more or fewer than the profile's."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> int:
    """All of them in the profile `thorough`; in `dev` the same share as of any other property's, but at least five."""
    default = settings.default
    assert default is not None
    return min(number, max(5, number * default.max_examples // 100))
