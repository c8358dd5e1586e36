"""The seeded order is the same everywhere and moves nothing when items are added."""

import hashlib

from bakeoff.core.hashing import order_key
from hypothesis import given
from hypothesis import strategies as st


def test_the_key_is_the_hash_of_seed_and_parts() -> None:
    """Written out, since selections that people keep depend on it."""
    assert order_key(42, "7") == hashlib.sha256(b"42:7").hexdigest()
    assert order_key("anna", "q1", "d1") == hashlib.sha256(b"anna:q1:d1").hexdigest()


@given(st.integers(), st.sets(st.text(), min_size=1), st.text())
def test_another_item_moves_none(seed: int, items: set[str], other: str) -> None:
    before = sorted(items, key=lambda item: order_key(seed, item))
    after = sorted(items | {other}, key=lambda item: order_key(seed, item))
    assert [item for item in after if item in items] == before
