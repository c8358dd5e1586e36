"""What to do about a new model, in sentences made from figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from bakeoff.core.figures import PairedDifference
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.production.migrate import Cost, Way
from bakeoff.report.pairs import difference_text
from bakeoff.results.check import Check, Gauge
from bakeoff.statistics.averaging import WEIGHTED, Averaging, PerQuery
from bakeoff.statistics.compare import compare_chosen
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.power import more_queries, queries_needed


def plan(
    ways: Sequence[Way],
    labels: tuple[str, str],
    measure: Measure,
    documents: int,
    averaging: Averaging = PerQuery(),
) -> Check:
    """Every way against what there is, and a recommendation; 1 where the new model is worse.

    Means and tests are per query asked where the task's queries were drawn from a log.
    """
    scores = {way.key: way.scores for way in ways}
    means = {way.key: measure.figure(averaging.mean(way.scores)) for way in ways}
    side = [way.key for way in ways[1:] if way.key != "new"]
    # The switch is the question, and its p is corrected for nothing; Holm is over what is asked beside it.
    compared = partial(averaging.pairs, bounded=measure.bounded)
    primary = compare_chosen(scores, [("new", "old")], compared)
    pairs = [*primary, *compare_chosen(scores, [(key, "old") for key in side], compared)]
    against = {pair.a: pair for pair in pairs}
    queries, weighted = len(ways[0].scores), averaging.weights is not None
    over = f"{measure.label} over {queries} queries{f' ({WEIGHTED})' if weighted else ''}"
    said = [f"{labels[0]} → {labels[1]}: {over}; costs are for {documents} documents."]
    for way in ways:
        gap = ""
        if pair := against.get(way.key):
            name = "p" if way.key == "new" else "p (Holm)"
            gap = f" ({difference_text(pair, measure)}, {name} = {pair.p_holm:.2g})"
        said.append(f"{way.about}: {means[way.key]:.4f}{gap}{_costs(way.cost)}.")
    said += recommendation({way.key: way for way in ways}, means, against, labels, averaging)
    figures = {
        "old": labels[0],
        "new": labels[1],
        "measure": str(measure),
        "queries": queries,
        "weighting": WEIGHTED if weighted else None,
        "ways": {
            way.key: {
                "about": way.about,
                "mean": means[way.key],
                "against_old": msgspec.to_builtins(against[way.key]) if way.key in against else None,
                "tokens": way.cost.tokens,
                "dollars": way.cost.dollars,
                "hours": way.cost.hours,
                "more_bytes": way.cost.bytes,
            }
            for way in ways
        },
    }
    about = "Mean of the measure by way of changing"
    gauges = [Gauge("migrate_score", about, means[way.key], {"way": way.key}) for way in ways]
    worse = against["new"].p_holm <= ALPHA and against["new"].difference < 0
    return Check(command="migrate", worse=worse, sentences=said, figures=figures, gauges=gauges)


def recommendation(
    ways: Mapping[str, Way],
    means: Mapping[str, float],
    against: Mapping[str, PairedDifference],
    labels: tuple[str, str],
    averaging: Averaging,
) -> list[str]:
    """Whether to change at all, then how: what may be served on the way, and what must not."""
    new = against["new"]
    if new.p_holm > ALPHA:
        gaps = averaging.linear(ways["new"].scores - ways["old"].scores)
        needed = queries_needed(new.difference, float(gaps.std(ddof=1))) if len(gaps) > 1 else None
        hint = f"; {more_queries(needed - len(gaps))} would settle it" if needed and needed > len(gaps) else ""
        return [f"Stay with {labels[0]}: this task does not show that {labels[1]} is better or worse{hint}."]
    if new.difference < 0:
        return [f"Stay with {labels[0]}: {labels[1]} is worse on this task."]
    said = [f"Change to {labels[1]}: build its index beside the old one, then switch queries and index together."]
    mixed = [way for key, way in ways.items() if key.startswith("mixed")]
    if mixed:
        worst = min(mixed, key=lambda way: means[way.key])
        said.append(f"Do not fill one index bit by bit: {means[worst.key]:.4f} is met on the way ({worst.about}).")
    else:
        said.append("The dimensions differ, so the vectors can't share an index on the way.")
    halves = [way for key, way in ways.items() if key.startswith("parts")]
    moving = min(halves, key=lambda way: means[way.key])
    said.append(f"If it must go bit by bit, ask both parts: at worst {means[moving.key]:.4f} ({moving.about}).")
    mapped = [way for key, way in ways.items() if key.startswith("mapped")]
    if mapped:
        best = max(mapped, key=lambda way: means[way.key])
        gain = means[best.key] - means["old"]
        verdict = (
            "worth it while the new index is being built"
            if against[best.key].p_holm <= ALPHA and gain > 0
            else "no gain over what there is, so not worth it"
        )
        said.append(f"A map for the meantime ({best.about}): {gain:+.4f} to the old index, {verdict}.")
    gap = means["both"] - means["new"]
    test = averaging.pairs({key: ways[key].scores for key in ("both", "new")})[0]
    if test.p <= ALPHA and gap > 0:
        more = _size(ways["both"].cost.bytes)
        said.append(f"Both indexes fused are better still ({gap:+.4f}), for two searches and {more} more.")
    else:
        said.append(f"Keeping both indexes gains nothing that this task shows ({gap:+.4f} to the new one alone).")
    return said


def _costs(cost: Cost) -> str:
    if not cost.tokens:
        return ""
    parts = [f"{cost.tokens:,.0f} tokens", "no price known" if cost.dollars is None else f"${cost.dollars:,.2f}"]
    parts += [f"{cost.hours:,.1f} hours at the rate limit"] if cost.hours is not None else []
    parts += [f"{_size(cost.bytes)} beside the old index"] if cost.bytes else []
    return f"; {', '.join(parts)}"


def _size(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"
