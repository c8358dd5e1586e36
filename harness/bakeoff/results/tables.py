"""A result as plain tables, a list of flat records: what exports, notebooks and data frames are made from."""

from __future__ import annotations

from typing import Any

from bakeoff.results.recommend import index_mb
from bakeoff.results.schema import Detailed, Row, Summary

Table = list[dict[str, Any]]


def columns(summary: Summary) -> list[str]:
    """The measures of the matrix; the one that decides is always among them."""
    return list(dict.fromkeys([*summary.matrix_measures, summary.verdict.measure]))


def ordered_rows(summary: Summary) -> list[Row]:
    """Contenders by the deciding measure, then the baselines, then what did not run."""
    ran = sorted(summary.ran, key=lambda row: -round(row.measures[summary.verdict.measure].mean, 12))
    baselines = [row for row in summary.rows if row.kind == "baseline"]
    return ran + baselines + [row for row in summary.rows if row.not_run is not None]


def matrix_table(summary: Summary) -> Table:
    """One record per row of the matrix, with unrounded figures."""
    return [_matrix_record(row, columns(summary)) for row in ordered_rows(summary)]


def scores_table(detailed: Detailed) -> Table:
    """One record per contender and query, with the value of every measure that was stored."""
    return [
        {"contender": contender.label, "query": query, "category": detailed.queries[query].category, **answer.measures}
        for contender in detailed.contenders
        for query, answer in contender.queries.items()
    ]


def _matrix_record(row: Row, measures: list[str]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "contender": row.label, "kind": row.kind, "provider": row.provider, "model": row.model, "store": row.store,
        "local": row.local, "not_run": row.not_run,
    }  # fmt: skip
    for measure in measures:
        value = row.measures.get(measure)
        record[measure] = value.mean if value else None
        record[f"{measure} low"] = value.low if value else None
        record[f"{measure} high"] = value.high if value else None
        record[f"{measure} tied with best"] = row.ties.get(measure)
    latency, cost = row.latency, row.cost
    return record | {
        "embed p50 ms": latency.embed.p50 if latency else None,
        "search p50 ms": latency.search.p50 if latency else None,
        "total p95 ms": latency.total.p95 if latency else None,
        "samples": latency.total.n if latency else None,
        "timing doubts": "; ".join(latency.doubts) if latency else None,
        "cost usd": cost.usd if cost else None,
        "usd per million documents": cost.usd_per_million_documents if cost else None,
        "dimensions": row.dimensions,
        "index mb": index_mb(row),
    }
