"""From one embedding model to the next: what every way of changing costs, and what people find meanwhile.

All of it is worked out on a task with exact search. Nothing of production is read or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
from bakeoff_providers.base import ModelCard, Role, Vectors
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.calls.budget import estimate_tokens
from bakeoff.core.arrays import Values
from bakeoff.core.figures import STOP_WITHIN, PairedDifference
from bakeoff.core.hashing import order_key
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.embedding.embed import WORKERS, Embedder, batches
from bakeoff.embedding.unit import unit
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.pairs import difference_text
from bakeoff.report.words import WEIGHTED
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
    """One model over the task: its vectors, and what it takes to make them."""

    label: str
    card: ModelCard
    local: bool
    documents: Vectors
    queries: Vectors


@dataclass(frozen=True, slots=True)
class Cost:
    """What a way of changing takes beside what is there: tokens and dollars once, bytes for as long as it stays."""

    tokens: float = 0.0
    dollars: float | None = 0.0
    hours: float | None = None
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Way:
    """One way of changing, with its score per query."""

    key: str
    about: str
    scores: Values
    cost: Cost


def procrustes(source: NDArray[np.floating], target: NDArray[np.floating]) -> NDArray[np.float64]:
    """The orthogonal map (semi-orthogonal between dimensions) that brings source rows nearest to target rows."""
    left, _, right = np.linalg.svd(np.asarray(source, dtype=np.float64).T @ target, full_matrices=False)
    return np.asarray(left @ right)


def sides(lineup: Lineup, old: str, new: str, settings: Settings) -> tuple[Task, Index, Side, Side, list[str]]:
    """Both models over the line-up's task, through the cache; and the texts of its chunks."""
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
        raise InputError(f"the queries of {task.name!r} are items", remedy="take a task whose queries are texts")
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
    """Every way on the same queries; costs are those of `scale` times the task's corpus."""
    order = sorted(range(len(texts)), key=lambda at: order_key(seed, index.chunks[at].id))

    def scored(rankings: Mapping[str, Ranking]) -> Values:
        ids = [query.id for query in task.queries]
        return score_queries(join(rankings, task.judgments, ids, DEPTH), [measure], task.rel)[measure]

    def searched(queries: Vectors, documents: Vectors) -> Mapping[str, Ranking]:
        by_id = {query.id: vector for query, vector in zip(task.queries, queries, strict=True)}
        return ExactSearch(index, by_id, documents).rankings(task.queries)

    before, after = searched(old.queries, old.documents), searched(new.queries, new.documents)
    whole = _cost(new, texts, scale)
    compared = [
        Way("old", "as it is", scored(before), Cost()),
        Way("new", "everything embedded again, then switched", scored(after), whole),
    ]
    if old.documents.shape[1] == new.documents.shape[1]:
        for share in SHARES:
            again = order[: max(1, round(share * len(order)))]
            mixed = old.documents.copy()
            mixed[again] = new.documents[again]
            cost = _cost(new, [texts[at] for at in again], scale, grows=False)
            for side in (old, new):
                asked = "old" if side is old else "new"
                about = f"one index, {share:.0%} of it new vectors, {asked} queries"
                compared.append(Way(f"mixed {share:.0%} {asked}", about, scored(searched(side.queries, mixed)), cost))
    for share in SHARES:
        again = order[: max(1, round(share * len(order)))]
        parts = _parts(task, index, old, new, again)
        about = f"{share:.0%} moved to a new index, each part asked by its own model, fused by rank"
        cost = _cost(new, [texts[at] for at in again], scale, grows=False)
        compared.append(Way(f"parts {share:.0%}", about, scored(parts), cost))
    for pairs in PAIRS:
        if pairs <= len(order):
            learnt = order[:pairs]
            mapped = new.queries @ procrustes(new.documents[learnt], old.documents[learnt])
            about = f"new queries on the old index, mapped from {pairs} pairs"
            rankings = searched(unit(mapped.astype(np.float32), new.label), old.documents)
            cost = _cost(new, [texts[at] for at in learnt], 1.0, grows=False)
            compared.append(Way(f"mapped {pairs}", about, scored(rankings), cost))
    fused = {query.id: fuse_by_rrf([before[query.id], after[query.id]], (1, 1)) for query in task.queries}
    compared.append(Way("both", "both indexes, two searches, fused by rank", scored(fused), whole))
    return compared


