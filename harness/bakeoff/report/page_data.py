"""What the page's script needs, small: documents and contenders by number, only what can be shown."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import islice
from typing import Any

from msgspec.structs import replace

from bakeoff.evaluation.measures import Measure
from bakeoff.report.verdict_words import no_time, score_and_price
from bakeoff.results.columns import INDEX, PER_MILLION, TOTAL, Column
from bakeoff.results.picks import is_advisable, p50
from bakeoff.results.schema import Detailed, QueryInfo, Summary

SHOWN = 10  # places of each ranking that a query shows
MISSED = 20  # relevant documents whose places are shown
QUERIES = 2_000  # that a page shows one by one
ANSWERS = 20_000  # rankings that a page holds: with more contenders and queries, those of the best contenders


@dataclass(frozen=True, slots=True)
class Limit:
    """A column that a reader can set a limit on, and its unit before or after the field."""

    key: str
    name: str
    column: Column
    before: str = ""
    after: str = ""


LIMITS = (
    Limit("p50", "Latency, p50", dataclasses.replace(TOTAL, value=p50), after="ms"),
    Limit("cost", "Cost, a million documents", PER_MILLION, before="$"),
    Limit("index", "Memory, the index", INDEX, after="MB"),
)


def shown_contenders(summary: Summary, detailed: Detailed) -> Detailed:
    """The queries and contenders that a page can hold: the first queries, the best contenders."""
    if len(detailed.queries) > QUERIES:
        asked = dict(islice(detailed.queries.items(), QUERIES))
        kept = [
            replace(one, queries={query: one.queries[query] for query in asked if query in one.queries})
            for one in detailed.contenders
        ]
        detailed = replace(detailed, queries=asked, contenders=kept)
    most = max(2, ANSWERS // max(len(detailed.queries), 1))
    if len(detailed.contenders) <= most:
        return detailed
    means = {row.label: row.measures[summary.verdict.measure].mean for row in summary.ran}
    best = set(sorted(means, key=lambda label: -means[label])[:most])
    return replace(detailed, contenders=[one for one in detailed.contenders if one.label in best])


def payload(summary: Summary, detailed: Detailed) -> dict[str, Any]:
    """The rows for the limits, and the queries with what each contender returned."""
    measure = Measure.parse(summary.verdict.measure)
    return {
        "measure": measure.label,
        "best": summary.verdict.leader,
        "rows": _rows(summary),
        "pairs": _pairs(summary),
        "limits": [limit.key for limit in LIMITS],
    } | _queries(summary, detailed, measure)


def _rows(summary: Summary) -> list[dict[str, Any]]:
    """Every contender that ran, in the order of the line-up, with the figures that limits are about."""
    return [
        {
            "label": row.label,
            "mean": row.measures[summary.verdict.measure].mean,
            **{limit.key: limit.column.value(row) for limit in LIMITS},
            "local": row.local,
            "advisable": is_advisable(row, summary.verdict),
            "price": score_and_price(summary, row),
            **({"untimed": no_time(row)} if p50(row) is None else {}),
        }
        for row in summary.ran
    ]


def _pairs(summary: Summary) -> list[dict[str, Any]]:
    return [
        {
            "a": pair.a,
            "b": pair.b,
            "difference": _rounded(pair.difference),
            "low": _rounded(pair.low),
            "high": _rounded(pair.high),
            "p": _rounded(pair.p_holm),
            "wins": pair.wins,
            "ties": pair.ties,
            "losses": pair.losses,
        }
        for pair in summary.verdict.pairs
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _queries(summary: Summary, detailed: Detailed, measure: Measure) -> dict[str, Any]:
    depth = min(measure.k or SHOWN, SHOWN)
    numbers: dict[str, int] = {}

    def number(document: str) -> int:
        return numbers.setdefault(document, len(numbers))

    queries = []
    for query, info in detailed.queries.items():
        answers = [contender.queries.get(query) for contender in detailed.contenders]
        wanted = _wanted(info, summary.task.rel)
        places = [
            {document: place for place, document in enumerate(answer.ids, 1)} if answer else {} for answer in answers
        ]
        queries.append(
            {
                "id": query,
                "text": f"{info.text} (as of {info.as_of})" if info.as_of else info.text,
                "category": info.category,
                "values": [
                    round(answer.measures.get(summary.verdict.measure, 0.0), 4) if answer else 0 for answer in answers
                ],
                "top": [[number(document) for document in answer.ids[:depth]] if answer else [] for answer in answers],
                "grades": [answer.grades[:depth] if answer else [] for answer in answers],
                "wanted": [
                    [number(document), info.grades[document], [ranked.get(document, 0) for ranked in places]]
                    for document in wanted[:MISSED]
                ],
                "relevant": len(wanted),
            }
        )
    return {
        "contenders": [contender.label for contender in detailed.contenders],
        "queries": queries,
        "titles": [detailed.titles.get(document) or document for document in numbers],
        "depth": depth,
        "asked": summary.lineup["depth"],
    }


def _wanted(info: QueryInfo, rel: int) -> list[str]:
    """The relevant documents, best grade first."""
    relevant = [document for document, grade in info.grades.items() if grade >= rel]
    return sorted(relevant, key=lambda document: (-info.grades[document], document))
