"""Detect a model that changed behind its name: embed pinned texts again and compare them with a recording.

Calls are repeated, each with the texts in another order. Batching and padding then add the same noise as in normal use.
A change is reported if the mean vectors are further apart than this noise explains.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from bakeoff_providers.arrays import arrays_in
from bakeoff_providers.base import ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.calls.budget import estimate_tokens
from bakeoff.calls.paid import Account, Calls
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import read_bytes, read_json_lines, write_atomic
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Task
from bakeoff.embedding.embed import batches, vector_service
from bakeoff.embedding.unit import unit
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.extensions.production.log_replay import overlap
from bakeoff.results.check import Check, Gauge
from bakeoff.search import brute_force
from bakeoff.statistics.averaging import task_averaging

QUERIES = (
    "refund", "NASA", "e=mc²", "how do I reset my password", "cheap flights to Lisbon in March",
    "difference between TCP and UDP", "symptoms of iron deficiency", "who painted the ceiling of the Sistine Chapel",
    "best pasta recipe without garlic", "is it legal to record a phone call", "python sort dictionary by value",
    "error 0x80070057 when copying files", "what is the boiling point of water at 3000 m altitude",
    "restaurants open now near the main station", "why does my sourdough not rise in winter",
    "explain like I am five: how do vaccines work", "wie lange ist ein Reisepass gültig",
    "quelle est la capitale de l'Australie", "¿cómo se conjuga el verbo ir en pasado?", "как приготовить борщ",
    "ποια είναι η μεγαλύτερη λίμνη της Ελλάδας", "ما هي عاصمة المغرب", "מתי נוסדה העיר חיפה", "दिल्ली का मौसम कैसा है",
    "长城有多长", "東京から京都まで新幹線で何分", "서울에서 부산까지 얼마나 걸리나요", "ต้มยำกุ้งทำอย่างไร",
    "SELECT name FROM users WHERE id = 42", "🙂 emoji meaning 🚀", "1234 5678 90", "not a question, just a few words",
)  # fmt: skip

_SENTENCES = (
    "The lighthouse was built in 1887 and is still in use, although nobody has lived there since 1961.",
    "A transaction is either applied as a whole or not at all; readers never see one half of it.",
    "To change the filter, switch the machine off, wait until it has cooled down, and turn the lid to the left.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen, mostly in the leaves.",
    "The committee met on Tuesday and postponed the decision about the bridge for the third time.",
    "Interest is calculated daily on the outstanding balance and charged at the end of each month.",
    "In the second half the visitors pressed high, won the ball early and scored twice within five minutes.",
    "Granite is a coarse-grained rock that forms when magma cools slowly below the surface.",
)

DOCUMENTS = (
    *_SENTENCES,
    " ".join(_SENTENCES[:2]), " ".join(_SENTENCES[2:4]), " ".join(_SENTENCES[4:7]), " ".join(_SENTENCES[1:6]),
    " ".join(_SENTENCES), " ".join(_SENTENCES * 2), " ".join(_SENTENCES * 4), " ".join(reversed(_SENTENCES)),
    "Red.", "Opening hours", "Terms and conditions apply.", "def add(a, b):\n    return a + b",
    '{"id": 7, "status": "shipped", "items": [{"sku": "A-1", "count": 3}]}',
    "Der Zug nach Leipzig fährt heute von Gleis sieben und hat etwa zehn Minuten Verspätung.",
    "Le musée est fermé le mardi; l'entrée est gratuite le premier dimanche du mois.",
    "El puente romano cruza el río desde hace casi dos mil años y sigue abierto a los peatones.",
    "Озеро замерзает в ноябре, и до весны по льду можно дойти до острова.",
    "Το λιμάνι βρίσκεται στη βόρεια πλευρά του νησιού και είναι ανοιχτό όλο τον χρόνο.",
    "تأسست المكتبة قبل مئة عام وتضم أكثر من خمسين ألف كتاب.",
    "הספרייה פתוחה בימי ראשון עד חמישי משעה תשע בבוקר.",
    "यह पुल नदी के दोनों किनारों को जोड़ता है और रात में रोशनी से चमकता है।",
    "这座图书馆建于一九一二年，藏书超过十万册，每天上午九点开门。",
    "この駅は市の中心にあり、毎日およそ二万人が利用しています。",
    "이 박물관은 월요일에 쉬며 매달 마지막 수요일에는 무료로 볼 수 있습니다.",
)  # fmt: skip

assert len(QUERIES) == len(DOCUMENTS) == 32


RECORD_CALLS, CHECK_CALLS = 5, 3


class CanaryText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text and the role it is embedded in."""

    text: str
    role: Role = Role.DOCUMENT


