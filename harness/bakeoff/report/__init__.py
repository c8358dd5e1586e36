"""Reports of a result: made from its two files alone, so they can be made again."""

from __future__ import annotations

from bakeoff.results.schema import Detailed, Summary

PAGE = "evaluation_report.html"


def report_files(summary: Summary, detailed: Detailed, *, pictures: bool = False) -> dict[str, str | bytes]:
    """The page, the exports, and the charts as pictures where they are wanted and can be drawn."""
    from bakeoff.report import charts, plots
    from bakeoff.report.exports import exports
    from bakeoff.report.result_page import page

    made = plots.charts(summary, detailed) if charts.available() else []
    files = {PAGE: page(summary, detailed, made)} | exports(summary)
    return files | (charts.pictures(made) if pictures and made else {})
