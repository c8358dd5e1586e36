"""The charts of a result, from its two files alone: scores against price, cut-offs, categories, queries, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bakeoff.evaluation.measures import MEASURES, Measure
from bakeoff.report.charts import Chart, colour_of, colours, few_ticks, guarded, inline, shape_of, var
from bakeoff.report.groups import name_without_store
from bakeoff.results.columns import PER_MILLION, TOTAL, Column
from bakeoff.results.schema import Detailed, Row, Summary
from bakeoff.statistics.pareto import pareto_front

if TYPE_CHECKING:
    import altair as alt

STAGES = (("Embedding a query", "embed_ns"), ("Searching", "search_ns"), ("Reranking", "rerank_ns"))
DOTS = 60  # quantiles that stand for all samples of a distribution


def latencies(summary: Summary, detailed: Detailed, palette: Mapping[str, str]) -> Chart:
    """Each stage apart: all samples as quantiles, the middle half and the median."""
    import altair as alt

    samples = {contender.label: contender.timing for contender in detailed.contenders}
    models = {row.label: name_without_store(row) for row in summary.rows}
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


NARROW = 520  # pixels below which labels of categories are set at an angle


def charts(summary: Summary, detailed: Detailed) -> list[Chart]:
    """Every chart that this result has figures for."""
    if summary.verdict.leader is None:
        return []
    palette = colours(summary)
    label = summary.label(summary.verdict.measure)
    return [
        guarded("quality-latency", f"{label} against latency", lambda: _against(summary, palette, LATENCY)),
        guarded("quality-cost", f"{label} against cost", lambda: _against(summary, palette, COST)),
        guarded("measures-k", "Measures against k", lambda: _cuts(summary, palette)),
        guarded("categories", f"{label} by category", lambda: _heat(summary, detailed)),
        guarded("differences", "Query by query", lambda: _differences(summary, detailed)),
        guarded("latency", "Latency", lambda: latencies(summary, detailed, palette)),
    ]


def front_of(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Those that nothing beats on both (less is better, more is better), from the least on; of equal ones the first."""
    names = list(points)
    rounded = [((price,), round(quality, 12)) for price, quality in points.values()]
    first = {rounded[place]: names[place] for place in reversed(pareto_front(rounded))}
    return list(first.values())[::-1]


@dataclass(frozen=True, slots=True)
class Price:
    """Something that one wants less of, as the axis of a chart."""

    key: str
    what: str
    column: Column
    axis: str
    scale: Literal["log", "symlog"]
    less: str


LATENCY = Price("quality-latency", "latency", TOTAL, "p50 latency per query, ms (log scale)", "log", "faster")
COST = Price("quality-cost", "cost", PER_MILLION, "$ for a million documents", "symlog", "cheaper")


def _against(summary: Summary, palette: Mapping[str, str], price: Price) -> Chart:
    """The deciding measure against something that one wants less of."""
    import altair as alt

    measure, label = summary.verdict.measure, summary.label(summary.verdict.measure)
    key, what, axis, scale = price.key, price.what, price.axis, price.scale
    title = f"{label} against {what}"
    figures = {row.label: price.column.value(row) for row in summary.ran}
    means = {row.label: row.measures[measure].mean for row in summary.ran}
    known = {name: (value, means[name]) for name, value in figures.items() if value is not None}
    lacking = [name for name in figures if name not in known]
    rest = f" Without a figure: {', '.join(lacking)}." if lacking else ""
    if not known:
        return Chart(key, title, "", absent=f"No contender has a known {what}.{rest}")
    if len({x for x, _ in known.values()}) == 1 and len(known) > 1:
        same = next(iter(known.values()))[0]
        return Chart(key, title, "", absent=f"The {what} of every contender is the same ({same:g}).{rest}")
    kept = [row.label for row in summary.ran if price is LATENCY and row.latency and row.latency.kept]
    front = front_of({name: point for name, point in known.items() if name not in kept})
    values = [
        {
            "contender": row.label, "model": name_without_store(row), "store": row.store or "none",
            "x": known[row.label][0], "y": known[row.label][1],
            "low": row.measures[measure].low, "high": row.measures[measure].high,
            "front": row.label in front, "odd": row.label in front[1::2], "kept": row.label in kept,
        }
        for row in summary.ran if row.label in known
    ]  # fmt: skip
    x = alt.X("x:Q", title=axis, scale=_room_for_labels([x for x, _ in known.values()], scale), axis=few_ticks(scale))
    y = alt.Y("y:Q", title=label, scale=alt.Scale(zero=False, nice=True, padding=14))
    tip = [alt.Tooltip("contender:N"), alt.Tooltip("y:Q", title=label, format=".3f"),
           alt.Tooltip("x:Q", title=axis, format=".4~g")]  # fmt: skip
    base = alt.Chart(inline(values))
    chosen = base.transform_filter("datum.front")
    lift = alt.expr(f"width < {NARROW} && datum.odd ? -22 : -9")  # neighbours would overlap on a phone
    layers = [
        base.mark_rule(opacity=0.35, strokeWidth=1.5).encode(x=x, y=alt.Y("low:Q", title=label), y2="high:Q",
                                                           color=colour_of(palette)),
        chosen.mark_line(interpolate="step-after", strokeDash=[4, 3], color=var("muted"), strokeWidth=1).encode(
            x=x, y=y
        ),
        *(
            base.transform_filter(f"datum.kept == {str(earlier).lower()}").mark_point(
                filled=not earlier, size=90, opacity=1
            ).encode(x=x, y=y, color=colour_of(palette), shape=shape_of(summary), tooltip=tip)
            for earlier in sorted({name in kept for name in known})
        ),
        chosen.mark_text(align="right", dx=-9, dy=lift, color=var("ink"), fontWeight=600).encode(
            x=x, y=y, text="contender:N"
        ),
    ]  # fmt: skip
    hollow = " Hollow points were timed in earlier runs and are not on the front." if kept else ""
    caption = (
        f"Up and to the left is better. The dashed line is the Pareto front: nothing is both better and "
        f"{price.less}. Bars are 95% intervals; the shape is the store.{hollow}{rest}"
    )
    return Chart(key, title, caption, [alt.layer(*layers).properties(height=340)])


