"""Which of many choices are worth a look, where more of one thing costs more of another."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[tuple[float, ...], float]]) -> list[int]:
    """The places of the points (cost, worth) that no other beats, the cheapest first; equal points all stay.

    One beats another where it costs no more and is worth no less, and one of the two is better.
    """
    front: list[int] = []
    for place in sorted(range(len(points)), key=lambda at: (points[at][0], -points[at][1])):
        if not front or points[place][1] > points[front[-1]][1] or points[place] == points[front[-1]]:
            front.append(place)
    return front
