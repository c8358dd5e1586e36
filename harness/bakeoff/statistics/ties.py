"""Who ties: nobody whom an adjusted p separates. Every list of ties is made from this."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

from bakeoff.statistics.constants import ALPHA

Name = TypeVar("Name", bound=Hashable)


def separated_from(name: Name, pairs: Iterable[tuple[Name, Name, float]], alpha: float = ALPHA) -> set[Name]:
    """Those whom the adjusted p of a pair, which stands behind its two names, separates from this one."""
    return {b if a == name else a for a, b, p in pairs if name in (a, b) and p <= alpha}
