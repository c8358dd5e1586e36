"""Makes the rows of the matrix from scored contenders."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from bakeoff_providers.base import ModelCard, Role
from msgspec.structs import replace
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.clock import SAMPLES_FOR, doubts, percentiles
from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import Timing
from bakeoff.core.machine import Machine
from bakeoff.core.progress import steps
from bakeoff.core.task import Task
from bakeoff.embedding.preflight import vector_warnings
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.measures.base import figure_of
from bakeoff.evaluation.score import Scores
from bakeoff.results.schema import Cost, Kept, Latency, Row, Value
from bakeoff.results.unjudged import bounds_of
from bakeoff.running.stages import Embedding, Scored, Search, SecondStage
from bakeoff.statistics.averaging import Averaging
from bakeoff.systems.base import NotRun, System
from bakeoff.systems.failures import attempt


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Context shared by all rows of a result."""

    task: Task
    machine: Machine
    averaging: Averaging
    judged_in_part: Sequence[Measure] = ()  # measures that get bounds if documents are unjudged

    def of(self, contenders: Sequence[Scored | NotRun]) -> list[Row]:
        """All rows in the order of the line-up."""
        rows: dict[str, Row] = {}
        shared = _share_embedding(contenders)
        with steps("intervals: contenders", len(contenders)) as advance:
            for row in contenders:
                parts = [rows[label] for label in row.contender.made_of]
                made = attempt(row.contender, partial(self._row, row, parts, shared))
                if isinstance(made, NotRun):  # our own fault: only this row fails
                    made = self._row(made, parts, shared)
                rows[row.contender.label] = made
                advance(1)
        return list(rows.values())

    def baseline(self, name: str, scores: Scores, shown: Sequence[Measure]) -> Row:
        """A baseline's row."""
        means = {str(measure): Value(_figure(measure, values, self.averaging)) for measure, values in scores.items()}
        return Row(
            label=name,
            row_type="baseline",
            baseline=True,
            model=name,
            local=True,
            measures=means,
            categories=_by_category({measure: scores[measure] for measure in shown}, self.task, self.averaging),
            targets=_targets(means, self.task),
        )

    def _row(self, row: Scored | NotRun, parts: Sequence[Row], shared: Mapping[str, list[int]]) -> Row:
        contender = row.contender
        embedding = row.search.embedding if isinstance(row, Scored) and row.search else None
        here = not embedding.needs_network if embedding and not parts else contender.local
        identity = contender.identity
        named = Row(
            label=contender.label,
            row_type=contender.row_type,
            provider=identity.provider,
            model=identity.model,
            store=identity.store,
            local=here and all(part.local for part in parts),
            baseline=contender.baseline,
        )
        if isinstance(row, NotRun):
            return replace(named, not_run=row.failure)
        measures = _with_intervals(row.scores, self.averaging)
        build = row.search.build if row.search else None
        dimensions = build.dimensions if build else None
        return replace(
            named,
            measures=measures,
            categories=_by_category(row.scores, self.task, self.averaging),
            bounds=bounds_of(row.rankings, self.task, self.judged_in_part, self.averaging)
            if self.judged_in_part
            else {},
            targets=_targets(measures, self.task),
            latency=self._latency(contender, row.search, shared) if row.search else None,
            cost=self._cost(contender, row.search, parts) if row.search else None,
            dimensions=dimensions,
            index_bytes=build.index_bytes if build else None,
            loss=row.search.loss if row.search else None,
            vector_bytes=build.vector_bytes if build else None,
            build_seconds=build.seconds if build else None,
            stable=row.stable,
            answered_as=_names_in_answers(row.search),
            cut=row.search.embedding.cut if row.search and row.search.embedding else None,
            warnings=_warnings(row, self.task),
        )

    def _latency(self, contender: System, search: Search, shared: Mapping[str, list[int]]) -> Latency:
        timing = replace(search.timing, embed_ns=shared.get(contender.label, search.timing.embed_ns))
        kept = _kept_timing(timing)
        if kept is not None:
            timing = _with_kept(timing)
        limit = timing.limit_ns or None
        return Latency(
            embed=percentiles(timing.embed_ns, limit),
            search=percentiles(timing.search_ns, limit),
            total=percentiles(timing.total_ns, limit),
            rerank=percentiles(timing.rerank_ns, limit) if timing.rerank_ns else None,
            cold_embed_ms=timing.cold_embed_ns / 1e6 if timing.cold_embed_ns is not None else None,
            cold_search_ms=timing.cold_search_ns / 1e6 if timing.cold_search_ns is not None else None,
            doubts=doubts(timing, self.machine, _why_untimed(contender, search, timing)),
            kept=kept,
        )

    def _cost(self, contender: System, search: Search, parts: Sequence[Row]) -> Cost:
        """Free for local rows, the sum of its parts for a fusion, unknown for a URL."""
        costs = [part.cost for part in parts if part.cost is not None]
        if second := search.second_stage:
            costs.append(_second_stage_cost(second))
        if costs:
            return Cost(
                usd=_sum([cost.usd for cost in costs]),
                usd_paid=_sum([cost.usd_paid for cost in costs]),
                usd_per_million_documents=_sum([cost.usd_per_million_documents for cost in costs]),
                usd_per_thousand_queries=_sum([cost.usd_per_thousand_queries for cost in costs]),
                tokens=sum(cost.tokens for cost in costs),
                tokens_estimated=any(cost.tokens_estimated for cost in costs),
            )
        if search.embedding is None:
            price = 0.0 if contender.local else None
            return Cost(usd=price, usd_paid=price, usd_per_million_documents=price, usd_per_thousand_queries=price)
        cost = _embedding_cost(search.embedding, len(self.task.documents))
        if not contender.embeds_documents and not search.embedding.local:  # they were embedded elsewhere
            return replace(cost, usd_per_million_documents=None)
        return cost


