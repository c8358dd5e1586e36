"""Team draft interleaving (Radlinski, Kurup, Joachims 2008): two rankings in one list, each place owned by one of them.

Standard library only: a search service imports this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bakeoff_providers.errors import InputError


class Interleaved(NamedTuple):
    """The list to show, and which ranking (`a` or `b`) owns each place."""

    shown: tuple[str, ...]
    team: tuple[str, ...]


def interleave(a: Sequence[str], b: Sequence[str], k: int, seed: object) -> Interleaved:
    """Interleave up to k documents. The seed, such as a request id, makes the list reproducible."""
    if k < 1:
        raise InputError(f"k is {k}", remedy="k must be at least 1")
    for name, ranking in (("a", a), ("b", b)):
        if len(set(ranking)) < len(ranking):
            raise InputError(f"ranking {name} names a document twice", remedy="list each document once")
    coins, shown, team = _coins(seed), dict[str, None](), list[str]()
    left = {"a": iter(a), "b": iter(b)}
    while len(shown) < k and left:
        ahead = team.count("a") - team.count("b")
        first = "a" if (next(coins) if ahead == 0 else ahead < 0) else "b"
        if first not in left:
            first = next(iter(left))
        pick = next((document for document in left[first] if document not in shown), None)
        if pick is None:
            del left[first]
        else:
            shown[pick] = None
            team.append(first)
    return Interleaved(tuple(shown), tuple(team))


def _coins(seed: object) -> Iterator[bool]:
    """Fair coin flips that depend only on the seed, on every machine."""
    block = 0
    while True:
        bits = int.from_bytes(hashlib.sha256(f"{seed}:{block}".encode()).digest(), "big")
        for _ in range(256):
            yield bool(bits & 1)
            bits >>= 1
        block += 1
