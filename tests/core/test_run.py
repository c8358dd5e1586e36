from __future__ import annotations

from bakeoff.core.ranking import RankedRun, Ranking
from hypothesis import given
from hypothesis import strategies as st

RANKINGS = st.builds(
    lambda ids, scores, matched: Ranking(tuple(ids), tuple(scores[: len(ids)]), matched),
    st.lists(st.text(max_size=3), unique=True, max_size=5),
    st.lists(st.floats(allow_nan=False), min_size=5, max_size=5),
    st.none() | st.integers(0, 5),
)


@given(st.dictionaries(st.text(max_size=4), RANKINGS, max_size=6))
def test_what_is_packed_comes_back_to_the_last_digit(rankings: dict[str, Ranking]) -> None:
    packed = RankedRun()
    for query, ranking in rankings.items():
        packed.add(query, ranking)
    assert dict(packed) == rankings
    assert list(packed) == list(rankings)


def test_a_query_is_there_or_not() -> None:
    packed = RankedRun()
    packed.add("q", Ranking(("a",), (1.0,)))
    assert "q" in packed
    assert "r" not in packed
    assert packed.get("r") is None