def _share_embedding(contenders: Sequence[Scored | NotRun]) -> dict[str, list[int]]:
    """Pools the embedding times of rows that share an embedder, which differ only by noise.

    A paid model is called once per text, so its rows already have the same times.
    """
    named = {row.contender.label: row.contender for row in contenders}
    embedders: dict[str, Hashable] = {}
    times: dict[Hashable, list[int]] = {}
    for row in contenders:
        if isinstance(row, Scored) and row.search and (embedding := row.search.embedding):
            first, mine = row.contender, row.search.timing.embed_ns
            while first.made_of:
                first = named[first.made_of[0]]
            embedder = first.shares
            others = times.get(embedder, [])
            times[embedder] = [*others, *mine] if embedding.asked_anew else max(others, mine, key=len)
            embedders[row.contender.label] = embedder
    return {label: times[embedder] for label, embedder in embedders.items()}


def _kept_timing(timing: Timing) -> Kept | None:
    """When and where calls were timed, if too few were timed in this run. A row never mixes both."""
    if len(timing.total_ns) >= SAMPLES_FOR[50] or not timing.kept_total_ns:
        return None
    calls = [*timing.kept_embed, *timing.kept_rerank]
    dates = sorted(call.at[: len("2000-01-01")] for call in calls)
    machines = sorted({call.machine for call in calls})
    stages: list[Literal["embed", "rerank"]] = ["embed"] if timing.kept_embed else []
    if timing.kept_rerank:
        stages.append("rerank")
    return Kept(stages=stages, first=dates[0], last=dates[-1], machines=machines)


def _with_kept(timing: Timing) -> Timing:
    """This run's times, replaced by those of earlier runs for the stages that have them."""
    embedded = [call.nanoseconds for call in timing.kept_embed]
    reranked = [call.nanoseconds for call in timing.kept_rerank]
    return replace(
        timing,
        embed_ns=embedded or timing.embed_ns,
        rerank_ns=reranked or timing.rerank_ns,
        total_ns=timing.kept_total_ns,
    )


def _why_untimed(contender: System, search: Search, timing: Timing) -> Fact:
    """Why no answer was timed as a whole: what came from the cache."""
    if search.second_stage and not timing.rerank_ns:
        return fact("untimed_second_stage")
    return fact("untimed_parts") if contender.made_of else fact("untimed_embedding")


def _with_intervals(scores: Scores, averaging: Averaging) -> dict[str, Value]:
    """Adds intervals. Queries without a value are left out."""
    whole = [measure for measure, values in scores.items() if not np.isnan(values).any()]
    low, high = averaging.intervals(
        np.stack([scores[measure] for measure in whole], axis=1), [measure.bounded for measure in whole]
    )
    ends = dict(zip(whole, zip(low, high, strict=True), strict=True))
    for measure in scores.keys() - ends:
        some_low, some_high = averaging.intervals(
            scores[measure][:, None], measure.bounded, where=~np.isnan(scores[measure])
        )
        ends[measure] = some_low[0], some_high[0]
    return {
        str(measure): Value(_figure(measure, values, averaging), *(figure_of(measure, end) for end in ends[measure]))
        for measure, values in scores.items()
    }


def _figure(measure: Measure, values: Values, averaging: Averaging, where: NDArray[np.bool_] | None = None) -> float:
    """A mean over queries that have a value."""
    known = ~np.isnan(values)
    if where is not None:
        known &= where
    return measure.figure(averaging.mean(values, None if known.all() else known))


