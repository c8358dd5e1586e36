from __future__ import annotations

import pytest
from bakeoff.core.ranking import best_chunks, ordered
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st


def test_score_descending_then_id_ascending() -> None:
    ranking = ordered([("b", 1.0), ("c", 2.0), ("a", 1.0)])
    assert ranking.ids == ("c", "a", "b")
    assert ranking.scores == (2.0, 1.0, 1.0)


def test_ties_at_the_cut_go_by_id() -> None:
    assert ordered([("z", 1.0), ("a", 1.0), ("m", 1.0)], 2).ids == ("a", "m")


def test_nan_and_duplicates_are_refused() -> None:
    with pytest.raises(InputError, match="NaN"):
        ordered([("a", float("nan"))])
    with pytest.raises(InputError, match="'a' stands twice"):
        ordered([("a", 1.0), ("a", 0.5)])


def test_a_document_scores_as_its_best_piece() -> None:
    owner = {"d#0": "d", "d#1": "d", "e": "e"}
    assert best_chunks(["d#0", "e", "d#1"], [0.1, 0.5, 0.9], owner) == {"d": 0.9, "e": 0.5}
    with pytest.raises(InputError, match="unknown id 'x'"):
        best_chunks(["x"], [1.0], owner)


@given(st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=30))
def test_the_order_never_depends_on_the_order_of_arrival(scores: dict[str, float]) -> None:
    pairs = list(scores.items())
    assert ordered(pairs) == ordered(pairs[::-1])
    ranked = ordered(pairs)
    assert sorted(ranked.scores, reverse=True) == list(ranked.scores)
