"""The frame of all report pages: one self-contained file with a policy that forbids network access."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bakeoff.report.charts import MISSING, Chart, available, bundle, css

_HERE = Path(__file__).parent
_STATIC = _HERE / "static"
STYLE = _STATIC / "page.css"
MARKS = _STATIC / "marks.js"  # marks a query's words, on every page that shows documents
SCRIPTS = ("common.js", "marks.js", "limits.js", "matrix.js", "charts.js", "queries.js", "exports.js", "start.js")


@cache
def environment(package: Path = _HERE) -> Environment:
    """The template environment of a package, which can extend the templates here."""
    templates = Environment(
        loader=FileSystemLoader([package / "templates", _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["percent"] = lambda share: f"{share:.1%}"
    return templates


def style(*files: Path) -> Markup:
    """The palette, the shared rules, and the page's own rules."""
    return Markup(css() + "".join(file.read_text(encoding="utf-8") for file in (_STATIC / "base.css", *files)))


def embedded(content: Any) -> Markup:
    """JSON for a script element, escaped so that it can't end the element or begin a comment."""
    text = msgspec.json.encode(content).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@dataclass(frozen=True, slots=True)
class Head:
    """A column heading of a plain table. Text is left-aligned, figures right-aligned."""

    name: str
    is_text: bool = False


def document(
    template: str, content: Mapping[str, Any], data: Any, charts: Sequence[Chart], package: Path = _HERE
) -> str:
    """Renders a page. Only its own scripts may run, since an injected one has the wrong hash."""
    scripts = ["".join((_STATIC / name).read_text(encoding="utf-8") for name in SCRIPTS)]
    specs = {name: spec for chart in charts for name, spec in chart.specs.items()}
    if specs:
        scripts.insert(0, bundle().replace("</script", "<\\/script"))
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return environment(package).get_template(template).render(
        **content,
        charts=charts,
        missing="" if available() else MISSING,
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}",
        style=style(STYLE),
        data=embedded(data),
        specs=embedded(specs),
        scripts=[Markup(script) for script in scripts],
    )  # fmt: skip
