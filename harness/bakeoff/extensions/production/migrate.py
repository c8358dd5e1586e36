"""Plan a change of embedding model: quality and cost of each way to migrate.

Everything is computed on a task with exact search. Nothing in production is read or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import msgspec
import numpy as np
from bakeoff_providers.base import ModelCard, Role, Vectors
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.calls.budget import estimate_tokens
from bakeoff.core.arrays import Values
from bakeoff.core.facts import Argument, Fact, fact
from bakeoff.core.figures import STOP_WITHIN, PairedDifference
from bakeoff.core.hashing import order_key
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.embedding.embed import WORKERS, Embedder, batches
from bakeoff.embedding.unit import unit
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.extensions.production.log_sample import difference_arguments
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.check import Check, Gauge
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.settings import Settings
from bakeoff.search.exact_search import ExactSearch
from bakeoff.search.fusion import fuse_by_rrf
from bakeoff.search.index import Index
from bakeoff.statistics.averaging import Averaging, PerQuery
from bakeoff.statistics.compare import compare_chosen
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.detectable import queries_for_gap
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.tasks.kinds import load_kind

SHARES = (0.10, 0.25, 0.50, 0.75)
PAIRS = (200, 600, 1200)
DEPTH = 100


@dataclass(frozen=True, slots=True)
class Side:
    """One model: its vectors for the task, and its model card."""

    label: str
    card: ModelCard
    local: bool
    documents: Vectors
    queries: Vectors


@dataclass(frozen=True, slots=True)
class MigrationCost:
    """Additional cost of a migration: tokens, dollars and hours once, bytes while it lasts."""

    tokens: float = 0.0
    dollars: float | None = 0.0
    hours: float | None = None
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Way:
    """One way to migrate, with its score per query. `about` has its parameters, as arguments of facts."""

    key: str
    about: Mapping[str, Argument]
    scores: Values
    cost: MigrationCost


def procrustes(source: NDArray[np.floating], target: NDArray[np.floating]) -> NDArray[np.float64]:
    """The orthogonal map (semi-orthogonal if dimensions differ) from source rows to target rows."""
    left, _, right = np.linalg.svd(np.asarray(source, dtype=np.float64).T @ target, full_matrices=False)
    return np.asarray(left @ right)


def sides(lineup: Lineup, old: str, new: str, settings: Settings) -> tuple[Task, Index, Side, Side, list[str]]:
    """Embed the line-up's task with both models, through the cache. Also returns the texts of its chunks."""
    chosen = {row.label: row for row in lineup.contenders if isinstance(row, EmbeddingRow)}
    for label in (old, new):
        if label not in chosen:
            raise InputError(f"there is no embedding row {label!r}", remedy=f"the line-up has {', '.join(chosen)}")
    if chosen[old].shares == chosen[new].shares:
        raise InputError(f"{old} and {new} have the same vectors", remedy="name rows of two models")
    if chosen[old].field or chosen[new].field:
        raise InputError("rows over a field can't be compared here", remedy="name rows over whole documents")
    task = load_kind(lineup.task, lineup.folder, lineup.overrides).task()
    if any(query.item for query in task.queries):
        raise InputError(f"the queries of {task.name!r} are items", remedy="use a task whose queries are texts")
    embeddings = Embeddings(task, DEPTH, settings, lineup.folder)
    try:
        index = embeddings.index(chosen[old])
        both = [_side(chosen[label], embeddings, task) for label in (old, new)]
    finally:
        embeddings.close()
    return task, index, both[0], both[1], [chunk.text for chunk in index.chunks]


def _side(contender: EmbeddingRow, embeddings: Embeddings, task: Task) -> Side:
    embedder: Embedder
    embedder, vectors = embeddings.of(contender)
    asked = [query.id if embedder.provider.by_id else query.text for query in task.queries]
    queries = embedder.embed(asked, Role.QUERY)
    return Side(contender.label, embedder.provider.card, embedder.provider.local, vectors[:], queries)


