"""The page that a person sends to their team: verdict, matrix, charts, queries, and how it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bakeoff.core.figures import Section
from bakeoff.lineup.toml import lineup_text
from bakeoff.report import plots
from bakeoff.report.charts import Chart, available, colours, shapes
from bakeoff.report.frame import Head, document
from bakeoff.report.matrix import Bar, keys, matrix, short_name
from bakeoff.report.notes import Note, notes
from bakeoff.report.page_data import LIMITS, payload, shown_contenders
from bakeoff.report.provenance import USE, run_facts, task_facts, use_table
from bakeoff.results.schema import Detailed, Summary


def page(summary: Summary, detailed: Detailed, charts: Sequence[Chart] | None = None) -> str:
    """`evaluation_report.html`, from the two files of a result alone."""
    detailed = shown_contenders(summary, detailed)
    if charts is None:
        charts = plots.charts(summary, detailed) if available() else []
    palette = colours(summary)
    labelled = {row.label: palette[name] for row in summary.rows if (name := short_name(row)) in palette}
    names = [contender.label for contender in detailed.contenders]
    content = {
        "summary": summary,
        "measure": summary.label(summary.verdict.measure),
        "limits": LIMITS,
        "matrix": matrix(summary),
        "notes": [*notes(summary), *_left_out(summary, detailed)],
        "legend": keys(summary),
        "example": Bar(0.62, 0.5, 0.74, 0.2, 1.0, 0.88 if summary.task.targets else None),
        "sections": [_section(section) for section in summary.sections],
        "palette": palette,
        "shapes": shapes(summary),
        "contenders": names,
        "opponents": plots.opponents(summary) if len(names) > 1 else None,
        "task_facts": task_facts(summary, detailed),
        "run_facts": run_facts(summary),
        "use_columns": USE,
        "use_rows": use_table(summary),
        "lineup": lineup_text(summary.lineup),
    }
    return document("result.html", content, payload(summary, detailed) | {"colours": labelled}, charts)


def _left_out(summary: Summary, shown: Detailed) -> list[Note]:
    parts = []
    if len(shown.queries) < summary.task.queries:
        parts.append(f"the first {len(shown.queries):,} of {summary.task.queries:,} queries")
    if len(shown.contenders) < len(summary.ran):
        parts.append(f"the {len(shown.contenders)} best of {len(summary.ran)} contenders")
    text = f"Query by query, this page has {' and '.join(parts)}; detailed_results.json has more."
    return [Note("warning", text)] if parts else []


def _section(section: Section) -> dict[str, Any]:
    """A table of the task's kind: its first column names the row."""
    heads = [Head(name, is_text=place == 0) for place, name in enumerate(section.head)]
    return {"title": section.title, "heads": heads, "rows": section.rows, "notes": section.notes}
