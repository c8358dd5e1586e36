"""What to choose for which use: limits over the figures of the rows, and sentences that give the reason."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from bakeoff.core.clock import SAMPLES_FOR
from bakeoff.core.printable import counted, dollars, listed
from bakeoff.results.schema import Latency, Recommendation, Row, Verdict
from bakeoff.statistics.ties import separated_from

MEGABYTE = 1e6
MADE_OF_OTHERS = ("fused", "reranked")  # types of rows that embed with the models of other rows
FASTER_FROM = 1.5  # times that differ by less are a tie: a busy core does as much


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a user can't go beyond; None is no limit."""

    p50_ms: float | None = None
    p95_ms: float | None = None
    usd_per_million: float | None = None
    usd_per_thousand_queries: float | None = None
    index_mb: float | None = None
    offline: bool = False


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The best within the limits, everything else that keeps them, and the sentence that says so."""

    label: str | None
    feasible: list[str]
    sentence: str


def timed_now(row: Row) -> Latency | None:
    """A row's latency, where all of it was timed in this run: no other may be compared with it."""
    return row.latency if row.latency and row.latency.kept is None else None


def p50(row: Row) -> float | None:
    """Median milliseconds from question to answer."""
    return latency.total.p50 if (latency := timed_now(row)) else None


def p95(row: Row) -> float | None:
    """Milliseconds from question to answer that 95% of the queries stay below."""
    return latency.total.p95 if (latency := timed_now(row)) else None


def embed_p50(row: Row) -> float | None:
    """Median milliseconds of embedding a query."""
    return latency.embed.p50 if (latency := timed_now(row)) else None


def price(row: Row) -> float | None:
    """Dollars for a million documents."""
    return row.cost.usd_per_million_documents if row.cost else None


def query_price(row: Row) -> float | None:
    """Dollars for a thousand queries: their embedding, and a second stage."""
    return row.cost.usd_per_thousand_queries if row.cost else None


def index_mb(row: Row) -> float | None:
    """Megabytes of the index."""
    return None if row.index_bytes is None else row.index_bytes / MEGABYTE


def keeps(row: Row, limits: Limits) -> bool:
    """Whether a row that ran keeps every limit; an unknown figure keeps none."""
    if not row.ran or (limits.offline and not row.local):
        return False
    bounds = (
        (p50(row), limits.p50_ms),
        (p95(row), limits.p95_ms),
        (price(row), limits.usd_per_million),
        (query_price(row), limits.usd_per_thousand_queries),
        (index_mb(row), limits.index_mb),
    )
    return all(limit is None or (figure is not None and figure <= limit) for figure, limit in bounds)


def choose(rows: Sequence[Row], verdict: Verdict, limits: Limits) -> Choice:
    """The best mean within the limits; equal means keep the order of the line-up, as in the verdict."""
    ran = [row for row in rows if row.ran]
    feasible = [row for row in ran if keeps(row, limits)]
    if verdict.best is None:
        return Choice(label=None, feasible=[row.label for row in feasible], sentence=verdict.sentences[0])
    if not feasible:
        return Choice(label=None, feasible=[], sentence=f"Nothing that ran keeps these limits.{_unknown(ran, limits)}")
    best = _best(feasible, verdict)
    kept = {row.label for row in feasible}
    tied = [label for label in _tied(best.label, verdict) if label in kept]
    value = best.measures[verdict.measure].mean
    sentence = f"{best.label}: {_named(verdict)} {value:.3f}. {len(feasible)} of {len(ran)} contenders keep the limits"
    also = f"; {listed(tied)} can't be told from it." if tied else "."
    return Choice(label=best.label, feasible=[row.label for row in feasible], sentence=sentence + also)


