"""What every chart shares: colours and shapes, its specification for the page, its pictures, Vega itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bakeoff.core.files import write_atomic
from bakeoff.report.clean import chart_values
from bakeoff.report.matrix import short_name
from bakeoff.report.theme import SERIES, chart_config, resolved, var
from bakeoff.results.schema import Summary

if TYPE_CHECKING:
    import altair as alt

    Panel = alt.Chart | alt.LayerChart | alt.FacetChart

log = logging.getLogger(__name__)
MISSING = "Charts need two more packages: pip install 'bakeoff[charts]', then bakeoff report on this result."
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
PICTURE_WIDTH, PANEL_WIDTH = 720, 340


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure: its panels, or the reason why there are none."""

    key: str
    title: str
    caption: str
    panels: Sequence[Panel] = ()
    absent: str = ""
    legend: bool = True
    specs: Sequence[dict[str, Any]] = ()
    failure: str = ""


def guarded(key: str, title: str, build: Callable[[], Chart]) -> Chart:
    """A chart with its specifications; one that fails says so in its place, and leaves the rest of the page."""
    try:
        chart = build()
        return replace(chart, specs=[specification(panel) for panel in chart.panels])
    except Exception as error:
        log.debug("the chart %s failed", key, exc_info=True)
        failure = f"The chart {title!r} could not be drawn: {type(error).__name__}: {error}"
        return Chart(key, title, "", absent=failure, failure=failure)


def available() -> bool:
    """Whether the extra is installed."""
    return all(find_spec(name) for name in ("altair", "vl_convert"))


def specification(chart: Panel) -> dict[str, Any]:
    """A panel for the page: as wide as its place, coloured by the page's own palette."""
    return _plain(chart.properties(width="container", autosize={"type": "fit-x", "contains": "padding"}), legend=False)


def pictures(charts: Sequence[Chart]) -> tuple[dict[str, bytes], list[str]]:
    """`charts/<key>.png` and `.svg` of every chart that has panels, and a sentence for each that failed."""
    files: dict[str, bytes] = {}
    problems: list[str] = []
    for chart in charts:
        if chart.panels:
            try:
                files |= _picture(chart)
            except Exception as error:
                log.debug("the picture %s failed", chart.key, exc_info=True)
                problems.append(f"The picture of {chart.title!r} could not be drawn: {type(error).__name__}: {error}")
    return files, problems


def _picture(chart: Chart) -> dict[str, bytes]:
    """With the light palette and a legend."""
    import altair as alt
    import vl_convert

    whole: alt.TopLevelMixin
    if len(chart.panels) == 1:
        whole = chart.panels[0].properties(width=PICTURE_WIDTH, title=chart.title)
    else:
        sized = [panel.properties(width=PANEL_WIDTH) for panel in chart.panels]
        whole = alt.concat(*sized, columns=2).properties(title=chart.title)
    drawn = vl_convert.vegalite_to_svg(resolved(_plain(whole, legend=chart.legend) | {"padding": 16}))
    return {
        f"charts/{chart.key}.svg": drawn.encode(),
        f"charts/{chart.key}.png": vl_convert.svg_to_png(drawn, scale=2),
    }


def bundle() -> str:
    """Vega and its parts as one script. Bundling takes seconds, so it is kept for this version of vl-convert."""
    import vl_convert
    from bakeoff_providers.weights import home

    kept = home() / "vega" / f"bundle-{version('vl-convert-python')}.js"
    if not kept.is_file():
        write_atomic(kept, vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return kept.read_text(encoding="utf-8")


def _plain(chart: alt.TopLevelMixin, *, legend: bool) -> dict[str, Any]:
    import altair as alt

    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart_values(chart.to_dict(validate=False))
    config = chart_config(legend=legend)
    return spec | {"config": config, "background": config["background"]}


def colours(summary: Summary) -> dict[str, str]:
    """One colour per model, whatever its store; the same in every chart of the page."""
    names = dict.fromkeys(short_name(row) for row in summary.ran)
    return {name: f"c{place % SERIES}" for place, name in enumerate(names)}


def colour_of(palette: Mapping[str, str]) -> alt.Color:
    """The encoding of the field `model`."""
    import altair as alt

    return alt.Color(
        "model:N", scale=alt.Scale(domain=list(palette), range=[var(name) for name in palette.values()]), title=None
    )


def shapes(summary: Summary) -> dict[str, str]:
    """One shape per store."""
    stores = dict.fromkeys(row.store or "none" for row in summary.ran)
    return {store: SHAPES[place % len(SHAPES)] for place, store in enumerate(stores)}


def shape_of(summary: Summary) -> alt.Shape:
    """The encoding of the field `store`."""
    import altair as alt

    known = shapes(summary)
    return alt.Shape("store:N", scale=alt.Scale(domain=list(known), range=list(known.values())), title=None)


def inline(values: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Records that travel inside the specification."""
    import altair as alt

    return alt.InlineData(values=[dict(value) for value in values])


def few_ticks(scale: str = "log") -> alt.Axis:
    """Plain figures; a log axis leaves out labels by itself, a symlog one would write them as powers."""
    import altair as alt

    if scale == "log":
        return alt.Axis(tickCount=4, grid=False, ticks=False, labelOverlap=True, format="~g")
    return alt.Axis(tickCount=4, grid=False, ticks=False, labelOverlap=True, labelExpr="format(datum.value, '~g')")
