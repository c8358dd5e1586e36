"""Measures against k as a picture: a line for each contender with a band of one standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bakeoff_providers.errors import Unavailable
from bakeoff_providers.registry import missing_modules

from bakeoff.core.drawing import DrawingFailed, draw


@dataclass(frozen=True, slots=True)
class Curve:
    """One point of one line."""

    contender: str
    measure: str
    k: int
    mean: float
    std: float


def curves_png(points: Sequence[Curve]) -> bytes:
    """One panel per measure. Needs the charts extra, and no browser."""
    if missing := missing_modules(("altair", "vl_convert"), "charts"):
        raise Unavailable(missing)
    import altair

    values = [
        {**asdict(point), "low": max(0.0, point.mean - point.std), "high": min(1.0, point.mean + point.std)}
        for point in points
    ]
    k = altair.X("k:Q", title="k", axis=altair.Axis(values=sorted({point.k for point in points}), format="d"))
    colour = altair.Color("contender:N", title=None, legend=altair.Legend(orient="bottom", columns=3))
    scale = altair.Scale(domain=[0, 1])
    base = altair.Chart().encode(x=k, color=colour)
    band = base.mark_area(opacity=0.15).encode(y=altair.Y("low:Q", scale=scale), y2="high:Q")
    line = base.mark_line(point=True).encode(y=altair.Y("mean:Q", title="mean ± 1 sd", scale=scale))
    measures = list(dict.fromkeys(point.measure for point in points))
    chart: Any = (
        altair.layer(band, line, data=altair.InlineData(values=values))
        .properties(width=230, height=190)
        .facet(facet=altair.Facet("measure:N", title=None, sort=measures), columns=3)
    )
    (drawn,) = draw([chart.to_dict()])
    if isinstance(drawn, DrawingFailed):
        raise drawn
    return drawn.png