def ways(
    task: Task, index: Index, old: Side, new: Side, texts: Sequence[str], measure: Measure, scale: float, seed: int
) -> list[Way]:
    """Score every way to migrate on the same queries. Costs are for `scale` times the corpus."""
    order = sorted(range(len(texts)), key=lambda at: order_key(seed, index.chunks[at].id))

    def score(rankings: Mapping[str, Ranking]) -> Values:
        ids = [query.id for query in task.queries]
        return score_queries(join(rankings, task.judgments, ids, DEPTH), [measure], task.rel)[measure]

    def search(queries: Vectors, documents: Vectors) -> Mapping[str, Ranking]:
        by_id = {query.id: vector for query, vector in zip(task.queries, queries, strict=True)}
        return ExactSearch(index, by_id, documents).rankings(task.queries)

    before, after = search(old.queries, old.documents), search(new.queries, new.documents)
    whole = _cost(new, texts, scale)
    compared = [
        Way("old", {"way": "old"}, score(before), MigrationCost()),
        Way("new", {"way": "new"}, score(after), whole),
    ]
    if old.documents.shape[1] == new.documents.shape[1]:
        for share in SHARES:
            again = order[: max(1, round(share * len(order)))]
            mixed = old.documents.copy()
            mixed[again] = new.documents[again]
            cost = _cost(new, [texts[at] for at in again], scale, grows=False)
            for side in (old, new):
                asked = "old" if side is old else "new"
                about: dict[str, Argument] = {"way": "mixed", "share": share, "queries": asked}
                compared.append(Way(f"mixed {share:.0%} {asked}", about, score(search(side.queries, mixed)), cost))
    for share in SHARES:
        again = order[: max(1, round(share * len(order)))]
        parts = _parts(task, index, old, new, again)
        cost = _cost(new, [texts[at] for at in again], scale, grows=False)
        compared.append(Way(f"parts {share:.0%}", {"way": "parts", "share": share}, score(parts), cost))
    for pairs in PAIRS:
        if pairs <= len(order):
            learnt = order[:pairs]
            mapped = new.queries @ procrustes(new.documents[learnt], old.documents[learnt])
            rankings = search(unit(mapped.astype(np.float32), new.label), old.documents)
            cost = _cost(new, [texts[at] for at in learnt], 1.0, grows=False)
            compared.append(Way(f"mapped {pairs}", {"way": "mapped", "pairs": pairs}, score(rankings), cost))
    fused = {query.id: fuse_by_rrf([before[query.id], after[query.id]], (1, 1)) for query in task.queries}
    compared.append(Way("both", {"way": "both"}, score(fused), whole))
    return compared


def _parts(task: Task, index: Index, old: Side, new: Side, again: Sequence[int]) -> dict[str, Ranking]:
    """Each document is in one of the two indexes; every query searches both."""
    moved = set(again)
    kept = [at for at in range(len(index.chunks)) if at not in moved]
    lists = []
    for side, rows in ((old, kept), (new, list(again))):
        part = Index([index.chunks[at] for at in rows], index.depth, index.texts, index.metadata)
        by_id = {query.id: vector for query, vector in zip(task.queries, side.queries, strict=True)}
        lists.append(ExactSearch(part, by_id, side.documents[rows]).rankings(task.queries))
    return {query.id: fuse_by_rrf([one[query.id] for one in lists], (1, 1)) for query in task.queries}


def _cost(side: Side, texts: Sequence[str], scale: float, *, grows: bool = True) -> MigrationCost:
    """`grows`: the second index exists alongside the first."""
    card = side.card
    tokens = scale * estimate_tokens(texts, card.document_prompt)
    dollars = None if card.price is None else tokens * card.price.usd_per_million_tokens / 1e6
    requests = scale * sum(1 for _ in batches(texts, card, WORKERS))
    limits = [(requests, card.requests_per_minute), (tokens, card.tokens_per_minute)]
    waits = [amount / limit / 60 for amount, limit in limits if limit]
    size = scale * len(texts) * side.documents.shape[1] * 4 if grows else 0.0
    return MigrationCost(tokens, 0.0 if side.local else dollars, max(waits, default=None), size)


