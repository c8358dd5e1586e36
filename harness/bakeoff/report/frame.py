"""The frame that report pages share: one file, style and scripts inside, and a policy that forbids the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bakeoff.report.charts import MISSING, Chart, available, bundle
from bakeoff.report.templating import embedded, environment, style

_STATIC = Path(__file__).parent / "static"
SCRIPTS = ("common.js", "limits.js", "matrix.js", "charts.js", "queries.js", "start.js")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a plain table's column; texts are set to the left, figures to the right."""

    name: str
    is_text: bool = False


def document(template: str, content: Mapping[str, Any], data: Any, charts: Sequence[Chart]) -> str:
    """A whole page. Only the scripts inside may run: an injected one has the wrong hash."""
    scripts = ["".join((_STATIC / name).read_text(encoding="utf-8") for name in SCRIPTS)]
    specs = [spec for chart in charts for spec in chart.specs]
    if specs:
        scripts.insert(0, bundle().replace("</script", "<\\/script"))
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return environment().get_template(template).render(
        **content,
        charts=charts,
        missing="" if available() else MISSING,
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}",
        style=style(_STATIC / "page.css"),
        data=embedded(data),
        specs=embedded(specs),
        scripts=[Markup(script) for script in scripts],
    )  # fmt: skip
