"""One check of a canary, whole: ask again, compare, and say what the change does to a task's rankings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

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
from bakeoff.extensions.production.log_replay import overlap
from bakeoff.results.check import Check, Gauge
from bakeoff.search import brute_force
from bakeoff.statistics.averaging import WEIGHTED, averaging_of

FALSE_ALARMS = 0.005  # of each of the two tests, so that both together stay below 1%
RESOLUTION = 2e-6  # relative: what float32 arithmetic on another machine may differ by without any change of model
SIMILAR = 0.99  # cosine above which a changed vector still is nearly the same
LEVELS = 256  # distinct values in a vector up to which it was made of bytes

Way = Literal[
    "same", "other dimension", "other norm", "rotated", "noisier", "quantised", "nearly the same", "other model"
]


class VectorChange(msgspec.Struct, frozen=True, kw_only=True):
    """`size` is the distance of the means in noise floors, `limit` what noise alone reaches once in 200 checks."""

    way: Way
    size: float
    limit: float
    noise: float
    cosine: float
    worst_cosine: float
    norm_ratio: float
    noise_ratio: float

    @property
    def changed(self) -> bool:
        """Whether there is anything to report."""
        return self.way != "same"


def compare(old: NDArray[np.floating], new: NDArray[np.floating]) -> VectorChange:
    """Calls × texts × dimensions against the same texts, asked again."""
    if old.shape[2] != new.shape[2]:
        return _unlike("other dimension")
    a, b = old.astype(np.float64), new.astype(np.float64)
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    norms_a, norms_b = (np.linalg.norm(mean, axis=1) for mean in (mean_a, mean_b))
    scale = float(np.mean(norms_a))
    noise_a, noise_b = (_noise(calls) / scale for calls in (a, b))
    freedom = len(a) + len(b) - 2
    pooled = ((len(a) - 1) * noise_a**2 + (len(b) - 1) * noise_b**2) / freedom
    floor = math.sqrt(max(pooled, RESOLUTION**2))
    moved = math.sqrt(float(np.mean(((mean_b - mean_a) ** 2).sum(axis=1)))) / scale
    size = moved / (floor * math.sqrt(1 / len(a) + 1 / len(b)))
    limit, noisier = limits(len(a), len(b))
    cosines = (mean_a * mean_b).sum(axis=1) / (norms_a * norms_b)
    ratio = max(noise_b, RESOLUTION) / max(noise_a, RESOLUTION)
    way: Way = "same"
    if size > limit:
        way = _way(mean_a, mean_b, b)
    elif ratio > noisier:
        way = "noisier"
    return VectorChange(
        way=way, size=size, limit=limit, noise=floor, cosine=float(cosines.mean()), worst_cosine=float(cosines.min()),
        norm_ratio=float(np.median(norms_b / norms_a)), noise_ratio=ratio,
    )  # fmt: skip


@cache
def limits(old: int, new: int) -> tuple[float, float]:
    """How far means, and how much noise levels, differ by chance.

    One call's noise may be common to all of its texts, so only calls count: F with 1 and calls − 2 degrees for the
    means, F with the calls' own for the levels.
    """
    from scipy.stats import f

    means = float(f.ppf(1 - FALSE_ALARMS, 1, old + new - 2))
    levels = float(f.ppf(1 - FALSE_ALARMS, new - 1, old - 1))
    return math.sqrt(means), math.sqrt(levels)


def _noise(calls: NDArray[np.float64]) -> float:
    """The standard deviation of a vector around its mean over calls, over all texts."""
    spread = calls - calls.mean(axis=0)
    return math.sqrt(float((spread**2).sum()) / (calls.shape[1] * (len(calls) - 1)))


def _way(old: NDArray[np.float64], new: NDArray[np.float64], calls: NDArray[np.float64]) -> Way:
    """In the order in which one explains the others away."""
    unit_old, unit_new = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (old, new))
    moved = float(np.sqrt(np.mean(((unit_new - unit_old) ** 2).sum(axis=1))))
    stretched = float(np.abs(np.linalg.norm(new, axis=1) / np.linalg.norm(old, axis=1) - 1).mean())
    if stretched > 10 * moved:
        return "other norm"
    if all(len(np.unique(vector)) <= min(LEVELS, vector.size // 2) for vector in calls[0]):
        return "quantised"
    angles = float(np.sqrt(np.mean((unit_new @ unit_new.T - unit_old @ unit_old.T) ** 2)))
    if angles < 0.05 * moved:
        return "rotated"
    return "nearly the same" if float((unit_old * unit_new).sum(axis=1).mean()) > SIMILAR else "other model"


def _unlike(way: Way) -> VectorChange:
    nothing = dict.fromkeys(("limit", "noise", "cosine", "worst_cosine", "norm_ratio", "noise_ratio"), math.nan)
    return VectorChange(way=way, size=math.inf, **nothing)


EXPLAINED: dict[Way, str] = {
    "same": "The vectors are the same within the noise.",
    "other dimension": "Vectors have another dimension: nothing that was stored can be searched with them.",
    "other norm": "Vectors have another length but the same direction: cosine is as before, inner product is not.",
    "rotated": "Angles between texts are as before, but the vectors were turned: stored ones must be made again.",
    "noisier": "On average the vectors are as before, but calls differ more from each other.",
    "quantised": "Vectors are made of few distinct values now: they are quantised.",
    "nearly the same": "Vectors moved a little in every direction, as they do when a model is quantised or converted.",
    "other model": "This is another model: stored vectors must be made again.",
}


def sentences(change: VectorChange, texts: int, calls: Sequence[int]) -> list[str]:
    """What was found, its size against the noise, and what it means."""
    if change.way == "other dimension":
        return ["Changed: other dimension.", EXPLAINED[change.way]]
    return [
        f"{'Changed: ' + change.way if change.changed else 'Same'}: over {texts} texts the mean vectors are "
        f"{change.size:.3g} noise floors apart; noise alone reaches {change.limit:.3g} once in 200 checks.",
        f"Noise floor {change.noise:.2g} (of a vector's length, {calls[0]} calls recorded, {calls[1]} now, "
        f"{change.noise_ratio:.2g} times as noisy); cosine {change.cosine:.6f}, worst {change.worst_cosine:.6f}.",
        EXPLAINED[change.way],
    ]


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
