"""Pieces to documents, and answers that no store may give."""

from __future__ import annotations

import pytest
from bakeoff.search.hits import best_chunks
from bakeoff_providers.errors import InputError, StoreError

OWNER = {"d#0": "d", "d#1": "d", "e": "e"}


def test_a_document_scores_as_its_best_piece() -> None:
    assert best_chunks(["d#0", "e", "d#1"], [0.1, 0.5, 0.9], OWNER) == {"d": 0.9, "e": 0.5}


@pytest.mark.parametrize(
    ("ids", "scores", "said"),
    [
        (["e", "x"], [1.0, 0.5], "unknown id 'x'"),
        (["d#0", "e", "d#0"], [0.9, 0.5, 0.1], "'d#0' twice"),
        (["e", "d#1"], [0.5, float("nan")], "NaN as the score of 'd#1'"),
    ],
)
def test_what_can_not_be_used_is_the_stores_failure_not_the_users(
    ids: list[str], scores: list[float], said: str
) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        best_chunks(ids, scores, OWNER)
    assert not isinstance(caught.value, InputError)
