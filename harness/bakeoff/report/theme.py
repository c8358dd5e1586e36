"""One palette for the page and for the pictures: names that CSS resolves for light and dark, and their light values."""

from __future__ import annotations

from typing import Any

LIGHT = {
    "page": "#fbfbfa", "surface": "#ffffff", "ink": "#1c2127", "muted": "#59626d", "line": "#e2e5e8",
    "accent": "#1d5c9f", "tint": "#e9f1fa", "warn": "#845400",
    "c0": "#1d5c9f", "c1": "#c1580f", "c2": "#2c7d59", "c3": "#864ba1", "c4": "#b2355b",
    "c5": "#69717c", "c6": "#967410", "c7": "#178191", "c8": "#7b5331", "c9": "#4b57cf",
}  # fmt: skip
DARK = {
    "page": "#131619", "surface": "#1a1e22", "ink": "#e7eaed", "muted": "#a3acb6", "line": "#30363d",
    "accent": "#84b8f1", "tint": "#1b2a3a", "warn": "#e2b560",
    "c0": "#84b8f1", "c1": "#f0a269", "c2": "#72c79f", "c3": "#c99de2", "c4": "#f28dab",
    "c5": "#aab2bc", "c6": "#dabb50", "c7": "#61c9d7", "c8": "#cba37d", "c9": "#9ea8ff",
}  # fmt: skip
SERIES = 10  # colours before they repeat


def css() -> str:
    """The custom properties of both schemes; print is always light."""
    light = "".join(f"--{name}:{value};" for name, value in LIGHT.items())
    dark = "".join(f"--{name}:{value};" for name, value in DARK.items())
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{color-scheme:dark;{dark}}}}}"
    )


def var(name: str) -> str:
    """A colour by name: the browser resolves it, and `resolved` does for a picture."""
    return f"var(--{name})"


def resolved(spec: Any) -> Any:
    """The same chart with the light colours written out."""
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
