"""The settings that a sweep measured: which of them nothing beats, and what to choose, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from bakeoff.core.figures import Percentiles
from bakeoff.statistics.pareto import pareto_front


class Point(msgspec.Struct, kw_only=True, frozen=True):
    """One setting. It is on a front when no other has as much recall for less."""

    store: str
    label: str  # the store as it was built
    build: dict[str, Any]
    query: dict[str, Any]
    exact: bool
    recall: float
    latency: Percentiles
    build_seconds: float
    index_bytes: int | None
    size_model_bytes: float
    fastest: bool = False
    smallest: bool = False

    @property
    def setting(self) -> str:
        """The query parameters in words."""
        return ", ".join(f"{name} = {value}" for name, value in self.query.items())


def mark_fronts(points: Sequence[Point]) -> list[Point]:
    """The same points, each with the fronts that it is on."""
    fastest, smallest = _front(points, _time_first), _front(points, _size_first)
    return [
        msgspec.structs.replace(point, fastest=place in fastest, smallest=place in smallest)
        for place, point in enumerate(points)
    ]


def _front(points: Sequence[Point], cost: Callable[[Point], tuple[float, float] | None]) -> set[int]:
    """The places of those that nothing beats; one whose cost is not known is on no front."""
    known = {place: price for place, point in enumerate(points) if (price := cost(point)) is not None}
    places = list(known)
    return {places[at] for at in pareto_front([(price, points[place].recall) for place, price in known.items()])}


def _time_first(point: Point) -> tuple[float, float] | None:
    """Equal in time: the smaller one."""
    return None if point.latency.p50 is None else (point.latency.p50, point.index_bytes or np.inf)


def _size_first(point: Point) -> tuple[float, float] | None:
    """Equal in size, as all query settings of one index are: the faster one."""
    return None if point.index_bytes is None else (point.index_bytes, point.latency.p50 or np.inf)


def _milliseconds(point: Point) -> float | None:
    return point.latency.p50


def _bytes(point: Point) -> float | None:
    return point.index_bytes


def sentences(points: Sequence[Point], target: float, k: int) -> list[str]:
    """What to set, for each index that has something to set; then the fastest and the smallest of all."""
    lines = []
    for label in dict.fromkeys(point.label for point in points if point.query):
        settings = [point for point in points if point.label == label]
        enough = [point for point in settings if point.recall >= target]
        if enough:
            best = min(enough, key=lambda point: (point.latency.p50 or 0.0) if len(point.query) > 1 else _first(point))
            lines.append(
                f"{label}: {best.setting} is enough for {target:g} (recall@{k} {best.recall:.4f}, p50 {_ms(best)})"
            )
        else:
            best = max(settings, key=lambda point: point.recall)
            lines.append(f"{label}: never reaches {target:g} (at most {best.recall:.4f}, with {best.setting})")
    reached = [point for point in points if point.recall >= target]
    for word, cost, shown in (("fastest", _milliseconds, _ms), ("smallest", _bytes, _mb)):
        ranked = [point for point in reached if cost(point) is not None]
        if ranked:
            best = min(ranked, key=lambda point: cost(point) or 0.0)
            setting = f" with {best.setting}" if best.query else ""
            lines.append(f"The {word} with recall@{k} of {target:g} or more: {best.label}{setting}, {shown(best)}.")
    return lines


def _first(point: Point) -> float:
    return float(next(iter(point.query.values())))


def _ms(point: Point) -> str:
    return "unknown" if point.latency.p50 is None else f"{point.latency.p50:.3f} ms"


def _mb(point: Point) -> str:
    return "unknown" if point.index_bytes is None else f"{point.index_bytes / 1e6:.1f} MB"
