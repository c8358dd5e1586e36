"""Chunks to documents, and answers that no store may give."""

from __future__ import annotations

import pytest
from bakeoff.search.hits import best_chunks, document_scores
from bakeoff_providers.errors import InputError, StoreError

from tests.errors import refuses

OWNER = {"d#0": "d", "d#1": "d", "e": "e"}


def test_a_document_scores_as_its_best_chunk() -> None:
    assert best_chunks(["d#0", "e", "d#1"], [0.1, 0.5, 0.9], OWNER) == {"d": 0.9, "e": 0.5}


@pytest.mark.parametrize(
    ("ids", "scores", "said"),
    [
        (["e", "x"], [1.0, 0.5], "'x'"),
        (["d#0", "e", "d#0"], [0.9, 0.5, 0.1], "'d#0' twice"),
        (["e", "d#1"], [0.5, float("nan")], "'d#1'"),
    ],
)
def test_what_can_not_be_used_is_the_stores_failure_not_the_users(
    ids: list[str], scores: list[float], said: str
) -> None:
    with refuses(StoreError, said) as caught:
        best_chunks(ids, scores, OWNER)
    assert not isinstance(caught.value, InputError)


def test_a_document_may_score_by_the_mean_of_its_best_chunks_or_by_their_sum() -> None:
    owner = {f"d#{at}": "d" for at in range(5)} | {"e": "e"}
    ids, scores = ["d#0", "e", "d#1", "d#2", "d#3", "d#4"], [0.25, 0.5, 1.0, 0.5, 0.75, 0.0]
    assert document_scores(ids, scores, owner) == {"d": 1.0, "e": 0.5}
    assert document_scores(ids, scores, owner, "mean") == {"d": 0.75, "e": 0.5}  # of the three best
    assert document_scores(ids, scores, owner, "mean", 2) == {"d": 0.875, "e": 0.5}
    assert document_scores(ids, scores, owner, "sum") == {"d": 2.5, "e": 0.5}
    with refuses(StoreError, "twice"):
        document_scores([*ids, "e"], [*scores, 0.1], owner, "sum")


def test_of_equal_chunks_the_score_is_theirs() -> None:
    assert best_chunks(["d#0", "d#1"], [-0.5, -0.5], OWNER) == {"d": -0.5}
    assert best_chunks(["d#0", "d#1"], [0.9, 0.1], OWNER) == {"d": 0.9}
