"""The one sampling order: drawn by a seed, the same on every machine and in every version of Python."""

from __future__ import annotations

import hashlib


def order_key(seed: object, *parts: object) -> str:
    """A sort key that only the seed and the parts decide, so that adding an item moves no other.

    Sorting by it and taking the first n is a seeded sample without replacement.
    """
    return hashlib.sha256(":".join(map(str, (seed, *parts))).encode()).hexdigest()
