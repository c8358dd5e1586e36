from __future__ import annotations

from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses


def test_score_descending_then_id_ascending() -> None:
    ranking = make_ranking([("b", 1.0), ("c", 2.0), ("a", 1.0)])
    assert ranking.ids == ("c", "a", "b")
    assert ranking.scores == (2.0, 1.0, 1.0)


def test_ties_at_the_cut_go_by_id() -> None:
    assert make_ranking([("z", 1.0), ("a", 1.0), ("m", 1.0)], 2).ids == ("a", "m")


def test_nan_and_duplicates_are_refused() -> None:
    with refuses(InputError, "NaN"):
        make_ranking([("a", float("nan"))])
    with refuses(InputError, "'a'"):
        make_ranking([("a", 1.0), ("a", 0.5)])


@given(st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=30))
def test_the_order_never_depends_on_the_order_of_arrival(scores: dict[str, float]) -> None:
    pairs = list(scores.items())
    assert make_ranking(pairs) == make_ranking(pairs[::-1])
    ranked = make_ranking(pairs)
    assert sorted(ranked.scores, reverse=True) == list(ranked.scores)


def test_what_fills_up_comes_below_all_that_is_there() -> None:
    ranking = Ranking(("b", "d"), (2.0, 0.5))
    assert ranking.fill("abcde", 4) == Ranking(("b", "d", "a", "c"), (2.0, 0.5, 0.0, 0.0), 2)
    assert ranking.fill("abcde", 99) == Ranking(("b", "d", "a", "c", "e"), (2.0, 0.5, 0.0, 0.0, 0.0), 2)
    assert ranking.fill("abcde", 2) == Ranking(("b", "d"), (2.0, 0.5), 2)
    assert Ranking(("b",), (-0.5,)).fill("ab", 2) == Ranking(("b", "a"), (-0.5, -1.5), 1)
    assert Ranking(("b",), (0.0,)).fill("ab", 2).scores == (0.0, 0.0)
    assert Ranking((), ()).fill("ab", 1) == Ranking(("a",), (0.0,), 0)


def test_fusions_and_pools_read_only_what_matched() -> None:
    ranking = Ranking(("b", "d", "a"), (2.0, 0.5, 0.0), 2)
    assert ranking.found == ("b", "d")
    assert ranking.cut(1) == Ranking(("b",), (2.0,), 2)
    assert ranking.cut(1).found == ("b",)
    assert Ranking(("b", "d"), (2.0, 0.5)).found == ("b", "d")
    assert len(ranking) == 3
