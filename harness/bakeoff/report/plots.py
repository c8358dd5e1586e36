"""The charts of a result: scores, cost, cut-offs, categories, queries and latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from bakeoff.evaluation.measures import MEASURES, Measure
from bakeoff.report.charts import HUES, Chart, colour_of, few_ticks, guarded, hues, inline, shape_of, shapes, var
from bakeoff.report.groups import RowGroup, main_groups, name_without_store, shorten
from bakeoff.report.numbers import interval
from bakeoff.report.score_table import LEADS, MAY_BE_BEST, OPEN, Scale, mark
from bakeoff.report.verdict_words import Findings
from bakeoff.report.words import words
from bakeoff.results.columns import PER_MILLION, TOTAL, Column
from bakeoff.results.schema import Detailed, Row, Summary
from bakeoff.statistics.pareto import pareto_front

if TYPE_CHECKING:
    import altair as alt

STAGES = (("Embedding a query", "embed_ns"), ("Searching", "search_ns"), ("Reranking", "rerank_ns"))
DOTS = 60  # quantiles that represent a distribution
NARROW = "containerSize()[0] < 430"  # width of a chart on the page, in pixels, below which labels are short
TWO_LINES = r"split(replace(datum.label, / \((\d+\))$/, '\n($1'), '\n')"  # a category, and how many queries it has
UNRELIABLE = " A ? marks an unreliable timing."


def charts(summary: Summary, detailed: Detailed) -> list[Chart]:
    """All charts for which the result has figures."""
    if summary.verdict.leader is None:
        return []
    found, label = Findings(summary), summary.label(summary.verdict.measure)
    return [
        *guarded("scores", f"{label} with 95% intervals", lambda: _scores(found)),
        *guarded("quality-latency", f"{label} against latency", lambda: _against(found, LATENCY)),
        *guarded("categories", f"{label} by category", lambda: _heat(found, detailed)),
        *guarded("quality-cost", f"{label} against cost", lambda: _against(found, COST)),
        *guarded("measures-k", "Measures against k", lambda: _cuts(found)),
        *guarded("latency", "Latency", lambda: _latencies(found, detailed)),
        *guarded("differences", "Query by query", lambda: _differences(summary, detailed)),
    ]


def palette(found: Findings) -> dict[str, str]:
    """A colour for each of the seven best models, the same in every chart."""
    return hues(name_without_store(group.first) for group in main_groups(found.groups))


def state(group: RowGroup, found: Findings) -> str:
    """How a group is drawn: `best` is filled, `tied` a ring, `worse` grey."""
    sign = mark(group, found)
    if sign == LEADS or found.verdict.leader in {row.label for row in group.rows}:
        return "best"
    return "tied" if sign in (MAY_BE_BEST, OPEN) else "worse"


def _fill() -> alt.Fill:
    import altair as alt

    scale = alt.Scale(domain=["best", "tied", "worse"], range=[var("accent"), var("surface"), var("rest")])
    return alt.Fill("state:N", scale=scale, legend=None)


def _stroke() -> alt.Stroke:
    import altair as alt

    scale = alt.Scale(domain=["best", "tied", "worse"], range=[var("accent"), var("accent"), var("rest")])
    return alt.Stroke("state:N", scale=scale, legend=None)


def _ends(row: Row, measure: str) -> str:
    value = row.measures[measure]
    return "" if value.low is None or value.high is None else interval(value.low, value.high)


def _doubts(row: Row) -> str:
    return "; ".join(words(doubt) for doubt in row.latency.doubts) if row.latency else ""


def _scores(found: Findings) -> Chart | None:
    """A chart for slides: the deciding measure with intervals, one line per group."""
    import altair as alt

    groups, measure = main_groups(found.groups), found.verdict.measure
    scale, label = Scale.over(groups, found), found.summary.label(measure)
    values = [
        {"contender": group.title, "mean": found.mean(group.first), "low": group.first.measures[measure].low,
         "high": group.first.measures[measure].high, "state": state(group, found)}
        for group in groups
    ]  # fmt: skip
    names = alt.Axis(grid=True, ticks=False, labelLimit=260, labelFontSize=15, labelColor=var("ink"))
    y = alt.Y("contender:N", sort=[group.title for group in groups], title=None, axis=names)
    shared = alt.Scale(domain=[scale.low, scale.high], nice=False, zero=False)
    ends = alt.X("low:Q", title=None, scale=shared, axis=alt.Axis(tickCount=6, grid=False, labelFontSize=13))
    x = alt.X("mean:Q", title=None, scale=shared)
    base = alt.Chart(inline(values))
    layers: list[alt.Chart] = []
    if scale.random is not None:
        floor = alt.Chart(inline([{"mean": scale.random, "what": f"random {scale.random:.2f}"}]))
        layers += [
            floor.mark_rule(strokeDash=[4, 3], color=var("muted")).encode(x=x),
            floor.mark_text(align="left", dx=5, dy=-9, color=var("muted"), fontSize=13).encode(
                x=x, y=alt.value(0), text="what:N"
            ),
        ]
    layers += [
        base.mark_rule(strokeWidth=6, opacity=0.35, strokeCap="round").encode(
            x=ends, x2="high:Q", y=y, stroke=_stroke()
        ),
        base.mark_point(size=150, opacity=1, strokeWidth=2.5).encode(x=x, y=y, fill=_fill(), stroke=_stroke()),
        base.mark_text(align="center", dy=-14, fontSize=13, fontWeight=600, color=var("ink")).encode(
            x=x, y=y, text=alt.Text("mean:Q", format=".3f")
        ),
    ]
    caption = "Filled leads, a ring may be best, grey is worse. Bars are 95% intervals."
    chart = alt.layer(*layers).properties(height=44 * len(groups))
    return Chart("scores", f"{label} with 95% intervals", caption, [chart], legend=False, place="slides")


def front_of(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The Pareto front of (lower is better, higher is better) points, lowest first. Equal points count once."""
    names = list(points)
    rounded = [((price,), round(quality, 12)) for price, quality in points.values()]
    first = {rounded[place]: names[place] for place in reversed(pareto_front(rounded))}
    return list(first.values())[::-1]


