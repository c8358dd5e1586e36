"""The Pareto front of cost and worth."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[tuple[float, ...], float]]) -> list[int]:
    """The indices of the (cost, worth) points that no other dominates, cheapest first. Equal points all stay.

    A point dominates another if it costs no more and is worth no less, and is better in one of the two.
    """
    front: list[int] = []
    for place in sorted(range(len(points)), key=lambda at: (points[at][0], -points[at][1])):
        if not front or points[place][1] > points[front[-1]][1] or points[place] == points[front[-1]]:
            front.append(place)
    return front
