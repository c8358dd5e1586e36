"""Results of the first format, which has no number: their verdict is sentences, until `restate` makes it again."""

from __future__ import annotations

from typing import Any

import msgspec

from bakeoff.core.figures import PairedDifference
from bakeoff.results.schema import PossibleWinner, Summary, Verdict

BASELINE_PROVIDER = "fake"
TABLE_OF_CHANCES = "Against the best"


class _Recommendation(msgspec.Struct):
    use: str
    label: str | None
    why: str


class _Verdict(msgspec.Struct):
    measure: str
    best: str | None
    tie_group: list[str]
    pairs: list[PairedDifference]
    sentences: list[str]
    agreement: dict[str, float] = {}
    turning: list[PossibleWinner] = []
    equivalent_within: float | None = None
    recommendations: list[_Recommendation] = []


class _Row(msgspec.Struct):
    ties: dict[str, bool] = {}


class _Summary(msgspec.Struct):
    verdict: _Verdict
    rows: list[_Row]
    matrix_measures: list[str]


def read_older(data: bytes | bytearray) -> Summary:
    """The summary, with its sentences."""
    older = msgspec.json.decode(data, type=_Summary)
    content: dict[str, Any] = msgspec.json.decode(data)
    for row in content["rows"]:
        row["baseline"] = row["row_type"] == "baseline" or row.get("provider") == BASELINE_PROVIDER
    tested = {measure for row in older.rows for measure in row.ties}
    content["diagnostic"] = [measure for measure in older.matrix_measures if tested and measure not in tested]
    content["sections"] = [section for section in content.get("sections", []) if section["title"] != TABLE_OF_CHANCES]
    content["verdict"] = msgspec.to_builtins(_as_stored(older.verdict))
    return msgspec.convert({**content, "format": 1}, Summary)


def _as_stored(verdict: _Verdict) -> Verdict:
    advice = [f"{choice.use}: {choice.label or 'none'}. {choice.why}" for choice in verdict.recommendations]
    return Verdict(
        measure=verdict.measure,
        leader=verdict.best,
        best_set=verdict.tie_group,
        situation="older format",
        action="none",
        take=None,
        pairs=verdict.pairs,
        agreement=verdict.agreement,
        turning=verdict.turning,
        equivalent_within=verdict.equivalent_within,
        sentences=[*verdict.sentences, *advice],
    )
