"""Shared parts of all charts: colours, shapes, page specifications, pictures, and Vega.

The page and the pictures share one palette: CSS names for light and dark mode, and their light values.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from bakeoff.core.drawing import DrawingFailed, draw, vega_bundle
from bakeoff.core.files import write_atomic
from bakeoff.results.schema import Summary

if TYPE_CHECKING:
    import altair as alt

    Panel = alt.Chart | alt.LayerChart | alt.FacetChart

LIGHT = {
    "page": "#fbfbfa", "surface": "#ffffff", "ink": "#1c2127", "muted": "#59626d", "line": "#e2e5e8",
    "accent": "#0b5cad", "tint": "#e9f1fa", "tie": "#7fb0e0", "warn": "#845400", "rest": "#a4abb3",
    "c0": "#0072b2", "c1": "#d55e00", "c2": "#009e73", "c3": "#cc79a7", "c4": "#56b4e9", "c5": "#e69f00",
    "c6": "#000000",
}  # fmt: skip
DARK = {
    "page": "#131619", "surface": "#1a1e22", "ink": "#e7eaed", "muted": "#a3acb6", "line": "#30363d",
    "accent": "#84b8f1", "tint": "#1b2a3a", "tie": "#456f9c", "warn": "#e2b560", "rest": "#68717b",
    "c0": "#0072b2", "c1": "#d55e00", "c2": "#009e73", "c3": "#cc79a7", "c4": "#56b4e9", "c5": "#e69f00",
    "c6": "#f0e442",
}  # fmt: skip
HUES = 7  # Okabe and Ito's colour-blind-safe palette; the eighth is the other scheme's


def css() -> str:
    """The custom properties of both schemes; print is always light."""
    light = "".join(f"--{name}:{value};" for name, value in LIGHT.items())
    dark = "".join(f"--{name}:{value};" for name, value in DARK.items())
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{color-scheme:dark;{dark}}}}}"
    )


def var(name: str) -> str:
    """A colour by name, resolved by the browser, or by `resolved` for pictures."""
    return f"var(--{name})"


def resolved(spec: Any) -> Any:
    """The chart with light colours in place of names."""
    if isinstance(spec, dict):
        return {key: resolved(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [resolved(value) for value in spec]
    if isinstance(spec, str) and spec.startswith("var(--"):
        return LIGHT.get(spec[6:-1], spec)
    return spec


def chart_config(*, legend: bool) -> dict[str, Any]:
    """Quiet axes, no frame; the page has one legend in HTML, a picture its own."""
    return {
        "background": "transparent" if not legend else LIGHT["surface"],
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif",
        "view": {"stroke": None},
        "axis": {
            "domainColor": var("line"), "tickColor": var("line"), "gridColor": var("line"), "gridOpacity": 0.8,
            "labelColor": var("muted"), "titleColor": var("muted"), "labelFontSize": 11, "titleFontSize": 11,
            "titleFontWeight": "normal", "titlePadding": 8, "labelPadding": 5, "tickSize": 4, "domain": False,
        },
        "title": {"color": var("ink"), "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
        "legend": {"labelColor": var("muted"), "titleColor": var("muted"), "orient": "bottom", "disable": not legend,
                   "columns": 6, "symbolOpacity": 1, "labelLimit": 220, "title": None},
        "text": {"color": var("ink"), "fontSize": 11},
    }  # fmt: skip


# Characters that XML 1.0 forbids. The picture library aborts the process on one of these.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_ENDS = re.compile("[\t\n\r\x0b\x0c\x85\u2028\u2029]+")


def xml_text(text: str) -> str:
    """Replaces characters that XML forbids."""
    return _FORBIDDEN.sub("\ufffd", text)


def chart_values(content: Any) -> Any:
    """The specification with every text on one line and safe for SVG."""
    if isinstance(content, str):
        return xml_text(_LINE_ENDS.sub(" ", content))
    if isinstance(content, dict):
        return {chart_values(key): chart_values(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [chart_values(value) for value in content]
    return content


log = logging.getLogger(__name__)
MISSING = "Charts need two more packages: pip install 'bakeoff[charts]', then bakeoff report on this result."
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
PICTURE_WIDTH, PANEL_WIDTH = 720, 340


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart and its place on the page; a chart for slides is only a picture."""

    key: str
    title: str
    caption: str
    panels: Sequence[Panel] = ()
    legend: bool = True
    place: Literal["why", "method", "slides"] = "method"
    picture_title: str = ""  # for pictures, which have no lists to choose from
    specs: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # by a unique name
    failure: str = ""