def _unknown(ran: Sequence[Row], limits: Limits) -> str:
    """Whose latency is not known, where it is limited: such a row may well be fast enough."""
    for figure, limit, q in ((p50, limits.p50_ms, 50), (p95, limits.p95_ms, 95)):
        untimed = [row for row in ran if figure(row) is None and (row.local or not limits.offline)]
        if limit is not None and untimed:
            return f" The p{q} of {listed([row.label for row in untimed])} is not known. {no_time(untimed[0], q)}"
    return ""


def recommend(rows: Sequence[Row], verdict: Verdict) -> list[Recommendation]:
    """One choice for each use: quality, latency, cost, no network."""
    ran = [row for row in rows if row.ran]
    if not ran or verdict.best is None:
        return []
    best = next(row for row in ran if row.label == verdict.best)
    return [_quality(best, verdict), _quick(ran, best, verdict), _cheap(ran, verdict), _offline(ran, best, verdict)]


def _quality(best: Row, verdict: Verdict) -> Recommendation:
    others = len(verdict.tie_group) - 1
    shared = f", with {others} more that can't be told from it" if others else ""
    why = f"{_named(verdict)} {best.measures[verdict.measure].mean:.3f}{shared}."
    return Recommendation(use="Best quality", label=best.label, why=why)


def _quick(ran: Sequence[Row], best: Row, verdict: Verdict) -> Recommendation:
    """The limit is the next round figure that the best does not keep: below it, the choice has to change."""
    slowest = p50(best)
    if slowest is None:
        return Recommendation(use="Best under a latency limit", label=None, why=no_time(best))
    limit = round_below(slowest)
    use = f"Best under {limit:g} ms"
    quick = [row for row in ran if keeps(row, Limits(p50_ms=limit)) and FASTER_FROM * (p50(row) or 0.0) < slowest]
    if not quick:
        why = f"Nothing answers faster by more than noise; {best.label} needs {_ms(slowest)} (p50)."
        return Recommendation(use=use, label=None, why=why)
    chosen = _best(quick, verdict)
    value, figure = chosen.measures[verdict.measure].mean, p50(chosen)
    assert figure is not None
    why = f"{_named(verdict)} {value:.3f} in {_ms(figure)} (p50); {best.label} needs {_ms(slowest)}."
    why += timing_doubt(chosen)
    better = [
        row.label
        for row in ran
        if row not in quick and keeps(row, Limits(p50_ms=limit)) and row.measures[verdict.measure].mean > value
    ]
    if better:
        why += f" {listed(better)} would keep the limit, too, but no faster than {best.label} by more than noise."
    return Recommendation(use=use, label=chosen.label, why=why)


def no_time(row: Row, q: int = 50) -> str:
    """Why a row has no p50 or p95 to compare, with the remedy: more rounds alone time no paid model again."""
    total, answers = (row.latency.total.n, row.latency.search.n) if row.latency else (0, 0)
    if not (total or answers):
        return f"The answers of {row.label} come from elsewhere, so there is no latency to compare."
    needed = SAMPLES_FOR[q]
    if row.latency and (kept := row.latency.kept):
        timed = f"{row.label} was timed {kept.when} and is not compared with times of this run"
        return f"{timed}: --time-hosted {needed} times it again, and pays."
    few = f"{row.label} has too few samples for a p{q} ({total}, {needed} are needed)"
    if total >= answers:
        return f"{few}: raise --rounds."
    if total:
        return f"{few}: a paid model is timed when a query is first asked. --time-hosted {needed} asks again, and pays."
    if row.row_type in MADE_OF_OTHERS:
        return f"{row.label} asks rows whose query vectors or scores were there already: no answer was timed whole."
    cached = f"The query vectors of {row.label} came from the cache, so its answers were not timed"
    return f"{cached}: --time-hosted {needed} times them, and pays."