DEFAULT_TEXTS = (*(CanaryText(text, Role.QUERY) for text in QUERIES), *(CanaryText(text) for text in DOCUMENTS))


class RecordingHead(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a recording: provider, model, options, time and texts."""

    provider: str
    model: str
    options: Mapping[str, Any]
    recorded: str
    texts: Sequence[CanaryText]
    task: str = ""
    documents: Sequence[str] = ()
    queries: Sequence[str] = ()
    checksum: str = ""  # of the arrays; empty in recordings by earlier versions


@dataclass(frozen=True, slots=True)
class Recording:
    """Vectors by call, text and dimension. They are not normalised, since their norms may change too.

    `documents` and `queries` are the vectors of a task, if one was recorded.
    """

    head: RecordingHead
    vectors: NDArray[np.float32]
    documents: NDArray[np.float32] | None = None
    queries: NDArray[np.float32] | None = None


def read_texts(path: Path) -> list[CanaryText]:
    """Read JSON Lines with `text` and, for queries, `role`."""
    texts = []
    for number, text in read_json_lines(path, CanaryText):
        if not text.text.strip():
            raise InputError("text is empty", file=path, place=f"line {number}")
        texts.append(text)
    if len(texts) < 8:
        raise InputError(f"has {len(texts)} texts", file=path, remedy="give at least 8, of several lengths")
    return texts


def estimate(texts: Sequence[CanaryText], card: ModelCard, calls: int) -> tuple[float, float | None]:
    """Estimate tokens and dollars; dollars are None if the price is unknown."""
    tokens = calls * sum(estimate_tokens([text.text], card.prompt(text.role)) for text in texts)
    return tokens, None if card.price is None else tokens * card.price.usd_per_million_tokens / 1e6


def ask(
    provider: Provider, texts: Sequence[CanaryText], calls: int, seed: int, policy: RetryPolicy | None = None
) -> NDArray[np.float32]:
    """Embed all texts in every call, each time in another order and so in other batches."""
    provider.ready()
    paid, account = Calls(policy or RetryPolicy()), Account()
    rng = np.random.default_rng(seed)
    answers = []
    for _ in range(calls):
        vectors: dict[int, Vectors] = {}
        for role in Role:
            places = rng.permutation([at for at, text in enumerate(texts) if text.role is role]).tolist()
            for batch in batches([texts[at].text for at in places], provider.card):
                got = paid.send(vector_service(provider, role), batch, account)
                vectors.update(zip(places[: len(batch)], got.values, strict=True))
                places = places[len(batch) :]
        answers.append(np.stack([vectors[at] for at in range(len(texts))]))
    return np.stack(answers).astype(np.float32)


def record(
    provider: Provider,
    texts: Sequence[CanaryText],
    options: Mapping[str, Any],
    calls: int = RECORD_CALLS,
    task: Task | None = None,
    seed: int = 0,
) -> Recording:
    """Embed the texts at least twice, since one call shows no noise. A task's texts are embedded once."""
    head = RecordingHead(
        provider=provider.name,
        model=provider.card.name,
        options=dict(options),
        recorded=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        texts=list(texts),
        task=task.name if task else "",
        documents=[document.id for document in task.documents] if task else (),
        queries=[query.id for query in task.queries] if task else (),
    )
    vectors = ask(provider, texts, calls, seed)
    if task is None:
        return Recording(head, vectors)
    documents = ask(provider, [CanaryText(document.whole()) for document in task.documents], 1, seed)[0]
    return Recording(head, vectors, documents, ask_queries(provider, task, seed))


def ask_queries(provider: Provider, task: Task, seed: int = 0) -> NDArray[np.float32]:
    """Embed the queries of a task once."""
    vectors: NDArray[np.float32] = ask(provider, [CanaryText(q.text, Role.QUERY) for q in task.queries], 1, seed)[0]
    return vectors


def save(recording: Recording, path: Path) -> None:
    """Write the head as a line of JSON, then the arrays in numpy's format."""
    buffer = io.BytesIO()
    for array in (recording.vectors, recording.documents, recording.queries):
        if array is not None:
            np.save(buffer, array, allow_pickle=False)
    body = buffer.getvalue()
    head = msgspec.structs.replace(recording.head, checksum=hashlib.sha256(body).hexdigest())
    write_atomic(path, msgspec.json.encode(head) + b"\n" + body)


def load(path: Path) -> Recording:
    """Read what `save` wrote."""
    head, newline, body = read_bytes(path).partition(b"\n")
    try:
        if not newline:
            raise ValueError("it has only one line")
        known = msgspec.json.decode(head, type=RecordingHead)
        if known.checksum and hashlib.sha256(body).hexdigest() != known.checksum:
            raise ValueError("its checksum does not match")
        vectors, *rest = arrays_in(body, 3 if known.task else 1)
        if vectors.ndim != 3 or vectors.shape[1] != len(known.texts):
            raise ValueError("texts and vectors do not match")
    except (msgspec.DecodeError, ValueError, EOFError, OSError) as error:
        remedy = "record one with `bakeoff canary record`"
        raise InputError(f"is not a canary recording ({error})", file=path, remedy=remedy) from None
    return Recording(known, vectors, *rest)


FALSE_ALARMS = 0.005  # rate of each of the two tests; together they stay below 1%
RESOLUTION = 2e-6  # relative difference that float32 arithmetic on another machine may cause
SIMILAR = 0.99  # cosine above which a changed vector is still nearly the same
HARMLESS = 4.5e-3  # share of a vector's norm; calls this far apart have a cosine of 0.99999
SUSPECT = 16  # one text in this many is ignored as the noisiest; one wrong number would hide any change
LEVELS = 256  # vectors with at most this many distinct values were made of bytes

Way = Literal[
    "same", "other dimension", "other norm", "rotated", "noisier", "quantised", "nearly the same", "far apart"
]


class VectorChange(msgspec.Struct, frozen=True, kw_only=True):
    """`size` is the distance between means in noise floors; noise alone reaches `limit` once in 200 checks."""

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
    """Compare calls × texts × dimensions with the same texts, embedded again."""
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
    if size > limit or float(cosines.mean()) < SIMILAR:
        way = _way(mean_a, mean_b, b)
    elif ratio > noisier and noise_b > HARMLESS:
        way = "noisier"
    return VectorChange(
        way=way, size=size, limit=limit, noise=floor, cosine=float(cosines.mean()), worst_cosine=float(cosines.min()),
        norm_ratio=float(np.median(norms_b / norms_a)), noise_ratio=ratio,
    )  # fmt: skip


@cache
def limits(old: int, new: int) -> tuple[float, float]:
    """Upper limits, under no change, for the distance between means and the ratio of noise levels.

    Noise may be common to all texts of a call, so only calls count as independent. The distance follows F with 1 and
    calls − 2 degrees of freedom, the ratio F with calls − 1 on each side.
    """
    from scipy.stats import f

    means = float(f.ppf(1 - FALSE_ALARMS, 1, old + new - 2))
    levels = float(f.ppf(1 - FALSE_ALARMS, new - 1, old - 1))
    return math.sqrt(means), math.sqrt(levels)


def _noise(calls: NDArray[np.float64]) -> float:
    """The standard deviation of a vector around its mean over calls, without the few texts that vary most."""
    variances = ((calls - calls.mean(axis=0)) ** 2).sum(axis=(0, 2)) / (len(calls) - 1)
    kept = np.sort(variances)[: len(variances) - len(variances) // SUSPECT]
    return math.sqrt(float(kept.mean()))


def _way(old: NDArray[np.float64], new: NDArray[np.float64], calls: NDArray[np.float64]) -> Way:
    """Causes are tried in order; an earlier one explains the later ones away."""
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
    return "nearly the same" if float((unit_old * unit_new).sum(axis=1).mean()) > SIMILAR else "far apart"


def _unlike(way: Way) -> VectorChange:
    nothing = dict.fromkeys(("limit", "noise", "cosine", "worst_cosine", "norm_ratio", "noise_ratio"), math.nan)
    return VectorChange(way=way, size=math.inf, **nothing)


def change_facts(change: VectorChange, texts: int, calls: Sequence[int]) -> list[Fact]:
    """The finding, its size relative to the noise, and what it means."""
    found = fact("production.canary_change", way=change.way, changed=change.changed, texts=texts, size=change.size,
                 limit=change.limit)  # fmt: skip
    noise = fact("production.canary_noise", noise=change.noise, recorded=calls[0], now=calls[1],
                 ratio=change.noise_ratio, cosine=change.cosine, worst=change.worst_cosine)  # fmt: skip
    meaning = fact("production.canary_meaning", way=change.way)
    return [found, meaning] if change.way == "other dimension" else [found, noise, meaning]


K = 10
NDCG = Measure.parse("ndcg@10")


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """How today's queries rank the documents that were embedded when the canary was recorded."""

    queries: int
    overlap: float
    score_before: float
    score_after: float
    low: float | None
    high: float | None
    weighting: str | None = None


def check(recording: Recording, provider: Provider, *, calls: int = CHECK_CALLS, task: Task | None = None) -> Check:
    """Embed the texts again. A change is reported only if a second attempt confirms it."""
    if calls < 2:
        raise InputError("one call shows no noise", place="--calls", remedy="give at least 2")
    again = ask(provider, recording.head.texts, calls, seed=len(recording.vectors))
    change = compare(recording.vectors, again)
    if change.changed:
        change = compare(recording.vectors, ask(provider, recording.head.texts, calls, seed=len(recording.vectors) + 1))
    head = recording.head
    facts = [
        fact("production.canary_recording", provider=head.provider, model=head.model, recorded=head.recorded[:10]),
        *change_facts(change, len(head.texts), (len(recording.vectors), calls)),
    ]
    figures = {"provider": head.provider, "model": head.model, "changed": change.changed}
    figures |= msgspec.to_builtins(change)
    gauges = _gauges(change, head.model)
    if task is not None and change.way != "other dimension":
        effect = effect_on(recording, task, ask_queries(provider, task))
        figures["task"] = msgspec.to_builtins(effect)
        facts.append(
            fact("production.canary_effect", task=task.name, k=K, overlap=effect.overlap, measure=NDCG.label,
                 before=effect.score_before, after=effect.score_after, low=effect.low, high=effect.high,
                 weighting=effect.weighting)
        )  # fmt: skip
        gauges.append(
            Gauge("canary_overlap", "Share of a task's top 10 that is unchanged", effect.overlap, {"task": task.name})
        )
    return Check(command="canary", worse=change.changed, facts=facts, figures=figures, gauges=gauges)


def effect_on(recording: Recording, task: Task, queries: NDArray[np.float32]) -> Effect:
    """Embed only the queries again, since an index built earlier keeps its documents."""
    if recording.documents is None or recording.queries is None:
        raise InputError("the recording has no task", place="--task", remedy="record again with --task")
    ids = [document.id for document in task.documents]
    if list(recording.head.documents) != ids or list(recording.head.queries) != [query.id for query in task.queries]:
        raise InputError(f"task {task.name!r} is not the one recorded ({recording.head.task!r})", place="--task")
    documents = unit(recording.documents, recording.head.model)
    before = _rankings(unit(recording.queries, recording.head.model), documents, ids, task)
    after = _rankings(unit(queries, recording.head.model), documents, ids, task)
    asked = [query.id for query in task.queries]
    old, new = (score_queries(join(one, task.judgments, asked), [NDCG], task.rel)[NDCG] for one in (before, after))
    averaging = task_averaging(task)
    change = averaging.pairs({"after": new, "before": old})[0]
    shared = np.array([overlap(before[query].ids, after[query].ids, K) for query in asked])
    return Effect(
        queries=len(asked), overlap=averaging.mean(shared), score_before=averaging.mean(old),
        score_after=averaging.mean(new), low=change.low, high=change.high,
        weighting=None if averaging.weights is None else "traffic",
    )  # fmt: skip


def _rankings(
    queries: NDArray[np.float32], documents: NDArray[np.float32], ids: Sequence[str], task: Task
) -> dict[str, Ranking]:
    rows, scores = brute_force.nearest(queries, documents, K)
    return {
        query.id: make_ranking((ids[row], float(score)) for row, score in zip(rows[at], scores[at], strict=True))
        for at, query in enumerate(task.queries)
    }


def _gauges(change: VectorChange, model: str) -> list[Gauge]:
    labels = {"model": model}
    return [
        Gauge("canary_changed", "1 if the model changed behind its name", float(change.changed), labels),
        Gauge("canary_size", "Distance to the recording in noise floors", change.size, labels),
        Gauge("canary_cosine", "Mean cosine to the recording", change.cosine, labels),
        Gauge("canary_noise", "Noise floor as a share of a vector's length", change.noise, labels),
    ]


def file_for(provider: str, model: str) -> Path:
    """The default name of a recording."""
    safe = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in model)
    return Path(f"{provider}-{safe}.canary")
