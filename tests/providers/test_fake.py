from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from bakeoff_providers.base import Role, check_batch
from bakeoff_providers.errors import InputError
from bakeoff_providers.fake import Fake
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses


def non_zero(text: str, seed: int) -> dict[int, float]:
    vector = Fake(seed=seed).embed([text], Role.DOCUMENT).vectors[0]
    return {int(place): float(vector[place]) for place in np.flatnonzero(vector)}


# Worked out by hand from coreutils' `printf '0:word:a' | b2sum -l 64` and its like: the first byte's lowest bit is the
# sign, the next eight bits are the place among 256.
HALF = 1 / math.sqrt(2)
BY_HAND = [
    ("a", 0, {214: HALF, 5: -HALF}),  # adc9… (0:word:a) and 0a24… (0:gram:<a>)
    ("a", 7, {73: -HALF, 82: -HALF}),  # 92ae… (7:word:a) and a480… (7:gram:<a>)
    ("", 0, {138: -1.0}),  # 14fd… (0:text:)
]


@pytest.mark.parametrize(("text", "seed", "expected"), BY_HAND)
def test_vectors_are_the_same_on_every_machine(text: str, seed: int, expected: dict[int, float]) -> None:
    assert non_zero(text, seed) == pytest.approx(expected, abs=1e-7)


def test_a_word_is_hashed_whole_and_by_its_3_grams() -> None:
    counts = np.zeros(64)
    for feature in ("word:cats", "gram:<ca", "gram:cat", "gram:ats", "gram:ts>"):
        number = int.from_bytes(hashlib.blake2b(f"3:{feature}".encode(), digest_size=8).digest(), "little")
        counts[number // 2 % 64] += 1 if number % 2 else -1
    vector = Fake(dimensions=64, seed=3).embed(["Cats!"], Role.QUERY).vectors[0]
    np.testing.assert_allclose(vector, counts / np.linalg.norm(counts), atol=1e-7)


@given(st.lists(st.text(), max_size=5), st.integers(1, 300), st.integers(0, 5))
def test_every_text_gets_a_vector_of_length_1(texts: list[str], dimensions: int, seed: int) -> None:
    fake = Fake(dimensions=dimensions, seed=seed)
    batch = check_batch(fake.embed(texts, Role.DOCUMENT), texts, fake.card)
    assert batch.vectors.dtype == np.float32
    assert batch.vectors.shape == (len(texts), dimensions)
    np.testing.assert_allclose(np.linalg.norm(batch.vectors, axis=1), 1, atol=1e-6)


def test_features_that_cancel_out_still_give_a_vector() -> None:
    # The two features of "a" have opposite signs (see BY_HAND), so in one dimension their sum is 0.
    # What is left is the hash of the whole text: 2f50… (0:text:a), an odd first byte.
    assert Fake(dimensions=1).embed(["a"], Role.QUERY).vectors[0, 0] == 1


def test_shared_words_bring_texts_near() -> None:
    near, far = ("the river rose", "the river fell"), ("the river rose", "quarterly profits")
    first, second = (np.prod(Fake().embed(pair, Role.DOCUMENT).vectors, axis=0).sum() for pair in (near, far))
    assert first > 0.3 > second


def test_tokens_are_the_words() -> None:
    assert Fake().embed(["one two", "three", ""], Role.QUERY).tokens == 3


def test_the_identity_tells_seeds_and_sizes_apart() -> None:
    made = [Fake(), Fake(seed=1), Fake(dimensions=128)]
    assert len({str(fake.identity(Role.QUERY)) for fake in made}) == 3


def test_no_dimensions_are_refused() -> None:
    with refuses(InputError, "0", place="fake"):
        Fake(dimensions=0)
