"""The columns of the matrix as values. No report refers to a column by its text or position.

Also a result as lists of flat records, for exports, notebooks and data frames.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bakeoff.core.facts import Failure
from bakeoff.results.picks import index_mb, price, query_price
from bakeoff.results.schema import Detailed, Row, Standing, Summary


class Quantity(StrEnum):
    """A column's quantity, which decides its format, alignment and default sort order."""

    TEXT = "text"
    MEASURE = "measure"
    TIME = "time"
    MONEY = "money"
    SIZE = "size"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `key` identifies it, `name` and `unit` are its heading, `field` is its name in exports."""

    key: str
    name: str
    quantity: Quantity
    value: Callable[[Row], float | None] = lambda _: None
    unit: str = ""
    field: str = ""
    samples: Callable[[Row], int] = lambda _: 0
    decides: bool = False
    ranks: bool = True  # whether better rows can be told by it
    ending: str = ""  # depth of rankings, for a measure without a cut-off

    @property
    def head(self) -> str:
        """Name and unit in one line."""
        return f"{self.name} {self.unit}".rstrip()

    @property
    def is_text(self) -> bool:
        """Whether it holds text, which is left-aligned."""
        return self.quantity is Quantity.TEXT


MODEL = Column("model", "Model", Quantity.TEXT)
STORE = Column("store", "Store", Quantity.TEXT)
EMBED = Column(
    "embed_p50", "embed", Quantity.TIME, unit="p50 ms", field="embed p50 ms",
    value=lambda row: row.latency.embed.p50 if row.latency else None,
    samples=lambda row: row.latency.embed.n if row.latency else 0,
)  # fmt: skip
SEARCH = Column(
    "search_p50", "search", Quantity.TIME, unit="p50 ms", field="search p50 ms",
    value=lambda row: row.latency.search.p50 if row.latency else None,
    samples=lambda row: row.latency.search.n if row.latency else 0,
)  # fmt: skip
RERANK = Column(
    "rerank_p50", "rerank", Quantity.TIME, unit="p50 ms", field="rerank p50 ms",
    value=lambda row: row.latency.rerank.p50 if row.latency and row.latency.rerank else None,
    samples=lambda row: row.latency.rerank.n if row.latency and row.latency.rerank else 0,
)  # fmt: skip
TOTAL = Column(
    "total_p50", "total", Quantity.TIME, unit="p50 ms", field="total p50 ms",
    value=lambda row: row.latency.total.p50 if row.latency else None,
    samples=lambda row: row.latency.total.n if row.latency else 0,
)  # fmt: skip
TOTAL_P95 = Column(
    "total_p95", "total", Quantity.TIME, unit="p95 ms", field="total p95 ms",
    value=lambda row: row.latency.total.p95 if row.latency else None,
    samples=lambda row: row.latency.total.n if row.latency else 0,
)  # fmt: skip
COST = Column(
    "cost", "cost", Quantity.MONEY, field="cost usd", value=lambda row: row.cost.usd if row.cost else None
)  # fmt: skip
PER_MILLION = Column(
    "per_million", "per", Quantity.MONEY, unit="M docs", field="usd per million documents", value=price
)
PER_THOUSAND = Column(
    "per_thousand", "per", Quantity.MONEY, unit="K queries", field="usd per thousand queries", value=query_price
)
INDEX = Column("index", "index", Quantity.SIZE, unit="MB", field="index mb", value=index_mb)


def measure_columns(summary: Summary) -> list[Column]:
    """The measures of the matrix, always with the deciding one."""
    deciding, depth = summary.verdict.measure, int(summary.lineup["depth"])
    cut = depth if depth < summary.task.documents else None
    return [_measure_column(measure, summary, cut) for measure in dict.fromkeys([*summary.matrix_measures, deciding])]


def judged_columns(summary: Summary) -> list[Column]:
    """`judged@k`, if rankings contain ungraded documents."""
    measure = summary.verdict.measure
    if all(row.bounds[measure].judged > 1 - 1e-12 for row in summary.rows if measure in row.bounds):
        return []

    def judged(row: Row) -> float | None:
        return row.bounds[measure].judged if measure in row.bounds else None

    k = measure.rpartition("@")[2] if "@" in measure else 10
    return [Column("judged", "judged", Quantity.SHARE, judged, f"@{k}", f"judged@{k}")]


def _measure_column(measure: str, summary: Summary, cut: int | None) -> Column:
    """`cut` is the depth of rankings, shown in the heading of a measure without a cut-off."""
    label, decides = summary.label(measure), measure == summary.verdict.measure
    ending = f"top {cut}" if cut and "@" not in measure else ""
    name = f"{label} ({ending})" if ending else label

    def mean(row: Row) -> float | None:
        value = row.measures.get(measure)
        return value.mean if value else None

    return Column(
        measure, name, Quantity.MEASURE, mean, "[95%]" if decides else "", measure,
        decides=decides, ending=ending, ranks=measure not in summary.diagnostic,
    )  # fmt: skip


def columns(summary: Summary) -> list[Column]:
    """All columns: contender, quality, latency, cost, size."""
    paid = [PER_THOUSAND] if any(query_price(row) for row in summary.ran) else []
    quality = [*measure_columns(summary), *judged_columns(summary)]
    tail = [TOTAL_P95] if any(map(TOTAL_P95.value, summary.ran)) else []
    return [MODEL, STORE, *quality, *stage_columns(summary), TOTAL, *tail, COST, PER_MILLION, *paid, INDEX]


def stage_columns(summary: Summary) -> list[Column]:
    """The time of each stage, with reranking if a row has it."""
    second = any(row.latency is not None and row.latency.rerank is not None for row in summary.rows)
    return [EMBED, SEARCH, *([RERANK] if second else [])]


Table = list[dict[str, Any]]


def ordered_rows(summary: Summary) -> list[Row]:
    """Contenders by the deciding measure, then baselines, then rows that did not run."""
    ran = sorted(summary.ran, key=lambda row: -round(row.measures[summary.verdict.measure].mean, 12))
    baselines = [row for row in summary.rows if row.row_type == "baseline"]
    return ran + baselines + [row for row in summary.rows if row.not_run is not None]


def matrix_table(summary: Summary) -> Table:
    """One record per row of the matrix, with unrounded figures."""
    measures, stages = measure_columns(summary), stage_columns(summary)
    standings = summary.verdict.standings
    return [_matrix_record(row, standings.get(row.label), measures, stages) for row in ordered_rows(summary)]


def scores_table(detailed: Detailed) -> Table:
    """One record per contender and query with every stored measure; None for missing values."""
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


def _failure_name(failure: Failure) -> str:
    """The ids of what a contender lacks, or its error's type."""
    return " ".join(lack.id for lack in failure.lacks) or failure.error or failure.text


def _matrix_record(row: Row, standing: Standing | None, measures: list[Column], stages: list[Column]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "contender": row.label, "row_type": row.row_type, "provider": row.provider, "model": row.model,
        "store": row.store, "local": row.local, "not_run": row.not_run and _failure_name(row.not_run),
        "standing": standing and standing.mark, "open until graded": standing and standing.open,
    }  # fmt: skip
    for column in measures:
        value = row.measures.get(column.key)
        record[column.field] = column.value(row)
        record[f"{column.field} low"] = value.low if value else None
        record[f"{column.field} high"] = value.high if value else None
    record |= {column.field: column.value(row) for column in (*stages, TOTAL, TOTAL_P95)}
    record["samples"] = TOTAL.samples(row) if row.latency else None
    doubts = row.latency.doubts if row.latency else []
    record["timing doubts"] = "; ".join(doubt.id for doubt in doubts) if row.latency else None
    kept = row.latency.kept if row.latency else None
    record["timed earlier"] = kept and f"{kept.when} on {', '.join(kept.machines)}"
    record |= {column.field: column.value(row) for column in (COST, PER_MILLION, PER_THOUSAND)}
    return record | {"dimensions": row.dimensions, INDEX.field: INDEX.value(row)}