def _parts(task: Task, index: Index, old: Side, new: Side, again: Sequence[int]) -> dict[str, Ranking]:
    """Documents are in one index or in the other; every query goes to both."""
    moved = set(again)
    kept = [at for at in range(len(index.chunks)) if at not in moved]
    lists = []
    for side, rows in ((old, kept), (new, list(again))):
        part = Index([index.chunks[at] for at in rows], index.depth, index.texts, index.metadata)
        by_id = {query.id: vector for query, vector in zip(task.queries, side.queries, strict=True)}
        lists.append(ExactSearch(part, by_id, side.documents[rows]).rankings(task.queries))
    return {query.id: fuse_by_rrf([one[query.id] for one in lists], (1, 1)) for query in task.queries}


def _cost(side: Side, texts: Sequence[str], scale: float, *, grows: bool = True) -> Cost:
    """A second index is kept beside the first where both must be there at once."""
    card = side.card
    tokens = scale * estimate_tokens(texts, card.document_prompt)
    dollars = None if card.price is None else tokens * card.price.usd_per_million_tokens / 1e6
    requests = scale * sum(1 for _ in batches(texts, card, WORKERS))
    limits = [(requests, card.requests_per_minute), (tokens, card.tokens_per_minute)]
    waits = [amount / limit / 60 for amount, limit in limits if limit]
    size = scale * len(texts) * side.documents.shape[1] * 4 if grows else 0.0
    return Cost(tokens, 0.0 if side.local else dollars, max(waits, default=None), size)


def plan(
    ways: Sequence[Way],
    labels: tuple[str, str],
    measure: Measure,
    documents: int,
    averaging: Averaging = PerQuery(),
    matters: float = STOP_WITHIN,
) -> Check:
    """Compare each migration path with the current index and recommend one; 1 if the new model is worse.

    Without a significant difference, it says how many queries a gap of `matters` needs.

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
    said += recommendation({way.key: way for way in ways}, means, against, labels, averaging, matters)
    figures = {
        "old": labels[0],
        "new": labels[1],
        "measure": str(measure),
        "queries": queries,
        "weighting": "traffic" if weighted else None,
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
    matters: float,
) -> list[str]:
    """Whether to change at all, then how: what may be served on the way, and what must not."""
    new = against["new"]
    if new.p_holm > ALPHA:
        return [
            *_gains(ways, against),
            f"Do not switch to {labels[1]} alone: this task does not show that it is better or worse."
            f"{_queries_it_takes(ways, averaging, matters)}",
        ]
    if new.difference < 0:
        return [*_gains(ways, against), f"Do not switch to {labels[1]} alone: it is worse on this task."]
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
            else f"{'not a significant gain' if gain > 0 else 'no gain'}, so not worth it"
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


def _queries_it_takes(ways: Mapping[str, Way], averaging: Averaging, gap: float) -> str:
    """For a gap that matters, not for the one that was seen, which may be chance."""
    new, old = (averaging.linear(ways[key].scores) for key in ("new", "old"))
    needed = queries_for_gap(new, old, gap=gap, heaviest=averaging.heaviest) if averaging.has_error else None
    if needed is None or needed[1] <= len(new):
        return ""
    what = "needs" if averaging.clusters else "queries"
    count = f"{needed[0]:,} to {needed[1]:,}" if needed[0] < needed[1] else f"about {needed[0]:,}"
    return f" To see a gap of {gap:g} takes {count} {what}."


def _gains(ways: Mapping[str, Way], against: Mapping[str, PairedDifference]) -> list[str]:
    """What is shown to be better than the old index, where the new model alone is not."""
    return [
        f"Better than the old index: {ways[key].about} ({pair.difference:+.4f}, p (Holm) = {pair.p_holm:.2g})."
        for key, pair in against.items()
        if key != "new" and pair.p_holm <= ALPHA and pair.difference > 0
    ]


def _costs(cost: Cost) -> str:
    if not cost.tokens:
        return ""
    parts = [f"{cost.tokens:,.0f} tokens", "no price known" if cost.dollars is None else f"${cost.dollars:,.2f}"]
    parts += [f"{cost.hours:,.1f} hours at the rate limit"] if cost.hours is not None else []
    parts += [f"{_size(cost.bytes)} beside the old index"] if cost.bytes else []
    return f"; {', '.join(parts)}"


def _size(count: float) -> str:
    for prefix, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {prefix}"
    return f"{count:.0f} bytes"
