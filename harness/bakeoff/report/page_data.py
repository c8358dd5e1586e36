"""What the page's script needs, small: documents and contenders by number, only what can be shown."""

from __future__ import annotations

from typing import Any

import msgspec

from bakeoff.evaluation.measures import Measure
from bakeoff.results.recommend import index_mb, p95, price
from bakeoff.results.schema import Detailed, QueryInfo, Summary
from bakeoff.statistics.constants import ALPHA

SHOWN = 10  # places of each ranking that a query shows
MISSED = 20  # relevant documents whose places are told


def payload(summary: Summary, detailed: Detailed) -> dict[str, Any]:
    """The rows for the limits, and the queries with what each contender returned."""
    measure = Measure.parse(summary.verdict.measure)
    return {
        "measure": measure.label,
        "best": summary.verdict.best,
        "rows": _rows(summary),
        "pairs": _pairs(summary),
        "alpha": ALPHA,
    } | _queries(summary, detailed, measure)


def _rows(summary: Summary) -> list[dict[str, Any]]:
    """Every contender that ran, in the order of the line-up, with the figures that limits are about."""
    return [
        {
            "label": row.label,
            "mean": row.measures[summary.verdict.measure].mean,
            "p95": p95(row),
            "cost": price(row),
            "index": index_mb(row),
            "local": row.local,
        }
        for row in summary.ran
    ]


def _pairs(summary: Summary) -> list[list[Any]]:
    return [
        [pair.a, pair.b, *(_short(value) for value in (pair.difference, pair.low, pair.high, pair.p_holm)),
         pair.wins, pair.ties, pair.losses]
        for pair in summary.verdict.pairs
    ]  # fmt: skip


def _short(value: float) -> float:
    return float(f"{value:.6g}")


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
                "text": info.text,
                "category": info.category,
                "values": [
                    round(answer.measures.get(summary.verdict.measure, 0.0), 4) if answer else 0 for answer in answers
                ],
                "top": [[number(document) for document in answer.ids[:depth]] if answer else [] for answer in answers],
                "grades": [answer.grades[:depth] if answer else [] for answer in answers],
                "wanted": [
                    [number(document), info.grades[document], [found.get(document, 0) for found in places]]
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


def embedded(content: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or begin a comment."""
    text = msgspec.json.encode(content).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
