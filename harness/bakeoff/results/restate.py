"""Recomputes a stored result's verdict from its figures, for another margin or incumbent or an older format."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from bakeoff_providers.errors import InputError
from msgspec.structs import replace

from bakeoff.core.figures import STOP_WITHIN
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.checks import match_label
from bakeoff.results.looks import stored_looks
from bakeoff.results.schema import FORMAT, Summary
from bakeoff.results.verdict import VerdictQuestion, decide

if TYPE_CHECKING:
    from bakeoff.results.result import Result


def restate(result: Result, *, equivalent_within: float | None = None, baseline: str = "") -> Summary:
    """The verdict for another margin or incumbent than the line-up's."""
    summary, before, lineup = result.summary, result.summary.verdict, result.summary.lineup
    if before.leader is None:
        return summary
    asked = Measure.parse(before.measure)
    measures = [Measure.parse(text) for text in dict.fromkeys([*summary.matrix_measures, before.measure])]
    known = {label: standing.beats_random for label, standing in before.standings.items()}
    question = VerdictQuestion(
        measure=asked,
        averaging=result.averaging(int(lineup["seed"])),
        floor=result.floor(before.measure),
        above={label: value for label, value in known.items() if value is not None},
        category_sizes=before.category_sizes
        or Counter(query.category for query in result.detailed.queries.values() if query.category),
        baseline=match_label(baseline, result.names) if baseline else lineup.get("baseline", ""),
        equivalent_within=equivalent_within or lineup.get("equivalent_within"),
        stop_within=lineup.get("stop_within", STOP_WITHIN),
        turning=before.turning,
        overtakes=partial(result.could_overtake, asked),
        looks=stored_looks(before.look, result.detailed),
    )
    scores = {measure: {label: result.values(label, measure) for label in result.labels} for measure in measures}
    return replace(summary, verdict=decide(scores, summary.rows, question), format=FORMAT)


def with_verdict(result: Result) -> Result:
    """A result of the older format with a recomputed verdict, if its figures are complete."""
    try:
        return dataclasses.replace(result, summary=restate(result))
    except InputError:  # only some of its queries were stored
        return result