def _by_category(scores: Scores, task: Task, averaging: Averaging) -> dict[str, dict[str, float]]:
    masks: dict[str, NDArray[np.bool_]] = {
        category: np.array([query.category == category for query in task.queries]) for category in task.categories
    }
    return {
        category: {
            str(measure): _figure(measure, values, averaging, mask)
            for measure, values in scores.items()
            if not np.isnan(values[mask]).all()
        }
        for category, mask in masks.items()
    }


def _targets(measures: Mapping[str, Value], task: Task) -> dict[str, bool]:
    """Whether the targets are exceeded."""
    return {name: measures[name].mean > target for name, target in task.targets.items() if name in measures}


def _embedding_cost(embedding: Embedding, documents: int) -> Cost:
    """The tokens of these vectors, from this run or an earlier one."""
    card, usages = embedding.card, list(embedding.usage.values())
    tokens = sum(usage.tokens for usage in usages)
    of_documents, of_queries = embedding.usage[Role.DOCUMENT].tokens, embedding.usage[Role.QUERY]
    asked = of_queries.tokens / max(of_queries.asked, 1)  # a text that is asked twice is embedded once
    return Cost(
        usd=_dollars(tokens, card, local=embedding.local),
        usd_paid=0.0 if embedding.local else _sum([usage.usd for usage in usages]),
        usd_per_million_documents=_dollars(of_documents / documents * 1e6, card, local=embedding.local),
        usd_per_thousand_queries=_dollars(asked * 1000, card, local=embedding.local),
        tokens=round(tokens, 1),
        tokens_estimated=any(usage.estimated for usage in usages),
        requests=sum(usage.requests for usage in usages),
        retries=sum(usage.retries for usage in usages),
        cached=sum(usage.cached for usage in usages),
        truncated=sum(usage.truncated for usage in usages),
        list_price=card.price,
    )


def _second_stage_cost(second: SecondStage) -> Cost:
    """The second stage's cost per query; if its price is unknown, so is the row's."""
    used, free = second.usage, None if second.usd is None else 0.0
    return Cost(
        usd=second.usd,
        usd_paid=0.0 if second.local else used.usd,
        usd_per_million_documents=free,
        usd_per_thousand_queries=None if second.usd is None else second.usd / max(second.searches, 1) * 1000,
        tokens=used.tokens,
        tokens_estimated=used.estimated,
    )


def _dollars(tokens: float, card: ModelCard, *, local: bool) -> float | None:
    if card.price is not None:
        return tokens * card.price.usd_per_million_tokens / 1e6
    return 0.0 if local else None


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _names_in_answers(search: Search | None) -> list[str]:
    stages = (search.embedding, search.second_stage) if search else ()
    return sorted({name for stage in stages if stage is not None for name in stage.answered_as})


def _warnings(row: Scored, task: Task) -> list[Fact]:
    warnings: list[Fact] = []
    unanswered: Sequence[str] = ()
    embedding = row.search.embedding if row.search else None
    if row.search:
        warnings += row.search.build.notes
        timing = row.search.timing
        if timing.unanswered and timing.limit_ns:
            unanswered = timing.unanswered
            seconds = timing.limit_ns / 1e9
            warnings.append(fact("unanswered", count=len(unanswered), queries=len(task.queries), seconds=seconds))
        if short := row.search.short:
            warnings.append(fact("short_lists", queries=short))
        if row.search.second_stage:
            warnings += row.search.second_stage.warnings
        if row.search.not_compared and embedding is not None:
            warnings.append(row.search.not_compared)
        if unlike := row.search.unlike:
            difference = unlike.difference
            warnings.append(
                fact(
                    "ranks_unlike",
                    label=unlike.label,
                    query=difference.query,
                    place=difference.place,
                    expected=difference.expected.document if difference.expected else "",
                    got=difference.got.document if difference.got else "",
                )
            )
    if embedding is not None:
        warnings += embedding.warnings
        if embedding.lengths is not None:
            warnings += vector_warnings(*embedding.lengths)
        truncated = sum(usage.truncated for usage in embedding.usage.values())
        if truncated:
            warnings.append(fact("truncated", texts=truncated))
    asked = (query.id for query in task.queries if query.id not in unanswered)  # a kind may answer more than it scores
    empty = sum(query in row.rankings and not row.rankings[query].found for query in asked)
    if empty:
        warnings.append(fact("unmatched", queries=empty))
    if row.stable is False:
        warnings.append(fact("unstable"))
    return warnings
