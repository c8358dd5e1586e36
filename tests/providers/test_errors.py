"""Places in files, as a reader counts them."""

from __future__ import annotations

import pytest
from bakeoff_providers.errors import InputError, place_words


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("$.contender[1].store", "contender 2, store"),
        ("contender[1], k1", "contender 2, k1"),
        ("$.contender[0].precision[1]", "contender 1, precision 2"),
        ("$.a[0][1].b", "a 1, 2, b"),
        ("$[4]", "entry 5"),
        ("$.metadata.scale", "metadata.scale"),
        ("line 3, $.tags[0]", "line 3, tags 1"),
        ("measures[2]", "measures 3"),
        ("column 'tags[0]'", "column 'tags[0]'"),  # somebody's own name
        ("row 3", "row 3"),
        ("task.toml", "task.toml"),
    ],
)
def test_every_place_is_counted_from_one(path: str, words: str) -> None:
    assert place_words(path) == words
    error = InputError("is wrong", file="a.json", place=path)
    assert str(error) == f"a.json: {words}: is wrong"
    assert error.place == path