def guarded(key: str, title: str, build: Callable[[], Chart | None]) -> list[Chart]:
    """The chart, if there is something to draw. A failure becomes a message in its place."""
    try:
        chart = build()
        if chart is None:
            return []
        if chart.place == "slides":
            return [replace(chart, specs={key: _picture(chart)})]
        specs = {f"{key}-{at}": specification(panel, chart) for at, panel in enumerate(chart.panels)}
        return [replace(chart, specs=specs)]
    except Exception as error:
        log.debug("the chart %s failed", key, exc_info=True)
        return [
            Chart(key, title, "", failure=f"The chart {title!r} could not be drawn: {type(error).__name__}: {error}")
        ]


def available() -> bool:
    """Whether the extra is installed."""
    return all(find_spec(name) for name in ("altair", "vl_convert"))


def specification(panel: Panel, chart: Chart) -> dict[str, Any]:
    """A panel for the page: full width, the page's palette, with a description for screen readers."""
    spec = _plain(panel.properties(width="container", autosize={"type": "fit-x", "contains": "padding"}), legend=False)
    part = spec.get("title")
    named = f"{chart.title}, {part}" if isinstance(part, str) else chart.title
    return spec | {"description": chart_values(f"{named}. {chart.caption}")}


def pictures(charts: Sequence[Chart]) -> tuple[dict[str, bytes], list[str]]:
    """Writes `charts/<key>.png` and `.svg` of every chart with panels. Returns a sentence for each failure."""
    specs: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    for chart in charts:
        if chart.panels:
            try:
                specs[chart.key] = _picture(chart)
            except Exception as error:
                log.debug("the picture %s failed", chart.key, exc_info=True)
                failed[chart.key] = f"{type(error).__name__}: {error}"
    files: dict[str, bytes] = {}
    for key, drawn in zip(specs, draw([*specs.values()]), strict=True):
        if isinstance(drawn, DrawingFailed):
            failed[key] = str(drawn)
        else:
            files |= {f"charts/{key}.svg": drawn.svg, f"charts/{key}.png": drawn.png}
    titles = {chart.key: chart.title for chart in charts}
    return files, [f"The picture of {titles[key]!r} could not be drawn: {why}" for key, why in failed.items()]


def _picture(chart: Chart) -> dict[str, Any]:
    """Draws a chart with the light palette and a legend."""
    import altair as alt

    whole: alt.TopLevelMixin
    title = chart.picture_title or chart.title
    if len(chart.panels) == 1:
        whole = chart.panels[0].properties(width=PICTURE_WIDTH, title=title)
    else:
        sized = [panel.properties(width=PANEL_WIDTH) for panel in chart.panels]
        whole = alt.concat(*sized, columns=2).properties(title=title)
    spec: dict[str, Any] = resolved(_plain(whole, legend=chart.legend) | {"padding": 16})
    return spec


def bundle() -> str:
    """Vega as one script. Bundling takes seconds, so it is cached per version of vl-convert."""
    from bakeoff_providers.weights import home

    kept = home() / "vega" / f"bundle-{version('vl-convert-python')}.js"
    if not kept.is_file():
        write_atomic(kept, vega_bundle("window.vegaEmbed = vegaEmbed;"))
    return kept.read_text(encoding="utf-8")


def _plain(chart: alt.TopLevelMixin, *, legend: bool) -> dict[str, Any]:
    import altair as alt

    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart_values(chart.to_dict(validate=False))
    config = chart_config(legend=legend)
    return spec | {"config": config, "background": config["background"]}


def hues(names: Iterable[str]) -> dict[str, str]:
    """A colour for each of the first seven names; the others are grey, since repeated colours would mislead."""
    return {name: f"c{place}" if place < HUES else "rest" for place, name in enumerate(dict.fromkeys(names))}


def colour_of(palette: Mapping[str, str]) -> alt.Color:
    """The encoding of the field `model`."""
    import altair as alt

    return alt.Color(
        "model:N", scale=alt.Scale(domain=list(palette), range=[var(name) for name in palette.values()]), title=None
    )


def shapes(summary: Summary) -> dict[str, str]:
    """One shape per store; the same for all if there are more stores than shapes."""
    stores = dict.fromkeys(row.store or "none" for row in summary.ran)
    return {store: SHAPES[place if len(stores) <= len(SHAPES) else 0] for place, store in enumerate(stores)}


def shape_of(summary: Summary) -> alt.Shape:
    """The encoding of the field `store`."""
    import altair as alt

    known = shapes(summary)
    return alt.Shape("store:N", scale=alt.Scale(domain=list(known), range=list(known.values())), title=None)


def inline(values: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Records embedded in the specification."""
    import altair as alt

    return alt.InlineData(values=[dict(value) for value in values])


def few_ticks(scale: str = "log") -> alt.Axis:
    """An axis with plain figures. A log axis thins its labels; a symlog axis would print powers."""
    import altair as alt

    if scale == "log":
        return alt.Axis(tickCount=4, grid=False, ticks=False, labelOverlap=True, format="~g")
    return alt.Axis(tickCount=4, grid=False, ticks=False, labelOverlap=True, labelExpr="format(datum.value, '~g')")