@dataclass(frozen=True, slots=True)
class Price:
    """A chart axis on which less is better."""

    key: str
    what: str
    column: Column
    axis: str
    scale: Literal["log", "symlog"]
    less: str


LATENCY = Price("quality-latency", "latency", TOTAL, "p50 ms per query, log scale", "log", "faster")
COST = Price("quality-cost", "cost", PER_MILLION, "$ per million documents", "symlog", "cheaper")
HEIGHT = 270


def _against(found: Findings, price: Price) -> Chart | None:
    """The deciding measure against latency or cost; None if either is constant."""
    import altair as alt

    summary, measure = found.summary, found.verdict.measure
    label = summary.label(measure)
    figures = {row.label: price.column.value(row) for row in summary.ran}
    known = {name: (value, found.mean(summary.row(name))) for name, value in figures.items() if value is not None}
    if len({x for x, _ in known.values()}) < 2 or found.compares_stores:
        return None
    lacking = found.names([name for name in figures if name not in known])
    kept = [row.label for row in summary.ran if price is LATENCY and row.latency and row.latency.kept]
    doubted = [row.label for row in summary.ran if price is LATENCY and _doubts(row)]
    front = front_of({name: point for name, point in known.items() if name not in kept})
    x_scale, x_at = _x_scale([x for x, _ in known.values()], price.scale)
    means = [y for _, y in known.values()]
    room = 0.14 * ((max(means) - min(means)) or 0.1)
    low, high = min(means) - room, max(means) + room
    values: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    for group in found.groups:
        rows = sorted((row for row in group.rows if row.label in known), key=lambda row: known[row.label][0])
        for row in rows:
            more = {"interval": _ends(row, measure), "timing": _doubts(row) or "reliable"}
            values.append(
                {"contender": row.label, "group": group.name, "store": row.store or "none", "x": known[row.label][0],
                 "y": known[row.label][1], "state": state(group, found), "front": row.label in front,
                 "kept": row.label in kept, **more}
            )  # fmt: skip
        if rows and group in main_groups(found.groups):
            sign = ("?" if rows[0].label in doubted else "") + ("†" if rows[0].label in kept else "")
            labels.append({"x": known[rows[0].label][0], "y": known[rows[0].label][1],
                           "text": f"{group.title}{' ' if sign else ''}{sign}"})  # fmt: skip
    places = [(x_at(value["x"]), (high - value["y"]) / (high - low)) for value in values]
    for wide, prefix in ((460, ""), (250, "n")):
        points = [(across * wide, down * HEIGHT) for across, down in places]
        anchors = [(x_at(one["x"]) * wide, (high - one["y"]) / (high - low) * HEIGHT) for one in labels]
        for one, spot in zip(labels, _label_spots(anchors, [one["text"] for one in labels], points, wide), strict=True):
            one |= {f"{prefix}dx": spot.dx, f"{prefix}dy": spot.dy, f"{prefix}align": spot.align,
                    f"{prefix}show": int(spot.free)}  # fmt: skip
    x = alt.X(
        "x:Q", title=f"{price.axis}{', unreliable' if doubted else ''}", scale=x_scale, axis=few_ticks(price.scale)
    )
    y = alt.Y("y:Q", title=label, scale=alt.Scale(domain=[low, high], nice=False), axis=alt.Axis(tickCount=5))
    tip = [alt.Tooltip("contender:N"), alt.Tooltip("y:Q", title=label, format=".3f"),
           alt.Tooltip("interval:N", title="95% interval"),
           alt.Tooltip("x:Q", title=price.axis.partition(",")[0], format=".3~g")]  # fmt: skip
    tip += [alt.Tooltip("timing:N")] if price is LATENCY else []
    base = alt.Chart(inline(values))

    def pick(name: str) -> alt.ExprRef:
        return alt.ExprRef(f"{NARROW} ? datum.n{name} : datum.{name}")

    layers = [
        base.transform_filter("datum.front").mark_line(
            interpolate="step-after", strokeDash=[4, 3], color=var("muted"), strokeWidth=1
        ).encode(x=x, y=y),
        base.mark_line(strokeWidth=1.5, opacity=0.5).encode(x=x, y=y, stroke=_stroke(), detail="group:N"),
        base.mark_point(size=90, opacity=1, strokeWidth=2).encode(
            x=x, y=y, fill=_fill(), stroke=_stroke(), shape=shape_of(summary), tooltip=tip
        ),
        alt.Chart(inline(labels)).mark_text(
            align=pick("align"), dx=pick("dx"), dy=pick("dy"), opacity=pick("show"), color=var("ink"), fontWeight=600
        ).encode(x=x, y=y, text="text:N"),
    ]  # fmt: skip
    several = len(set(shapes(summary).values())) > 1
    caption = (
        "Up and to the left is better. Filled leads, a ring may be best, grey is worse. "
        f"Dashed is the Pareto front, beyond which nothing is both better and {price.less}."
        + (" The shape is the store." if several else "")
        + (UNRELIABLE if doubted else "")
        + (" A † was timed in an earlier run and is not on the front." if kept else "")
        + (f" {len(lacking)} without a figure." if lacking else "")
    )
    return Chart(price.key, f"{label} against {price.what}", caption, [alt.layer(*layers).properties(height=HEIGHT)],
                 place="why")  # fmt: skip