def _room_for_labels(figures: Sequence[float], scale: str) -> alt.Scale:
    """Labels stand left of their points, where a Pareto front leaves room: the axis begins early enough for them."""
    import altair as alt

    if scale == "log":
        positive = [figure for figure in figures if figure > 0] or [1.0]
        low, high = np.log10(min(positive)), np.log10(max(positive))
        span = max(high - low, 0.5)
        return alt.Scale(type="log", domain=[float(10 ** (low - 0.32 * span)), float(10 ** (high + 0.06 * span))])
    top = max(figures) or 1.0
    return alt.Scale(
        type="symlog", constant=min((f for f in figures if f > 0), default=1.0), domain=[-top / 4, top * 1.15]
    )


def alike(summary: Summary) -> dict[str, list[Row]]:
    """Contenders that differ in the store alone and score the same are one line in a chart of quality."""
    groups: dict[tuple[str, tuple[float, ...]], list[Row]] = {}
    for row in summary.ran:
        means = tuple(round(value.mean, 9) for value in row.measures.values())
        groups.setdefault((name_without_store(row), means), []).append(row)
    several: dict[str, int] = {}
    for name, _ in groups:
        several[name] = several.get(name, 0) + 1
    return {
        name if several[name] == 1 else ", ".join(row.label for row in rows): rows for (name, _), rows in groups.items()
    }


def _cuts(summary: Summary, palette: Mapping[str, str]) -> Chart:
    """Measures against k, a panel a family, with bands."""
    import altair as alt

    families: dict[str, list[dict[str, Any]]] = {}
    for name, rows in alike(summary).items():
        for spelling, value in rows[0].measures.items():
            measure = Measure.parse(spelling)
            if measure.k is None or measure != Measure.of(measure.name, k=measure.k):
                continue
            families.setdefault(measure.name, []).append(
                {"contender": name, "model": name_without_store(rows[0]), "k": measure.k, "mean": value.mean,
                 "low": value.low, "high": value.high}
            )  # fmt: skip
    panels = []
    for family, values in families.items():
        cuts = sorted({value["k"] for value in values})
        if len(cuts) < 2 or MEASURES.get(family).diagnostic:
            continue
        x = alt.X("k:Q", title="k", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=cuts, grid=False))
        tip = [alt.Tooltip("contender:N"), alt.Tooltip("k:Q"), alt.Tooltip("mean:Q", format=".3f"),
               alt.Tooltip("low:Q", format=".3f"), alt.Tooltip("high:Q", format=".3f")]  # fmt: skip
        y = alt.Y("mean:Q", title=None, scale=alt.Scale(domainMin=0, nice=True), axis=alt.Axis(tickCount=5))
        base = alt.Chart(inline(values), title=f"{MEASURES.get(family).title}@k")
        shared = {"color": colour_of(palette), "detail": "contender:N"}
        panels.append(
            alt.layer(
                base.mark_area(opacity=0.1).encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q", **shared),
                base.mark_line(strokeWidth=2).encode(x=x, y=y, **shared),
                base.mark_point(filled=True, size=36, opacity=1).encode(x=x, y=y, tooltip=tip, **shared),
            ).properties(height=200)
        )
    if not panels:
        return Chart("measures-k", "Measures against k", "", absent="No measure was taken at more than one k.")
    caption = "How each measure moves with the cut-off. Bands are 95% intervals over the queries."
    return Chart("measures-k", "Measures against k", caption, panels)


