"""One check of a canary, whole: ask again, compare, and say what the change does to a task's rankings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from bakeoff_providers.base import Provider
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.ranking import Ranking, ordered
from bakeoff.core.task import Task
from bakeoff.embedding.unit import unit
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.extensions.production.canary import CHECK_CALLS, Recording, ask, ask_queries
from bakeoff.extensions.production.canary_change import VectorChange, compare, sentences
from bakeoff.extensions.production.log_replay import overlap
from bakeoff.results.check import Check, Gauge
from bakeoff.search import brute_force
from bakeoff.statistics.averaging import WEIGHTED, averaging_of

K = 10
NDCG = Measure.parse("ndcg@10")


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What today's queries find among the documents as they were embedded when the canary was recorded."""

    queries: int
    overlap: float
    score_before: float
    score_after: float
    low: float | None
    high: float | None
    weighting: str | None = None


def check(recording: Recording, provider: Provider, *, calls: int = CHECK_CALLS, task: Task | None = None) -> Check:
    """Asks with a seed of its own; 1 where the model changed."""
    if calls < 2:
        raise InputError("one call has no noise", place="--calls", remedy="ask at least twice")
    again = ask(provider, recording.head.texts, calls, seed=len(recording.vectors))
    change = compare(recording.vectors, again)
    said = [
        f"{recording.head.provider} {recording.head.model}, recorded {recording.head.recorded[:10]}.",
        *sentences(change, len(recording.head.texts), (len(recording.vectors), calls)),
    ]
    figures = {"provider": recording.head.provider, "model": recording.head.model, "changed": change.changed}
    figures |= msgspec.to_builtins(change)
    gauges = _gauges(change, recording.head.model)
    if task is not None and change.way != "other dimension":
        effect = effect_on(recording, task, ask_queries(provider, task))
        figures["task"] = msgspec.to_builtins(effect)
        said.append(
            f"On {task.name}, today's queries over the documents as recorded: top-{K} overlap {effect.overlap:.3f}, "
            f"{NDCG.label} {effect.score_before:.4f} → {effect.score_after:.4f}{_interval(effect)}"
            f"{f' ({effect.weighting})' if effect.weighting else ''}."
        )
        gauges.append(Gauge("canary_overlap", "Top 10 that a task keeps", effect.overlap, {"task": task.name}))
    return Check(command="canary", worse=change.changed, sentences=said, figures=figures, gauges=gauges)


def effect_on(recording: Recording, task: Task, queries: NDArray[np.float32]) -> Effect:
    """Only queries are embedded anew: this is what an index that was built before answers today."""
    if recording.documents is None or recording.queries is None:
        raise InputError("the recording holds no task", place="--task", remedy="record again with --task")
    ids = [document.id for document in task.documents]
    if list(recording.head.documents) != ids or list(recording.head.queries) != [query.id for query in task.queries]:
        raise InputError(f"task {task.name!r} is not the one recorded ({recording.head.task!r})", place="--task")
    documents = unit(recording.documents, recording.head.model)
    before = _rankings(unit(recording.queries, recording.head.model), documents, ids, task)
    after = _rankings(unit(queries, recording.head.model), documents, ids, task)
    asked = [query.id for query in task.queries]
    old, new = (score_queries(join(one, task.judgments, asked), [NDCG], task.rel)[NDCG] for one in (before, after))
    averaging = averaging_of([query.drawn for query in task.queries])
    change = averaging.pairs({"after": new, "before": old})[0]
    shared = np.array([overlap(before[query].ids, after[query].ids, K) for query in asked])
    return Effect(
        queries=len(asked), overlap=averaging.mean(shared), score_before=averaging.mean(old),
        score_after=averaging.mean(new), low=change.low, high=change.high,
        weighting=None if averaging.weights is None else WEIGHTED,
    )  # fmt: skip


def _interval(effect: Effect) -> str:
    """Nothing for a single query."""
    if effect.low is None or effect.high is None:
        return ""
    return f" (95% interval of the change {effect.low:+.4f} to {effect.high:+.4f})"


def _rankings(
    queries: NDArray[np.float32], documents: NDArray[np.float32], ids: Sequence[str], task: Task
) -> dict[str, Ranking]:
    rows, scores = brute_force.nearest(queries, documents, K)
    return {
        query.id: ordered((ids[row], float(score)) for row, score in zip(rows[at], scores[at], strict=True))
        for at, query in enumerate(task.queries)
    }


def _gauges(change: VectorChange, model: str) -> list[Gauge]:
    labels = {"model": model}
    return [
        Gauge("canary_changed", "1 where the model changed behind its name", float(change.changed), labels),
        Gauge("canary_size", "Distance to the recording in noise floors", change.size, labels),
        Gauge("canary_cosine", "Mean cosine to the recording", change.cosine, labels),
        Gauge("canary_noise", "Noise floor as a share of a vector's length", change.noise, labels),
    ]


def file_for(provider: str, model: str) -> Path:
    """The name of a recording where the user gives none."""
    safe = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in model)
    return Path(f"{provider}-{safe}.canary")
