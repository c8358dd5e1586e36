"""A result's summary in today's format, recomputed from its figures if necessary."""

from __future__ import annotations

from pathlib import Path

from bakeoff.core.paths import is_draft
from bakeoff.results.schema import DETAILED, Summary, read_summary


def current_summary(folder: Path, *, equivalent_within: float | None = None, baseline: str = "") -> Summary:
    """The summary with a verdict of today's format; the stored one if its figures are missing."""
    if is_draft(folder):
        return _draft_summary(folder, equivalent_within, baseline)
    summary = read_summary(folder)
    again = equivalent_within is not None or baseline
    if not again and (summary.verdict.situation != "older format" or not (folder / DETAILED).is_file()):
        return summary
    from bakeoff.results.restate import restate  # not above: a stored verdict is shown without it
    from bakeoff.results.result import load

    result = load(folder)
    return restate(result, equivalent_within=equivalent_within, baseline=baseline) if again else result.summary


def _draft_summary(folder: Path, equivalent_within: float | None, baseline: str) -> Summary:
    """The summary of a draft's complete rows. The draft is not changed."""
    from bakeoff.results.looks import earlier_looks
    from bakeoff.results.restate import restate
    from bakeoff.results.result import Result
    from bakeoff.results.summary import all_scores, detail, summarise
    from bakeoff.running.runner import finish

    outcome = finish(folder)
    try:
        looks = earlier_looks(outcome, folder.parent)
        result = Result(folder.name, summarise(outcome, looks=looks), detail(outcome, looks), all_scores(outcome))
    finally:
        if outcome.draft:
            outcome.draft.close()
    again = equivalent_within is not None or baseline
    return restate(result, equivalent_within=equivalent_within, baseline=baseline) if again else result.summary
