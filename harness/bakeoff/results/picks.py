"""Picks and their price: rows by score, speed and cost, and the best within a user's limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from bakeoff.results.schema import Latency, Pick, Row, Standing, Verdict

MEGABYTE = 1e6
MOST_PICKS = 3
TIMES = 2.0  # how much faster or cheaper a pick has to be


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """A user's limits; None is no limit."""

    p50_ms: float | None = None
    p95_ms: float | None = None
    usd_per_million: float | None = None
    usd_per_thousand_queries: float | None = None
    index_mb: float | None = None
    offline: bool = False


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The best within the limits, every row within them, and the rows whose limited latency is not reliably known."""

    pick: Pick | None
    feasible: list[str]
    ran: int
    untimed: dict[Literal["p50", "p95"], list[str]] = {}


def timed_now(row: Row) -> Latency | None:
    """A row's latency, if all of it was timed in this run. Other timings are not comparable."""
    return row.latency if row.latency and row.latency.kept is None else None


def p50(row: Row) -> float | None:
    """Median latency per query in milliseconds."""
    return latency.total.p50 if (latency := timed_now(row)) else None


def p95(row: Row) -> float | None:
    """95th percentile of latency per query in milliseconds."""
    return latency.total.p95 if (latency := timed_now(row)) else None


def reliable_p50(row: Row) -> float | None:
    """The median, if the row's timing is reliable."""
    return p50(row) if has_reliable_times(row) else None


def has_reliable_times(row: Row) -> bool:
    """Whether the row's timing is reliable. Too few samples for a p95 do not affect the p50."""
    doubts = row.latency.doubts if row.latency else ()
    return all(doubt.id == "few_samples" for doubt in doubts)


def price(row: Row) -> float | None:
    """Dollars for a million documents."""
    return row.cost.usd_per_million_documents if row.cost else None


def query_price(row: Row) -> float | None:
    """Dollars for a thousand queries: their embedding, and a second stage."""
    return row.cost.usd_per_thousand_queries if row.cost else None


def index_mb(row: Row) -> float | None:
    """Megabytes of the index."""
    return None if row.index_bytes is None else row.index_bytes / MEGABYTE


def is_within(row: Row, limits: Limits) -> bool:
    """Whether a row is within every limit. Unknown or unreliable figures are not."""
    if not row.ran or (limits.offline and not row.local):
        return False
    bounds = (
        (_known(p50(row), row), limits.p50_ms),
        (_known(p95(row), row), limits.p95_ms),
        (price(row), limits.usd_per_million),
        (query_price(row), limits.usd_per_thousand_queries),
        (index_mb(row), limits.index_mb),
    )
    return all(limit is None or (figure is not None and figure <= limit) for figure, limit in bounds)


def _known(time: float | None, row: Row) -> float | None:
    return time if has_reliable_times(row) else None


def choose(rows: Sequence[Row], verdict: Verdict, limits: Limits) -> Choice:
    """The best mean within the limits; ties in the order of the line-up, as in the verdict."""
    ran = [row for row in rows if row.ran]
    feasible = [row for row in ran if is_within(row, limits)]
    candidates = [row for row in feasible if is_advisable(row, verdict)]
    best = next((row for row in ran if row.label == verdict.take), None)
    untimed: dict[Literal["p50", "p95"], list[str]] = {}
    wanted = [row for row in ran if row.local or not limits.offline]
    if limits.p50_ms is not None:
        untimed["p50"] = [row.label for row in wanted if _known(p50(row), row) is None]
    if limits.p95_ms is not None:
        untimed["p95"] = [row.label for row in wanted if _known(p95(row), row) is None]
    pick = None
    if candidates:
        chosen = _highest(candidates, verdict.measure)
        pick = _pick("within limits", chosen, best or chosen, verdict.standings)
    return Choice(pick=pick, feasible=[row.label for row in feasible], ran=len(ran), untimed=untimed)


def is_advisable(row: Row, verdict: Verdict) -> bool:
    """Whether a row may be recommended: no baseline, and better than a random order."""
    standing = verdict.standings.get(row.label)
    return not row.baseline and standing is not None and standing.beats_random is not False


def quickest(rows: Sequence[Row]) -> Row | None:
    """The fastest of these; None if one of the timings is unreliable."""
    timed = [(figure, row) for row in rows if (figure := reliable_p50(row)) is not None]
    return min(timed, key=lambda pair: pair[0])[1] if len(timed) == len(rows) and timed else None


def picks_of(rows: Sequence[Row], take: str | None, standings: Mapping[str, Standing], measure: str) -> list[Pick]:
    """Picks: the best row, an equivalent one that is faster or cheaper, and faster rows of lower quality."""
    best = next((row for row in rows if row.label == take), None)
    if best is None:
        return []
    alike = standings[best.label].alike or best.label
    others = [row for row in rows if (standings[row.label].alike or row.label) != alike]
    timed = {row.label: figure for row in others if (figure := reliable_p50(row)) is not None}
    mine = reliable_p50(best)
    faster = [row for row in others if mine is not None and TIMES * timed.get(row.label, mine) <= mine]
    cheaper = [row for row in others if _is_cheaper(row, best)]
    found: list[tuple[Literal["faster", "fastest", "cheaper", "as good"], Sequence[Row]]] = [
        ("as good", [row for row in others if standings[row.label].equivalent and (row in faster or row in cheaper)]),
        ("cheaper", cheaper),
        ("faster", faster),
        ("fastest", [row for row in faster if timed[row.label] <= TIMES * min(timed.values())]),
    ]
    picks = [_pick("best", best, best, standings)]
    for use, candidates in found:
        if candidates:
            chosen = _highest(candidates, measure)
            if all(pick.label != chosen.label for pick in picks):
                picks.append(_pick(use, chosen, best, standings))
    return picks[:MOST_PICKS]


def _is_cheaper(row: Row, best: Row) -> bool:
    """At most half the price for documents or queries, and not more for the other."""
    mine, other = (price(best), query_price(best) or 0.0), (price(row), query_price(row) or 0.0)
    if mine[0] is None or other[0] is None:
        return False
    pairs = list(zip(other, mine, strict=True))
    return all((a or 0.0) <= (b or 0.0) for a, b in pairs) and any(b and TIMES * (a or 0.0) <= b for a, b in pairs)


def _pick(
    use: Literal["best", "faster", "fastest", "cheaper", "within limits", "as good"],
    row: Row,
    best: Row,
    standings: Mapping[str, Standing],
) -> Pick:
    standing, mine, other = standings[row.label], reliable_p50(row), reliable_p50(best)
    return Pick(
        use=use,
        label=row.label,
        p50_ms=mine,
        times_faster=other / mine if mine and other and row.label != best.label else None,
        usd_per_million_documents=price(row),
        usd_per_thousand_queries=query_price(row),
        less_least=standing.behind_least,
        less_most=standing.behind_most,
        local=row.local,
    )


def _highest(rows: Sequence[Row], measure: str) -> Row:
    return max(rows, key=lambda row: round(row.measures[measure].mean, 12))
