"""Outcome → the files of a result: every figure that a report shows is worked out here, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import ModelCard, Role
from numpy.typing import NDArray

from bakeoff.core.clock import doubts, percentiles
from bakeoff.core.machine import Machine
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Document, Task
from bakeoff.embedding.embed import Usage
from bakeoff.embedding.preflight import vector_warnings
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.metrics import Scores
from bakeoff.results.schema import (
    ContenderResult,
    Cost,
    Detailed,
    Latency,
    QueryInfo,
    QueryResult,
    Row,
    Summary,
    TaskInfo,
    Value,
)
from bakeoff.results.verdict import decide
from bakeoff.run.runner import Entrant, Outcome
from bakeoff.statistics.compare import tied_with_best
from bakeoff.statistics.intervals import bca_intervals

TITLE_LENGTH = 90
DETAILED_QUERIES = 10_000  # beyond this a reader needs a program, and the runs hold everything


def summarise(outcome: Outcome) -> Summary:
    """`metrics_summary.json`: the rows of the matrix, the verdict, and how it was measured."""
    lineup, task = outcome.lineup, outcome.task
    shown = tuple(dict.fromkeys([*lineup.measures, lineup.primary]))
    by_measure = {
        measure: {entrant.contender.label: entrant.scores[measure] for entrant in outcome.ran} for measure in shown
    }
    ties = {str(measure): tied_with_best(scores, lineup.seed) for measure, scores in by_measure.items()}
    rows = [_row(entrant, task, outcome.machine, ties, lineup.seed) for entrant in outcome.entrants]
    _share_out_fusions(rows, outcome)
    rows += [_baseline_row(name, scores, task, shown) for name, scores in outcome.baselines.items()]
    return Summary(
        name=lineup.name,
        started=outcome.started.isoformat(timespec="seconds"),
        seconds=round(outcome.seconds, 3),
        lineup=lineup.to_dict(),
        task=TaskInfo(
            name=task.name,
            kind=task.kind,
            fingerprint=task.fingerprint(),
            documents=len(task.documents),
            chunks=outcome.pieces,
            queries=len(task.queries),
            rel=task.rel,
            categories=task.categories,
            targets=dict(task.targets),
            without_relevant=task.without_relevant(),
        ),
        machine=outcome.machine,
        matrix_measures=[str(measure) for measure in lineup.measures],
        rows=rows,
        verdict=decide(by_measure[lineup.primary], lineup.primary, rows, lineup.seed, lineup.measures),
        warnings=[*outcome.warnings, *outcome.extras.warnings, *_shortened(task)],
        figures=outcome.extras.figures,
        sections=outcome.extras.sections,
    )


def detail(outcome: Outcome) -> Detailed:
    """`detailed_results.json`: every query of every contender, raw samples included."""
    task = outcome.task
    return Detailed(
        queries={
            query.id: QueryInfo(text=query.text, category=query.category, grades=dict(task.judgments.get(query.id, {})))
            for query in task.queries[:DETAILED_QUERIES]
        },
        titles={document.id: _title(document) for document in task.documents},
        contenders=[
            ContenderResult(label=entrant.contender.label, queries=_query_results(entrant, task), timing=entrant.timing)
            for entrant in outcome.ran
        ],
        baselines={
            name: {str(measure): values[:DETAILED_QUERIES].tolist() for measure, values in scores.items()}
            for name, scores in outcome.baselines.items()
        },
    )


def _title(document: Document) -> str:
    """What reports call a document: the beginning of its text where it has no title."""
    text = " ".join(document.text[: 4 * TITLE_LENGTH].split())
    return document.title or (text if len(text) <= TITLE_LENGTH else f"{text[:TITLE_LENGTH].rstrip()} …")


def _query_results(entrant: Entrant, task: Task) -> dict[str, QueryResult]:
    found = {}
    answered = entrant.rounds[0] if entrant.rounds else {}
    columns = {str(measure): values.tolist() for measure, values in entrant.scores.items()}
    for place, query in enumerate(task.queries[:DETAILED_QUERIES]):
        ranking, grades = answered.get(query.id, Ranking((), ())), task.judgments.get(query.id, {})
        found[query.id] = QueryResult(
            ids=list(ranking.ids),
            scores=list(ranking.scores),
            grades=[grades.get(document) for document in ranking.ids],
            measures={name: values[place] for name, values in columns.items()},
        )
    return found


def _row(
    entrant: Entrant,
    task: Task,
    machine: Machine,
    ties: Mapping[str, Mapping[str, bool]],
    seed: int,
) -> Row:
    contender = entrant.contender
    adapter = PROVIDERS.get(contender.provider) if contender.provider else None
    row = Row(
        label=contender.label,
        kind=contender.kind,
        provider=contender.provider or contender.ranker,
        model=contender.model or (adapter.default_model if adapter else contender.ranker or contender.name),
        store=contender.store,
        local=adapter.local if adapter else True,
        not_run=entrant.not_run,
    )
    if entrant.not_run is not None:
        return row
    row.measures = _with_intervals(entrant.scores, seed)
    row.categories = _by_category(entrant.scores, task)
    row.ties = {measure: tied[contender.label] for measure, tied in ties.items()}
    row.targets = _targets(row, task)
    if entrant.searcher is not None:
        nothing_to_embed = all(query.item for query in task.queries)
        row.latency = _latency(entrant, machine, local=row.local or nothing_to_embed)
        row.cost = _cost(entrant, len(task.documents))
    row.dimensions, row.index_bytes, row.loss = entrant.dimensions, entrant.index_bytes, entrant.loss
    row.vector_bytes = contender.variant.bytes_each(entrant.dimensions) if entrant.dimensions else None
    row.build_seconds, row.stable = entrant.build_seconds, entrant.stable
    row.warnings = _row_warnings(entrant)
    return row


def _share_out_fusions(rows: Sequence[Row], outcome: Outcome) -> None:
    """A fusion costs what its parts cost, and is local only if they all are."""
    by_label = {row.label: row for row in rows}
    for entrant in outcome.entrants:
        if entrant.contender.fusion is None:
            continue
        row, parts = by_label[entrant.contender.label], [by_label[label] for label in entrant.contender.fusion.of]
        row.local = all(part.local for part in parts)
        costs = [part.cost for part in parts if part.cost is not None]
        if row.not_run is None and costs:
            row.cost = Cost(
                usd=_sum([cost.usd for cost in costs]),
                usd_per_million_documents=_sum([cost.usd_per_million_documents for cost in costs]),
                tokens=sum(cost.tokens for cost in costs),
                tokens_estimated=any(cost.tokens_estimated for cost in costs),
            )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _shortened(task: Task) -> list[str]:
    if len(task.queries) <= DETAILED_QUERIES:
        return []
    return [f"detailed_results.json holds the first {DETAILED_QUERIES:,} of {len(task.queries):,} queries"]


def _baseline_row(name: str, scores: Scores, task: Task, shown: Sequence[Measure]) -> Row:
    row = Row(label=name, kind="baseline", model=name, local=True)
    row.measures = {str(measure): Value(float(values.mean())) for measure, values in scores.items()}
    row.categories = _by_category({measure: scores[measure] for measure in shown}, task)
    row.targets = _targets(row, task)
    return row


def _with_intervals(scores: Scores, seed: int) -> dict[str, Value]:
    low, high = bca_intervals(np.stack(list(scores.values()), axis=1), seed=seed)
    return {
        str(measure): Value(float(values.mean()), _finite(low[at]), _finite(high[at]))
        for at, (measure, values) in enumerate(scores.items())
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _by_category(scores: Scores, task: Task) -> dict[str, dict[str, float]]:
    masks: dict[str, NDArray[np.bool_]] = {
        category: np.array([query.category == category for query in task.queries]) for category in task.categories
    }
    return {
        category: {str(measure): float(values[mask].mean()) for measure, values in scores.items()}
        for category, mask in masks.items()
    }


def _targets(row: Row, task: Task) -> dict[str, bool]:
    """A target is something to exceed."""
    return {
        measure: row.measures[measure].mean > target
        for measure, target in task.targets.items()
        if measure in row.measures
    }


def _latency(entrant: Entrant, machine: Machine, *, local: bool) -> Latency:
    timing = entrant.timing
    return Latency(
        embed=percentiles(timing.embed_ns),
        search=percentiles(timing.search_ns),
        total=percentiles(timing.total_ns),
        cold_embed_ms=timing.cold_embed_ns / 1e6 if timing.cold_embed_ns is not None else None,
        cold_search_ms=timing.cold_search_ns / 1e6 if timing.cold_search_ns is not None else None,
        doubts=doubts(timing, machine, local=local),
    )


def _cost(entrant: Entrant, documents: int) -> Cost:
    """Nothing for what runs here; otherwise the tokens that these vectors took, now or when they were bought."""
    if entrant.embedder is None or entrant.provider is None:
        return Cost(usd=0.0, usd_per_million_documents=0.0)
    card, usage = entrant.provider.card, entrant.embedder.usage
    both = list(usage.values())
    total = sum(each.tokens for each in both)
    return Cost(
        usd=_dollars(total, card, local=entrant.provider.local),
        usd_per_million_documents=_dollars(
            usage[Role.DOCUMENT].tokens / documents * 1e6, card, local=entrant.provider.local
        ),
        tokens=round(total, 1),
        tokens_estimated=any(each.estimated for each in both),
        requests=_total(both, "requests"),
        retries=_total(both, "retries"),
        cached=_total(both, "cached"),
        truncated=_total(both, "truncated"),
        price=f"${card.price.usd_per_million_tokens:g} a million tokens, seen {card.price.seen}" if card.price else "",
    )


def _dollars(tokens: float, card: ModelCard, *, local: bool) -> float | None:
    if card.price is not None:
        return tokens * card.price.usd_per_million_tokens / 1e6
    return 0.0 if local else None


def _total(usages: Sequence[Usage], what: str) -> int:
    return sum(getattr(usage, what) for usage in usages)


def _row_warnings(entrant: Entrant) -> list[str]:
    found = []
    if entrant.embedder is not None:
        found += entrant.embedder.warnings
        if entrant.embedder.lengths is not None:
            found += vector_warnings(*entrant.embedder.lengths)
        truncated = sum(usage.truncated for usage in entrant.embedder.usage.values())
        if truncated:
            found.append(f"{truncated} texts were longer than the model's context and were cut")
    short = sum(not ranking.ids for ranking in entrant.rounds[0].values()) if entrant.rounds else 0
    if short:
        found.append(f"{short} {'query' if short == 1 else 'queries'} got no answer at all")
    return found
