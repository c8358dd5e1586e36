"""A result's summary for a reader: one of an older format, or for another question, is restated from its figures."""

from __future__ import annotations

from pathlib import Path

from bakeoff.results.schema import DETAILED, Summary, read_summary


def current_summary(folder: Path, *, equivalent_within: float | None = None, baseline: str = "") -> Summary:
    """The summary with a verdict of today's format; as it is stored where its figures are gone."""
    summary = read_summary(folder)
    again = equivalent_within is not None or baseline
    if not again and (summary.verdict.situation != "older format" or not (folder / DETAILED).is_file()):
        return summary
    from bakeoff.results.restate import restate  # not above: a stored verdict is shown without it
    from bakeoff.results.result import load

    result = load(folder)
    return restate(result, equivalent_within=equivalent_within, baseline=baseline) if again else result.summary
