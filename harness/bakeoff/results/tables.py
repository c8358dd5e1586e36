"""A result as plain tables, a list of flat records: what exports, notebooks and data frames are made from."""

from __future__ import annotations

from typing import Any

from bakeoff.results.columns import (
    COST,
    INDEX,
    PER_MILLION,
    PER_THOUSAND,
    TOTAL,
    TOTAL_P95,
    Column,
    measure_columns,
    stage_columns,
)
from bakeoff.results.schema import Detailed, Row, Summary

Table = list[dict[str, Any]]


def ordered_rows(summary: Summary) -> list[Row]:
    """Contenders by the deciding measure, then the baselines, then what did not run."""
    ran = sorted(summary.ran, key=lambda row: -round(row.measures[summary.verdict.measure].mean, 12))
    baselines = [row for row in summary.rows if row.row_type == "baseline"]
    return ran + baselines + [row for row in summary.rows if row.not_run is not None]


def matrix_table(summary: Summary) -> Table:
    """One record per row of the matrix, with unrounded figures."""
    measures, stages = measure_columns(summary), stage_columns(summary)
    return [_matrix_record(row, measures, stages) for row in ordered_rows(summary)]


def scores_table(detailed: Detailed) -> Table:
    """One record per contender and query, with the value of every measure that was stored; None where it has none."""
    stored = {name: None for one in detailed.contenders for answer in one.queries.values() for name in answer.measures}
    return [
        {
            "contender": contender.label,
            "query": query,
            "category": detailed.queries[query].category,
            **stored,
            **answer.measures,
        }
        for contender in detailed.contenders
        for query, answer in contender.queries.items()
    ]


def _matrix_record(row: Row, measures: list[Column], stages: list[Column]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "contender": row.label, "row_type": row.row_type, "provider": row.provider, "model": row.model,
        "store": row.store, "local": row.local, "not_run": row.not_run,
    }  # fmt: skip
    for column in measures:
        value = row.measures.get(column.key)
        record[column.field] = column.value(row)
        record[f"{column.field} low"] = value.low if value else None
        record[f"{column.field} high"] = value.high if value else None
        record[f"{column.field} tied with best"] = row.ties.get(column.key)
    record |= {column.field: column.value(row) for column in (*stages, TOTAL, TOTAL_P95)}
    record["samples"] = TOTAL.samples(row) if row.latency else None
    record["timing doubts"] = "; ".join(row.latency.doubts) if row.latency else None
    kept = row.latency.kept if row.latency else None
    record["timed earlier"] = kept and f"{kept.when} on {', '.join(kept.machines)}"
    record |= {column.field: column.value(row) for column in (COST, PER_MILLION, PER_THOUSAND)}
    return record | {"dimensions": row.dimensions, INDEX.field: INDEX.value(row)}