def plan(
    ways: Sequence[Way],
    labels: tuple[str, str],
    measure: Measure,
    documents: int,
    averaging: Averaging = PerQuery(),
    matters: float = STOP_WITHIN,
) -> Check:
    """Compare each way to migrate with the current index and recommend one.

    Without a significant difference, report how many queries detect a gap of `matters`. Means and tests are weighted
    by traffic if the queries were drawn from a log.
    """
    scores = {way.key: way.scores for way in ways}
    means = {way.key: measure.figure(averaging.mean(way.scores)) for way in ways}
    side = [way.key for way in ways[1:] if way.key != "new"]
    # The switch is the main question, so its p is not corrected. Holm covers the other ways.
    compared = partial(averaging.pairs, bounded=measure.bounded)
    primary = compare_chosen(scores, [("new", "old")], compared)
    pairs = [*primary, *compare_chosen(scores, [(key, "old") for key in side], compared)]
    against = {pair.a: pair for pair in pairs}
    queries, weighted = len(ways[0].scores), averaging.weights is not None
    facts = [
        fact("production.migration", old=labels[0], new=labels[1], measure=measure.label, queries=queries,
             weighted=weighted, documents=documents)
    ]  # fmt: skip
    for way in ways:
        pair = against.get(way.key)
        gap = {**difference_arguments(pair, measure), "p": pair.p_holm, "holm": way.key != "new"} if pair else {}
        facts.append(fact("production.way", **way.about, mean=means[way.key], **gap, **asdict(way.cost)))
    facts += recommendation({way.key: way for way in ways}, means, against, labels, averaging, matters)
    figures = {
        "old": labels[0],
        "new": labels[1],
        "measure": str(measure),
        "queries": queries,
        "weighting": "traffic" if weighted else None,
        "ways": {
            way.key: {
                **way.about,
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
    about = "Mean of the measure by way to migrate"
    gauges = [Gauge("migrate_score", about, means[way.key], {"way": way.key}) for way in ways]
    worse = against["new"].p_holm <= ALPHA and against["new"].difference < 0
    return Check(command="migrate", worse=worse, facts=facts, figures=figures, gauges=gauges)


def recommendation(
    ways: Mapping[str, Way],
    means: Mapping[str, float],
    against: Mapping[str, PairedDifference],
    labels: tuple[str, str],
    averaging: Averaging,
    matters: float,
) -> list[Fact]:
    """Whether to switch, and if so how."""
    new = against["new"]
    gains = [
        fact("production.better_way", **ways[key].about, difference=pair.difference, p_holm=pair.p_holm)
        for key, pair in against.items()
        if key != "new" and pair.p_holm <= ALPHA and pair.difference > 0
    ]
    if new.p_holm > ALPHA:
        unproven = fact("production.switch_unproven", new=labels[1])
        return [*gains, unproven, *_queries_needed(ways, averaging, matters)]
    if new.difference < 0:
        return [*gains, fact("production.switch_worse", new=labels[1])]
    facts = [fact("production.switch", new=labels[1])]
    mixed = [way for key, way in ways.items() if key.startswith("mixed")]
    if mixed:
        worst = min(mixed, key=lambda way: means[way.key])
        facts.append(fact("production.mixed_index", **worst.about, mean=means[worst.key]))
    else:
        facts.append(fact("production.dimensions_differ"))
    parts = [way for key, way in ways.items() if key.startswith("parts")]
    worst = min(parts, key=lambda way: means[way.key])
    facts.append(fact("production.in_parts", **worst.about, mean=means[worst.key]))
    mapped = [way for key, way in ways.items() if key.startswith("mapped")]
    if mapped:
        best = max(mapped, key=lambda way: means[way.key])
        gain = means[best.key] - means["old"]
        worth = against[best.key].p_holm <= ALPHA and gain > 0
        facts.append(fact("production.map", **best.about, gain=gain, worth=worth))
    gap = means["both"] - means["new"]
    test = averaging.pairs({key: ways[key].scores for key in ("both", "new")})[0]
    better = test.p <= ALPHA and gap > 0
    return [*facts, fact("production.both_indexes", better=better, gap=gap, bytes=ways["both"].cost.bytes)]


def _queries_needed(ways: Mapping[str, Way], averaging: Averaging, gap: float) -> list[Fact]:
    """For a gap that matters, since the observed one may be chance."""
    new, old = (averaging.linear(ways[key].scores) for key in ("new", "old"))
    needed = queries_for_gap(new, old, gap=gap, heaviest=averaging.heaviest) if averaging.has_error else None
    if needed is None or needed[1] <= len(new):
        return []
    unit = "needs" if averaging.clusters else "queries"
    return [fact("production.queries_needed", gap=gap, least=needed[0], most=needed[1], unit=unit)]
