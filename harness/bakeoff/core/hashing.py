"""Hashes that name what is on disk. A change here invalidates caches and snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

Identity = Mapping[str, str | int | float | bool | None]  # everything but the text that changes an answer
KEY_BYTES = 16


def text_key(text: str) -> bytes:
    """A text's key within its space, also used in snapshots."""
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def space_name(identity: Identity) -> str:
    """The folder name for everything made under one identity."""
    return hashlib.sha256(msgspec.json.encode(dict(sorted(identity.items())))).hexdigest()[:32]


def order_key(seed: object, *parts: object) -> str:
    """A sort key that depends only on the seed and the parts, so that adding an item moves no other.

    Sorting by it and taking the first n gives a seeded sample without replacement.
    """
    return hashlib.sha256(":".join(map(str, (seed, *parts))).encode()).hexdigest()
