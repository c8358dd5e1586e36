"""The page of a sweep, a load test or another sheet, in the theme of results, and its charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bakeoff.extensions.storelab.loadtest import LoadTest
from bakeoff.extensions.storelab.sweep import Sweep
from bakeoff.extensions.storelab.tables import Sheet, doubt_mark
from bakeoff.report.charts import Chart, available, colour_of, few_ticks, guarded, hues, inline, var
from bakeoff.report.frame import Head, document

FEWEST_FOR_A_LINE = 3  # points: a line through two says more than they do
NO_DATA: dict[str, list[Any]] = {"rows": [], "pairs": [], "queries": [], "limits": [], "contenders": []}


def page(sheet: Sheet, charts: Sequence[Chart] = (), palette: Mapping[str, str] | None = None) -> str:
    """One file that needs no network."""
    tables = [
        ([Head(head or "remark", is_text=at not in table.figures) for at, head in enumerate(table.heads)], table.rows)
        for table in sheet.tables
    ]
    content = {"sheet": sheet, "tables": tables, "palette": palette or {}}
    return document("sheet.html", content, NO_DATA, charts, Path(__file__).parent)


def store_colours(sweep: Sweep) -> dict[str, str]:
    """A colour for each of the first seven stores."""
    return hues(point.store for point in sweep.points)


def sweep_charts(sweep: Sweep) -> list[Chart]:
    """Recall against time and against bytes; none without the libraries that draw."""
    if not available():
        return []
    rows = [
        {
            "model": point.store,
            "setting": f"{point.label} {point.setting}".strip(),
            "recall": point.recall,
            "p50": point.latency.p50,
            "megabytes": None if point.index_bytes is None else point.index_bytes / 1e6,
            "fastest": point.fastest,
            "smallest": point.smallest,
        }
        for point in sweep.points
    ]
    mark = doubt_mark(sweep.machine)
    curves = {
        "recall-latency": ("Recall against time", "fastest", "p50", f"search p50, ms (log scale){mark}"),
        "recall-size": ("Recall against size", "smallest", "megabytes", "index, MB (log scale)"),
    }
    return [
        chart
        for key, (title, front, cost, axis) in curves.items()
        for chart in guarded(key, title, partial(_curve, key, title, rows, front, cost, axis, sweep))
    ]


def _curve(
    key: str, title: str, rows: list[dict[str, Any]], front: str, cost: str, axis: str, sweep: Sweep
) -> Chart | None:
    """All settings as points, the front as a line; costs differ by powers of ten, so their axis does too."""
    import altair as alt

    rows = [row for row in rows if row[cost] is not None]
    if not rows:
        return None
    base = alt.Chart(inline(rows)).encode(
        x=alt.X(
            "recall:Q",
            title=f"recall@{sweep.k} against exact search",
            scale=alt.Scale(zero=False),
            axis=alt.Axis(tickCount=6),
        ),
        y=alt.Y(f"{cost}:Q", title=axis, scale=alt.Scale(type="log", nice=False), axis=few_ticks()),
    )
    points = base.mark_point(filled=True, size=60, opacity=0.9).encode(
        color=colour_of(store_colours(sweep)), tooltip=["setting:N", "recall:Q", f"{cost}:Q"]
    )
    line = base.transform_filter(f"datum.{front}").mark_line(color=var("rest"), strokeWidth=1).encode(order="recall:Q")
    joined = sum(row[front] for row in rows) >= FEWEST_FOR_A_LINE
    caption = "Each point is a setting." + (" The line joins those that nothing beats." if joined else "")
    chart = alt.layer(*([line] if joined else []), points).properties(height=320)
    return Chart(key, title, caption, [chart])


def load_charts(load: LoadTest) -> list[Chart]:
    """Throughput against p95 of the closed loops; none where fewer than two have a p95."""
    rows = [
        {"clients": level.clients, "throughput": level.throughput, "p95": level.latency.p95}
        for level in load.levels
        if level.loop == "closed" and level.latency.p95 is not None
    ]
    if not available() or len(rows) < 2:
        return []
    title = "Throughput against latency"
    return guarded("throughput-latency", title, partial(_throughput, title, rows, doubt_mark(load.machine)))


def _throughput(title: str, rows: list[dict[str, Any]], mark: str) -> Chart:
    import altair as alt

    base = alt.Chart(inline(rows)).encode(
        x=alt.X("throughput:Q", title=f"answers per second{mark}"),
        y=alt.Y("p95:Q", title=f"p95, ms{mark}"),
        tooltip=["clients:Q", "throughput:Q", "p95:Q"],
    )
    layers: list[Any] = [base.mark_point(filled=True, size=60, opacity=1, color=var("accent"))]
    layers.append(base.mark_text(dy=-12, color=var("muted")).encode(text="clients:Q"))
    if len(rows) >= FEWEST_FOR_A_LINE:
        layers.insert(0, base.mark_line(color=var("rest"), strokeWidth=1).encode(order="clients:Q"))
    caption = "Closed loops. The figure at a point is its number of clients."
    chart = alt.layer(*layers).properties(height=320)
    return Chart("throughput-latency", title, caption, [chart])