def _cheap(ran: Sequence[Row], verdict: Verdict) -> Recommendation:
    alone = len(verdict.tie_group) == 1
    use = "Cost of the best" if alone else "Cheapest in the tie group"
    priced = [row for row in ran if row.label in verdict.tie_group and price(row) is not None]
    if not priced:
        why = f"No price is known for {'it' if alone else 'any of them'}."
        return Recommendation(use=use, label=None, why=why)
    cost = min(_prices(row) for row in priced)
    equals = [row for row in priced if _prices(row) == cost]
    fastest = min((p50(row) or math.inf for row in equals), default=math.inf)
    as_fast = [row for row in equals if (p50(row) or math.inf) <= FASTER_FROM * fastest]
    chosen = _best(as_fast or equals, verdict)  # rows within the noise of the fastest are as fast
    why = _priced(cost)
    figure = p50(chosen)
    if len(equals) > 1:
        why += f", as {counted(len(equals) - 1, 'other')}"
    if len(equals) > 1 and figure is not None:
        which = "the fastest of these" if figure == fastest else f"within {FASTER_FROM:g}× of the fastest of these"
        why += f"; {which} ({_ms(figure)}, p50).{timing_doubt(chosen)}"
    else:
        why += "."
    if asked := [row for row in priced if _prices(row)[1] < cost[1]]:
        least = min(asked, key=lambda row: _prices(row)[::-1])
        why += f" {least.label} costs less to ask: {_priced(_prices(least))}."
    if unknown := [row.label for row in ran if row.label in verdict.tie_group and price(row) is None]:
        why += f" No price is known for {listed(unknown)}."
    return Recommendation(use=use, label=chosen.label, why=why)


def _prices(row: Row) -> tuple[float, float]:
    """Of a million documents, and of a thousand queries."""
    return price(row) or 0.0, query_price(row) or 0.0


def _priced(prices: tuple[float, float]) -> str:
    """What is paid once, and where queries are paid for, what they cost."""
    of_queries = f" and {dollars(prices[1])} for a thousand queries" if prices[1] else ""
    return f"{dollars(prices[0])} for a million documents{of_queries}"


def _offline(ran: Sequence[Row], best: Row, verdict: Verdict) -> Recommendation:
    local = [row for row in ran if row.local]
    if not local:
        return Recommendation(use="Offline only", label=None, why="Every contender that ran needs the network.")
    chosen = _best(local, verdict)
    if chosen.label == best.label:
        why = "The best needs no network."
    else:
        gap = best.measures[verdict.measure].mean - chosen.measures[verdict.measure].mean
        distance = "can't be told from the best" if chosen.label in verdict.tie_group else f"{gap:.3f} below the best"
        why = f"{_named(verdict)} {chosen.measures[verdict.measure].mean:.3f}, {distance}."
    return Recommendation(use="Offline only", label=chosen.label, why=why)


def _best(rows: Sequence[Row], verdict: Verdict) -> Row:
    return max(rows, key=lambda row: round(row.measures[verdict.measure].mean, 12))


def _tied(label: str, verdict: Verdict) -> list[str]:
    separated = separated_from(label, ((pair.a, pair.b, pair.p_holm) for pair in verdict.pairs))
    others = [pair.b if pair.a == label else pair.a for pair in verdict.pairs if label in (pair.a, pair.b)]
    return [other for other in others if other not in separated]


def _named(verdict: Verdict) -> str:
    from bakeoff.evaluation.measures import Measure  # not above: a result is shown without it

    return Measure.parse(verdict.measure).label


def timing_doubt(row: Row) -> str:
    """A sentence to add where a choice rests on a timing that can't be trusted."""
    return " This timing can't be trusted." if row.latency and row.latency.doubts else ""


def round_below(figure: float) -> float:
    """The largest of 1, 2, 5, 10, 20, 50 … that lies below; the same going down."""
    power = math.floor(math.log10(figure)) if figure > 0 else 0
    steps = [step * 10.0**exponent for exponent in (power - 1, power) for step in (1, 2, 5)]
    return float(f"{max([step for step in steps if step < figure * (1 - 1e-9)], default=steps[0]):g}")


def _ms(figure: float) -> str:
    return f"{figure:.3g} ms"
