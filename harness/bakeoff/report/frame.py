"""The frame that every page shares: one file, style and scripts inside, and a policy that forbids the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from bakeoff.report import theme
from bakeoff.report.charts import MISSING, Chart, available, bundle, specification
from bakeoff.report.page_data import embedded

_STATIC = Path(__file__).parent / "static"


def document(title: str, body: str, data: Any, charts: Sequence[Chart] = ()) -> str:
    """A whole page. Only the scripts that stand here may run: an injected one has the wrong hash."""
    scripts = [(_STATIC / "page.js").read_text()]
    specs = [specification(panel) for chart in charts for panel in chart.panels]
    if specs:
        scripts.insert(0, bundle().replace("</script", "<\\/script"))
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes} 'unsafe-eval'"
    style = theme.css() + (_STATIC / "page.css").read_text()
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{style}</style></head>\n'
        f"<body>{body}\n"
        f'<script type="application/json" id="data">{embedded(data)}</script>\n'
        f'<script type="application/json" id="specs">{embedded(specs)}</script>\n'
        + "".join(f"<script>{script}</script>\n" for script in scripts)
        + "</body></html>\n"
    )


def figures(charts: Sequence[Chart], extra: dict[str, str] | None = None) -> str:
    """Every chart in its place; `extra` holds controls that stand above one."""
    if not charts:
        return "" if available() else f'<p class="note">{escape(MISSING)}</p>'
    parts, number = [], 0
    for chart in charts:
        inside = f"<h3>{escape(chart.title)}</h3>"
        if chart.panels:
            inside += (extra or {}).get(chart.key, "")
            inside += f'<div class="panels{" several" if len(chart.panels) > 1 else ""}">'
            for _ in chart.panels:
                inside += f'<div class="chart" data-spec="{number}" data-key="{chart.key}"></div>'
                number += 1
            inside += f"</div><figcaption>{escape(chart.caption)}</figcaption>"
        else:
            inside += f'<p class="note">{escape(chart.absent)}</p>'
        parts.append(f'<figure id="chart-{chart.key}">{inside}</figure>')
    return "".join(parts)


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and values."""
    return '<dl class="facts">' + "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in pairs) + "</dl>"


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, label: str) -> str:
    """A table that scrolls inside its own frame where the screen is narrow."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(cells[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells[1:])
        + "</tr>"
        for cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