def _x_scale(figures: Sequence[float], scale: str) -> tuple[alt.Scale, Callable[[float], float]]:
    """The axis with room for labels at both ends, and a function from a figure to its position (0 to 1)."""
    import altair as alt

    if scale == "log":
        positive = [figure for figure in figures if figure > 0] or [1.0]
        start, end = np.log10(min(positive)), np.log10(max(positive))
        span = max(end - start, 0.5)
        first, last = start - 0.22 * span, end + 0.12 * span
        domain = [float(10**first), float(10**last)]
        return alt.Scale(type="log", domain=domain), lambda x: float((np.log10(max(x, 1e-9)) - first) / (last - first))
    top, constant = max(figures) or 1.0, min((f for f in figures if f > 0), default=1.0)
    ends = np.log1p(top * 1.15 / constant)
    low = -np.log1p(top / 4 / constant)
    return (
        alt.Scale(type="symlog", constant=constant, domain=[-top / 4, top * 1.15]),
        lambda x: float((np.log1p(x / constant) - low) / (ends - low)),
    )


class _Spot(NamedTuple):
    dx: float
    dy: float
    align: str
    free: bool  # of other labels and points


SPOTS = ((-9, 0, "right"), (9, 0, "left"), (0, -13, "center"), (0, 14, "center"), (-7, -11, "right"), (-7, 12, "right"),
         (7, -11, "left"), (7, 12, "left"))  # fmt: skip
LETTER, LINE = 6.6, 13.0  # pixels of a label's letters


