"""The front of cost and worth: the points that its definition leaves, and only those."""

from __future__ import annotations

from bakeoff.statistics.pareto import pareto_front
from hypothesis import given
from hypothesis import strategies as st

FEW = st.integers(0, 4).map(float)  # so few values that many points tie
POINTS = st.lists(st.tuples(st.tuples(FEW, FEW), FEW), max_size=12)


@given(POINTS)
def test_the_front_is_what_nothing_beats(points: list[tuple[tuple[float, ...], float]]) -> None:
    def beaten(cost: tuple[float, ...], worth: float) -> bool:
        return any(other <= cost and more >= worth and (other < cost or more > worth) for other, more in points)

    front = pareto_front(points)
    assert sorted(front) == [place for place, point in enumerate(points) if not beaten(*point)]
    assert [points[place] for place in front] == sorted(points[place] for place in front)


def test_by_hand() -> None:
    points = [((9.0,), 0.9), ((1.0,), 0.5), ((2.0,), 0.4), ((3.0,), 0.7), ((9.5,), 0.9), ((1.0,), 0.5)]
    assert pareto_front(points) == [1, 5, 3, 0]
    assert pareto_front([]) == []
