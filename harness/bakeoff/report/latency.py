"""The chart of latencies: every contender's own samples, each stage apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bakeoff.report.charts import Chart, colour_of, few_ticks, inline
from bakeoff.report.matrix import short_name
from bakeoff.report.theme import var
from bakeoff.results.schema import Detailed, Summary

STAGES = (("Embedding a query", "embed_ns"), ("Searching", "search_ns"), ("Reranking", "rerank_ns"))
DOTS = 60  # quantiles that stand for all samples of a distribution


def latencies(summary: Summary, detailed: Detailed, palette: Mapping[str, str]) -> Chart:
    """Each stage apart: all samples as quantiles, the middle half and the median."""
    import altair as alt

    samples = {contender.label: contender.timing for contender in detailed.contenders}
    models = {row.label: short_name(row) for row in summary.rows}
    title = "Latency"
    panels = []
    for what, pick in STAGES:
        dots: list[dict[str, Any]] = []
        boxes: list[dict[str, Any]] = []
        for label, timing in samples.items():
            taken = np.array(getattr(timing, pick), dtype=float) / 1e6
            if not len(taken):
                continue
            at = np.linspace(0, 1, min(DOTS, len(taken)))
            common = {"contender": label, "model": models[label]}
            dots += [common | {"ms": round(float(value), 4)} for value in np.quantile(taken, at)]
            five, low, middle, high, ninety = np.quantile(taken, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
            boxes.append(common | {"p5": five, "p25": low, "p50": middle, "p75": high, "p95": ninety, "n": len(taken)})
        if not boxes:
            continue
        order = [box["contender"] for box in sorted(boxes, key=lambda box: float(box["p50"]))]
        y = alt.Y("contender:N", sort=order, title=None, axis=alt.Axis(grid=True, ticks=False, labelLimit=150))
        x = alt.X("p25:Q", title="ms (log)", scale=alt.Scale(type="log", nice=False, padding=8), axis=few_ticks())
        tip = [
            "contender:N",
            *(alt.Tooltip(f"{p}:Q", title=f"{p} ms", format=".3~g") for p in ("p5", "p25", "p50", "p75", "p95")),
            "n:Q",
        ]
        base = alt.Chart(inline(boxes), title=what)
        panels.append(
            alt.layer(
                alt.Chart(inline(dots)).mark_tick(thickness=1, size=10, opacity=0.4).encode(
                    x=alt.X("ms:Q", title="ms (log)"), y=y, color=colour_of(palette)),
                base.mark_bar(height=10, opacity=0.55, cornerRadius=2).encode(
                    x=x, x2="p75:Q", y=y, color=colour_of(palette), tooltip=tip),
                base.mark_tick(thickness=2.5, size=16, color=var("ink")).encode(
                    x=alt.X("p50:Q", title="ms (log)"), y=y, tooltip=tip),
            ).properties(height=26 * len(order))
        )  # fmt: skip
    if not panels:
        return Chart("latency", title, "", absent="Nothing was timed.")
    caption = "Every contender's own samples: quantiles as ticks, the middle half as a bar, the median in ink."
    return Chart("latency", title, caption, panels, legend=False)