def _label_spots(
    anchors: Sequence[tuple[float, float]],
    texts: Sequence[str],
    points: Sequence[tuple[float, float]],
    width: float,
) -> list[_Spot]:
    """Places each label at the first free spot next to its point, best rows first."""
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    spots = []
    for (x, y), text in zip(anchors, texts, strict=True):
        for dx, dy, align in SPOTS:
            wide = LETTER * len(text)
            left = x + dx - {"right": wide, "left": 0.0, "center": wide / 2}[align]
            box = (left, y + dy - LINE / 2, left + wide, y + dy + LINE / 2)
            free = left >= 0 and box[2] <= width and not any(_overlap(box, other) for other in taken)
            if free:
                taken.append(box)
                spots.append(_Spot(dx, dy, align, free=True))
                break
        else:
            spots.append(_Spot(0, 0, "left", free=False))
    return spots


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _cuts(found: Findings) -> Chart | None:
    """Measures against k with bands, one panel per family; at most the seven best groups."""
    import altair as alt

    families: dict[str, list[dict[str, Any]]] = {}
    groups = main_groups(found.groups)
    for group in groups[:HUES]:
        for spelling, value in group.first.measures.items():
            measure = Measure.parse(spelling)
            if measure.k is None or measure != Measure.of(measure.name, k=measure.k):
                continue
            families.setdefault(measure.name, []).append(
                {"contender": group.title, "model": name_without_store(group.first), "k": measure.k,
                 "mean": value.mean, "low": value.low, "high": value.high,
                 "interval": _ends(group.first, spelling)}
            )  # fmt: skip
    panels = []
    for family, values in families.items():
        cuts = sorted({value["k"] for value in values})
        if len(cuts) < 2 or MEASURES.get(family).diagnostic:
            continue
        x = alt.X("k:Q", title="k", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=cuts, grid=False))
        tip = [alt.Tooltip("contender:N"), alt.Tooltip("k:Q"), alt.Tooltip("mean:Q", format=".3f"),
               alt.Tooltip("interval:N", title="95% interval")]  # fmt: skip
        y = alt.Y("mean:Q", title=None, scale=alt.Scale(domainMin=0, nice=True), axis=alt.Axis(tickCount=5))
        base = alt.Chart(inline(values))
        shared = {"color": colour_of(palette(found)), "detail": "contender:N"}
        panels.append(
            alt.layer(
                base.mark_area(opacity=0.1).encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q", **shared),
                base.mark_line(strokeWidth=2).encode(x=x, y=y, **shared),
                base.mark_point(filled=True, size=36, opacity=1).encode(x=x, y=y, tooltip=tip, **shared),
            ).properties(height=200, title=f"{MEASURES.get(family).title}@k")
        )
    if not panels:
        return None
    left = f" Only the {HUES} best of {len(found.groups)} lines." if len(found.groups) > HUES else ""
    return Chart("measures-k", "Measures against k", f"Bands are 95% intervals over the queries.{left}", panels)


def _heat(found: Findings, detailed: Detailed) -> Chart | None:
    """The deciding measure by category; higher values are darker."""
    import altair as alt

    summary, measure = found.summary, found.verdict.measure
    label = summary.label(measure)
    counts: dict[str, int] = {}
    for query in detailed.queries.values():
        counts[query.category] = counts.get(query.category, 0) + 1
    categories = [category for category in summary.task.categories if category]
    if not categories:
        return None
    named = {group.title: group.first for group in main_groups(found.groups)}
    heads = {category: f"{category} ({counts.get(category, 0)})" for category in categories}
    columns = {f"all ({summary.task.queries})": {name: found.mean(row) for name, row in named.items()}} | {
        head: {name: row.categories[category][measure] for name, row in named.items() if category in row.categories}
        for category, head in heads.items()
    }
    values = [
        {
            "contender": name,
            "category": head,
            "value": value,
            "leads": len(named) > 1 and value > max(column.values()) - 1e-9,
        }
        for head, column in columns.items()
        for name, value in column.items()
    ]
    crowded = f"containerSize()[0] < {100 + 5.2 * max(map(len, heads)) * len(columns):.0f}"
    base = alt.Chart(inline(values)).encode(
        x=alt.X("category:N", sort=list(columns), title=None,
                scale=alt.Scale(paddingInner=0.04),
                axis=alt.Axis(orient="top", grid=False, ticks=False, labelOverlap=False, labelBaseline="bottom",
                              labelExpr=f"{crowded} ? datum.label : {TWO_LINES}",
                              labelFontSize=10, labelPadding=alt.ExprRef(f"{crowded} ? 5 : 18"),
                              labelAngle=alt.expr(f"{crowded} ? 38 : 0"),
                              labelAlign=alt.expr(f"{crowded} ? 'right' : 'center'"))),
        y=alt.Y("contender:N", sort=list(named), title=None, scale=alt.Scale(paddingInner=0.08),
                axis=alt.Axis(grid=False, ticks=False, labelLimit=130)),
        tooltip=["contender:N", "category:N", alt.Tooltip("value:Q", title=label, format=".3f")],
    )  # fmt: skip
    shade = alt.Scale(domain=[0, 1], range=[0.0, 0.5])
    chart = alt.layer(
        base.mark_rect(color=var("accent")).encode(fillOpacity=alt.FillOpacity("value:Q", scale=shade, legend=None)),
        base.transform_filter("datum.leads").mark_rect(filled=False, stroke=var("accent"), strokeWidth=1.5),
        base.mark_text(color=var("ink"), fontSize=11, fontWeight=alt.ExprRef("datum.leads ? 700 : 400")).encode(
            text=alt.Text("value:Q", format=".2f")
        ),
    ).properties(height=30 * len(named))
    fewest = min((counts.get(category, 0) for category in categories), default=0)
    hint = f" With {fewest} queries a mean is only a hint." if 1 < fewest < 10 else ""
    outlined = "The highest mean of a category is outlined. The" if len(named) > 1 else "The"
    caption = f"{outlined} number of queries is in brackets.{hint}"
    return Chart("categories", f"{label} by category", caption, [chart], legend=False, place="why")


