"""Sample a log's queries in strata of equal traffic, and estimate means per query asked from the sample.

Head, torso and tail each hold a third of the traffic. Within a stratum, queries are drawn at random without
replacement. The mean combines the strata's ratio estimates, weighted by their share of the traffic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.arrays import Values
from bakeoff.core.facts import fact
from bakeoff.core.figures import PairedDifference
from bakeoff.core.files import read_json_lines, write_atomic
from bakeoff.core.hashing import order_key
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.measures.base import figure_of
from bakeoff.results.check import Check, Gauge
from bakeoff.statistics.averaging import PerQueryAsked
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.stratified import Strata, estimate

STRATA = ("head", "torso", "tail")


class SampledQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the sample, in the format of a table task's queries; `weight` is the share of traffic it represents."""

    id: str
    text: str
    category: str
    count: int
    weight: float
    stratum_queries: int


def strata_of(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """Split queries by frequency at one third and two thirds of the traffic."""
    ordered = sorted(counts, key=lambda query: (-counts[query], query))
    before = np.concatenate([[0], np.cumsum([counts[query] for query in ordered])[:-1]]) / sum(counts.values())
    strata: dict[str, list[str]] = {name: [] for name in STRATA}
    for query, reached in zip(ordered, before.tolist(), strict=True):
        strata[STRATA[min(2, int(reached * 3))]].append(query)
    return {name: queries for name, queries in strata.items() if queries}


def draw(counts: Mapping[str, int], size: int, seed: int) -> list[SampledQuery]:
    """Draw about a third from each stratum; places that a small head leaves go to the others."""
    strata = strata_of(counts)
    if size < 2 * len(strata):
        raise InputError(f"{size} queries are too few", place="--size", remedy=f"draw at least {2 * len(strata)}")
    total, left, drawn = sum(counts.values()), size, []
    for place, (name, queries) in enumerate(strata.items()):
        take = min(len(queries), left // (len(strata) - place))
        left -= take
        chosen = sorted(queries, key=lambda query: order_key(seed, query))[:take]
        share = sum(counts[query] for query in queries) / total / sum(counts[query] for query in chosen)
        drawn += [
            SampledQuery(
                id="", text=query, category=name, count=counts[query], weight=counts[query] * share,
                stratum_queries=len(queries),
            )
            for query in chosen
        ]  # fmt: skip
    return [msgspec.structs.replace(query, id=f"log-{number:04d}") for number, query in enumerate(drawn, start=1)]


def strata_arrays(sample: Sequence[SampledQuery]) -> Strata:
    """Weights and sizes of a sample's strata."""
    weights = np.array([query.weight for query in sample])
    return Strata(weights, [query.category for query in sample], [query.stratum_queries for query in sample])


def sample_log(counts: Counter[str], size: int, seed: int, out: Path) -> Check:
    """Draw a sample, write it and describe it."""
    sample = draw(counts, size, seed)
    encoder = msgspec.json.Encoder()
    write_atomic(out, b"".join(encoder.encode(query) + b"\n" for query in sample))
    strata, total = strata_of(counts), sum(counts.values())
    facts = [fact("production.sample", rows=total, queries=len(counts), drawn=len(sample), seed=seed)]
    figures = {}
    for name, queries in strata.items():
        traffic, taken = sum(counts[query] for query in queries), sum(query.category == name for query in sample)
        figures[name] = {"queries": len(queries), "traffic": traffic / total, "drawn": taken}
        facts.append(fact("production.stratum", name=name, **figures[name]))
    facts += [fact("written", file=str(out)), fact("production.grade_sample")]
    gauges = [
        Gauge("log_distinct_queries", "Distinct queries by stratum", float(len(queries)), {"stratum": name})
        for name, queries in strata.items()
    ]
    return Check(command="log sample", worse=False, facts=facts, figures={"strata": figures}, gauges=gauges)


def read_sample(path: Path) -> dict[str, SampledQuery]:
    """Read what `log sample` wrote, by query id."""
    sample: dict[str, SampledQuery] = {}
    for number, query in read_json_lines(path, SampledQuery):
        if query.id in sample:
            raise InputError(f"{query.id!r} is a duplicate", file=path, place=f"line {number}")
        if not 0 < query.weight <= 1:
            raise InputError(f"weight {query.weight} is outside (0, 1]", file=path, place=f"line {number}")
        sample[query.id] = query
    if abs(sum(query.weight for query in sample.values()) - 1) > 1e-6:
        raise InputError("the weights do not sum to 1", file=path, remedy="use the file that `log sample` wrote")
    return sample


def build_matrix(scores: Mapping[str, Values], sample: Sequence[SampledQuery], measure: str) -> Check:
    """Means per query asked, best first, and all pairwise differences with the tests of the matrix."""
    strata, by = strata_arrays(sample), Measure.parse(measure)
    rows = {label: estimate(values, strata) for label, values in scores.items()}
    order = sorted(rows, key=lambda label: -rows[label].mean)
    asked = PerQueryAsked(strata)
    pairs = asked.pairs({label: scores[label] for label in order}, among=order, bounded=by.bounded)
    low, high = asked.intervals(np.stack([scores[label] for label in rows], axis=1), by.bounded)
    facts = [fact("production.weighted_means", measure=measure, queries=len(sample))]
    figures_of = {
        label: {"mean": by.figure(row.mean), "low": figure_of(by, low[at]), "high": figure_of(by, high[at])}
        for at, (label, row) in enumerate(rows.items())
    }
    facts += [
        fact("production.weighted_mean", label=label, **figures_of[label], unweighted=by.aggregate(scores[label]))
        for label in order
    ]
    facts += [
        fact("production.weighted_pair", a=pair.a, b=pair.b, significant=pair.p_holm <= ALPHA,
             **difference_arguments(pair, by), p_holm=pair.p_holm)
        for pair in pairs
    ]  # fmt: skip
    figures = {
        "measure": measure,
        "rows": {label: {**figures_of[label], "p": rows[label].p} for label in order},
        "pairs": [
            {"a": pair.a, "b": pair.b, "mean": pair.difference, "low": pair.low, "high": pair.high, "p": pair.p,
             "p_holm": pair.p_holm}
            for pair in pairs
        ],
    }  # fmt: skip
    gauges = [
        Gauge("log_mean", "Mean per query asked", by.figure(rows[label].mean), {"contender": label, "measure": measure})
        for label in order
    ]
    return Check(command="log matrix", worse=False, facts=facts, figures=figures, gauges=gauges)


def difference_arguments(pair: PairedDifference, measure: Measure) -> dict[str, float | bool | None]:
    """The difference and its interval; `logarithms` if they are of logarithms of the measure's values."""
    logarithms = measure.figure(0.0) != 0.0
    return {"difference": pair.difference, "low": pair.low, "high": pair.high, "logarithms": logarithms}
