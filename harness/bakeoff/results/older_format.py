"""Results of the first format, whose verdict was sentences until `restate` recomputes it."""

from __future__ import annotations

from typing import Any

import msgspec

from bakeoff.core.facts import quote
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
    pairs: list[dict[str, Any]]
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
        row["warnings"] = _quote(row.get("warnings", []))
        if isinstance(reason := row.get("not_run"), str):
            row["not_run"] = {"kind": "quoted", "error": "", "text": reason}
        if row.get("latency"):
            row["latency"]["doubts"] = _quote(row["latency"].get("doubts", []))
    content["warnings"] = _quote(content.get("warnings", []))
    tested = {measure for row in older.rows for measure in row.ties}
    content["diagnostic"] = [measure for measure in older.matrix_measures if tested and measure not in tested]
    content["sections"] = [
        _quote_section(section) for section in content.get("sections", []) if section["title"] != TABLE_OF_CHANCES
    ]
    content["verdict"] = msgspec.to_builtins(_as_stored(older.verdict))
    return msgspec.convert({**content, "format": 1}, Summary)


def _quote(texts: list[str]) -> list[Any]:
    return [msgspec.to_builtins(quote(text)) for text in texts]


def _quote_section(section: dict[str, Any]) -> dict[str, Any]:
    return {
        **section,
        "title": msgspec.to_builtins(quote(section["title"])),
        "head": [{"head": head} for head in section.get("head", [])],
        "notes": _quote(section.get("notes", [])),
    }


def _as_stored(verdict: _Verdict) -> Verdict:
    advice = [f"{choice.use}: {choice.label or 'none'}. {choice.why}" for choice in verdict.recommendations]
    return Verdict(
        measure=verdict.measure,
        leader=verdict.best,
        best_set=verdict.tie_group,
        situation="older format",
        action="none",
        take=None,
        pairs=[
            msgspec.convert({**pair, "doubt": quote(pair["doubt"]) if pair.get("doubt") else None}, PairedDifference)
            for pair in verdict.pairs
        ],
        agreement=verdict.agreement,
        turning=verdict.turning,
        equivalent_within=verdict.equivalent_within,
        sentences=[*verdict.sentences, *advice],
    )
