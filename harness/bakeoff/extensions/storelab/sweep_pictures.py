"""The charts of a sweep: recall against time, and against bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bakeoff_providers.registry import missing_modules

from bakeoff.core import drawing
from bakeoff.extensions.storelab.sweep import Sweep


def missing() -> str | None:
    """What to install for pictures; None if nothing is missing."""
    return missing_modules(("altair", "vl_convert"), "charts")


def draw(sweep: Sweep, folder: Path, say: Callable[[str], None] = lambda _text: None) -> list[str]:
    """Draw both curves and return their file names; empty if the libraries are missing or fail."""
    if missing():
        return []
    curves = {
        "recall-latency.png": ("fastest", "p50", "search p50, ms"),
        "recall-size.png": ("smallest", "megabytes", "index, MB"),
    }
    rows = [
        {
            "store": point.label,
            "setting": f"{point.label} {point.setting}".strip(),
            "recall": point.recall,
            "p50": point.latency.p50,
            "megabytes": None if point.index_bytes is None else point.index_bytes / 1e6,
            "fastest": point.fastest,
            "smallest": point.smallest,
        }
        for point in sweep.points
    ]
    specs = [
        _curve([row for row in rows if row[cost] is not None], front, cost, title, sweep.k).to_dict()
        for front, cost, title in curves.values()
    ]
    written = []
    for name, picture in zip(curves, drawing.draw(specs), strict=True):
        if isinstance(picture, drawing.DrawingFailed):
            say(f"{name} could not be drawn: {picture}")
        else:
            (folder / name).write_bytes(picture.png)
            written.append(name)
    return written


def _curve(rows: list[dict[str, Any]], front: str, cost: str, title: str, k: int) -> Any:
    """All settings as points and the front as a line, with a logarithmic cost axis."""
    import altair

    base = altair.Chart(altair.InlineData(values=rows)).encode(
        x=altair.X("recall:Q", title=f"recall@{k} against exact search", scale=altair.Scale(zero=False)),
        y=altair.Y(f"{cost}:Q", title=title, scale=altair.Scale(type="log", nice=False)),
    )
    points = base.mark_circle(size=45, opacity=0.75).encode(
        color=altair.Color("store:N", title=None), shape=altair.Shape("store:N", title=None)
    )
    line = base.transform_filter(f"datum.{front}").mark_line(color="#555", strokeWidth=1).encode(order="recall:Q")
    return (line + points).properties(width=560, height=340, title=f"{title} against recall")
