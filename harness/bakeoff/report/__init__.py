"""Reports of a result, made only from its two files, so they can be rebuilt at any time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bakeoff_providers.errors import BakeoffError

PAGE = "evaluation_report.html"
log = logging.getLogger(__name__)


def render(folder: Path, *, pictures: bool = False, page: Path | None = None, charts: bool = True) -> list[str]:
    """Writes the page, the exports and, if wanted, pictures of the charts into a result's folder.

    Returns a sentence for each file that could not be made; one failing renderer does not stop the others. `page` is
    another path for the page; the other files go into the same folder. Without `charts`, rendering is quick.
    """
    from bakeoff.core.drawing import DrawingFailed
    from bakeoff.core.files import write_atomic
    from bakeoff.report import exports, plots, result_page
    from bakeoff.report.charts import MISSING, available, bundle
    from bakeoff.report.charts import pictures as pictures_of
    from bakeoff.report.page_data import shown_contenders
    from bakeoff.results.current import current_summary
    from bakeoff.results.schema import read_detailed

    summary = current_summary(folder)
    detailed = shown_contenders(summary, read_detailed(folder))
    page = page or folder / PAGE
    drawn = plots.charts(summary, detailed) if charts and available() else []
    problems = [chart.failure for chart in drawn if chart.failure]
    if charts and not available():
        problems.append(MISSING)
    if drawn:
        try:
            bundle()
        except DrawingFailed as error:
            problems.append(f"The page has no charts, because drawing failed: {error}")
            drawn = []
    renderers: dict[str, Callable[[], str | bytes]] = {PAGE: partial(result_page.page, summary, detailed, drawn)}
    renderers |= {name: partial(export, summary) for name, export in exports.EXPORTS.items()}
    if pictures:
        files, failures = pictures_of(drawn)
        problems += failures
        renderers |= {name: partial(bytes, content) for name, content in files.items()}
        if charts and available():
            from bakeoff.tasks.kinds import TASK_KINDS

            renderers |= TASK_KINDS.get(summary.task.kind).pictures(summary.figures)
    for name, make in renderers.items():
        try:
            write_atomic(page if name == PAGE else page.parent / name, make())
        except BakeoffError as error:
            problems.append(f"{name} could not be made: {error}")
        except Exception as error:
            log.debug("%s failed", name, exc_info=True)
            problems.append(f"{name} could not be made: {type(error).__name__}: {error}")
    return problems