def _heat(summary: Summary, detailed: Detailed) -> Chart:
    """The deciding measure by category; ink grows with the value, so figures stay readable on it."""
    import altair as alt

    measure, label = summary.verdict.measure, summary.label(summary.verdict.measure)
    title = f"{label} by category"
    counts: dict[str, int] = {}
    for query in detailed.queries.values():
        counts[query.category] = counts.get(query.category, 0) + 1
    categories = [category for category in summary.task.categories if category]
    if not categories:
        return Chart("categories", title, "", absent="The task's queries have no categories.")
    named = {name: rows[0] for name, rows in alike(summary).items()}
    named = dict(sorted(named.items(), key=lambda item: -item[1].measures[measure].mean))
    named |= {row.label: row for row in summary.rows if row.label == "random" and row.row_type == "baseline"}
    heads = {category: f"{category} ({counts.get(category, 0)})" for category in categories}
    values = [
        {"contender": name, "category": heads[category], "value": row.categories[category][measure]}
        for name, row in named.items()
        for category in categories
        if category in row.categories
    ] + [{"contender": name, "category": "all", "value": row.measures[measure].mean} for name, row in named.items()]
    base = alt.Chart(inline(values)).encode(
        x=alt.X("category:N", sort=["all", *heads.values()], title=None,
                scale=alt.Scale(paddingInner=0.04),
                axis=alt.Axis(orient="top", grid=False, ticks=False, labelOverlap=False, labelBaseline="bottom",
                              labelAngle=alt.expr(f"width < {NARROW} ? 38 : 0"),
                              labelAlign=alt.expr(f"width < {NARROW} ? 'right' : 'center'"))),
        y=alt.Y("contender:N", sort=list(named), title=None, scale=alt.Scale(paddingInner=0.08),
                axis=alt.Axis(grid=False, ticks=False, labelLimit=150)),
        tooltip=["contender:N", "category:N", alt.Tooltip("value:Q", title=label, format=".3f")],
    )  # fmt: skip
    shade = alt.Scale(domain=[0, 1], range=[0.0, 0.55])
    chart = alt.layer(
        base.mark_rect(color=var("accent")).encode(fillOpacity=alt.FillOpacity("value:Q", scale=shade, legend=None)),
        base.mark_text(color=var("ink"), fontSize=11).encode(text=alt.Text("value:Q", format=".2f")),
    ).properties(height=30 * len(named))
    caption = "Means over the queries of each category (their number in brackets). Few queries make a mean unsure."
    return Chart("categories", title, caption, [chart], legend=False)


def _differences(summary: Summary, detailed: Detailed) -> Chart:
    """Two contenders query by query; the page's two lists choose which."""
    import altair as alt

    measure, label = summary.verdict.measure, summary.label(summary.verdict.measure)
    title = "Query by query"
    labels = [contender.label for contender in detailed.contenders]
    if len(labels) < 2:
        return Chart("differences", title, "", absent="There is only one contender.")
    first, second = opponents(summary)
    values: list[dict[str, Any]] = []
    for query, info in detailed.queries.items():
        value: dict[str, Any] = {"query": query, "asked": info.text[:100], "category": info.category}
        for place, contender in enumerate(detailed.contenders):
            if query in contender.queries:
                value[f"v{place}"] = round(contender.queries[query].measures.get(measure, 0.0), 4)
        values.append(value)
    a = alt.param(name="a", value=f"v{labels.index(first)}")
    b = alt.param(name="b", value=f"v{labels.index(second)}")
    chart = (
        alt.Chart(inline(values))
        .transform_calculate(difference="datum[a] - datum[b]", va="datum[a]", vb="datum[b]")
        .transform_window(place="row_number()", sort=[alt.SortField("difference", order="descending")])
        .mark_bar(cornerRadius=1)
        .encode(
            x=alt.X("place:O", title="queries, by difference",
                    axis=alt.Axis(labels=False, ticks=False, grid=False), scale=alt.Scale(paddingInner=0.25)),
            y=alt.Y("difference:Q", title=f"{label}: first minus second",
                    scale=alt.Scale(domainMin=-1, domainMax=1), axis=alt.Axis(tickCount=5, format=".1~f")),
            color=alt.condition("datum.difference >= 0", alt.value(var("c0")), alt.value(var("c1"))),
            tooltip=["query:N", alt.Tooltip("asked:N", title="asked"), "category:N",
                     alt.Tooltip("va:Q", title="first", format=".3f"),
                     alt.Tooltip("vb:Q", title="second", format=".3f"),
                     alt.Tooltip("difference:Q", format="+.3f")],
        )
        .add_params(a, b)
        .properties(height=240)
    )  # fmt: skip
    caption = (
        f"Each bar is a query: above the line the first of the two is better. In the picture: {first} against {second}."
    )
    return Chart("differences", title, caption, [chart], legend=False)


def opponents(summary: Summary) -> tuple[str, str]:
    """The best, and the next one whose scores are not all the same."""
    measure = summary.verdict.measure
    ran = sorted(summary.ran, key=lambda row: -round(row.measures[measure].mean, 12))
    best = summary.verdict.leader or ran[0].label
    mine = next(row for row in ran if row.label == best).measures[measure].mean
    others = [row for row in ran if row.label != best]
    return best, next((row for row in others if abs(row.measures[measure].mean - mine) > 1e-12), others[0]).label