def _latencies(found: Findings, detailed: Detailed) -> Chart | None:
    """Latency by stage: quantiles, interquartile range and median."""
    import altair as alt

    samples = {contender.label: contender.timing for contender in detailed.contenders}
    rows = [row for group in main_groups(found.groups) for row in group.rows if row.label in samples]
    shown = {row.label: shorten(row.label) + (" ?" if _doubts(row) else "") for row in rows}
    panels = []
    for what, pick in STAGES:
        dots: list[dict[str, Any]] = []
        boxes: list[dict[str, Any]] = []
        for row in rows:
            taken = np.array(getattr(samples[row.label], pick), dtype=float) / 1e6
            if not len(taken):
                continue
            at = np.linspace(0, 1, min(DOTS, len(taken)))
            common = {"contender": shown[row.label], "model": name_without_store(row)}
            dots += [common | {"ms": round(float(value), 4)} for value in np.quantile(taken, at)]
            five, low, middle, high, ninety = np.quantile(taken, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
            boxes.append(common | {"p5": five, "p25": low, "p50": middle, "p75": high, "p95": ninety, "n": len(taken),
                                   "timing": _doubts(row) or "reliable"})  # fmt: skip
        if not boxes:
            continue
        order = [box["contender"] for box in sorted(boxes, key=lambda box: float(box["p50"]))]
        y = alt.Y("contender:N", sort=order, title=None, axis=alt.Axis(grid=True, ticks=False, labelLimit=200))
        axis = "ms (log scale)"
        x = alt.X("p25:Q", title=axis, scale=alt.Scale(type="log", nice=False, padding=8), axis=few_ticks())
        tip = [
            "contender:N",
            *(alt.Tooltip(f"{p}:Q", title=f"{p} ms", format=".3~g") for p in ("p5", "p25", "p50", "p75", "p95")),
            alt.Tooltip("n:Q", title="samples"),
            "timing:N",
        ]
        base = alt.Chart(inline(boxes))
        colour = colour_of(palette(found))
        panels.append(
            alt.layer(
                alt.Chart(inline(dots)).mark_tick(thickness=1, size=10, opacity=0.4).encode(
                    x=alt.X("ms:Q", title=axis), y=y, color=colour),
                base.mark_bar(height=10, opacity=0.55, cornerRadius=2).encode(
                    x=x, x2="p75:Q", y=y, color=colour, tooltip=tip),
                base.mark_tick(thickness=2.5, size=16, color=var("ink")).encode(
                    x=alt.X("p50:Q", title=axis), y=y, tooltip=tip),
            ).properties(height=26 * len(order), title=what)
        )  # fmt: skip
    if not panels:
        return None
    doubt = UNRELIABLE if any(map(_doubts, rows)) else ""
    caption = f"Ticks are quantiles, the bar is the interquartile range, the dark mark the median.{doubt}"
    return Chart("latency", "Latency", caption, panels, legend=False)


def _differences(summary: Summary, detailed: Detailed) -> Chart | None:
    """Two contenders query by query, chosen by the page's two lists."""
    import altair as alt

    measure, label = summary.verdict.measure, summary.label(summary.verdict.measure)
    labels = [contender.label for contender in detailed.contenders]
    if len(labels) < 2:
        return None
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
    caption = "Each bar is a query. Above the line the first of the two is better."
    title = f"{label} query by query: {shorten(first)} minus {shorten(second)}"
    return Chart("differences", "Query by query", caption, [chart], legend=False, picture_title=title)


def opponents(summary: Summary) -> tuple[str, str]:
    """The best contender and the next one with different scores."""
    measure = summary.verdict.measure
    ran = sorted(summary.ran, key=lambda row: -round(row.measures[measure].mean, 12))
    best = summary.verdict.leader or ran[0].label
    mine = next(row for row in ran if row.label == best).measures[measure].mean
    others = [row for row in ran if row.label != best]
    return best, next((row for row in others if abs(row.measures[measure].mean - mine) > 1e-12), others[0]).label
