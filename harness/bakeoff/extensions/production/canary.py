"""Has the model changed behind its name? Pinned texts are embedded again and compared with a recording.

Calls are repeated, each with the texts in another order, so that batching, padding and whatever else a provider does
make the noise that it makes in use. A change is called when mean vectors are further apart than this noise explains.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.arrays import arrays_in
from bakeoff_providers.base import ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.calls.paid import Account, Calls
from bakeoff.calls.retry import RetryPolicy
from bakeoff.calls.tokens import estimated_tokens
from bakeoff.core.files import read_bytes, read_json_lines, write_atomic
from bakeoff.core.task import Task
from bakeoff.embedding.batches import batches
from bakeoff.embedding.embed import vector_service

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
    """One text and how it is embedded."""

    text: str
    role: Role = Role.DOCUMENT


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording says of itself: who was asked, with what, when."""

    provider: str
    model: str
    options: Mapping[str, Any]
    recorded: str
    texts: Sequence[CanaryText]
    task: str = ""
    documents: Sequence[str] = ()
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """Vectors by call, text and dimension, as the provider gave them: not normalised, since lengths may change too.

    Where a task was named, its documents and queries as they were embedded then.
    """

    head: Head
    vectors: NDArray[np.float32]
    documents: NDArray[np.float32] | None = None
    queries: NDArray[np.float32] | None = None


def shipped_texts() -> list[CanaryText]:
    """The 64 that come with Bakeoff."""
    return [*(CanaryText(text, Role.QUERY) for text in QUERIES), *(CanaryText(text) for text in DOCUMENTS)]


def read_texts(path: Path) -> list[CanaryText]:
    """One's own: JSON Lines with `text` and, where it is a query, `role`."""
    texts = []
    for number, text in read_json_lines(path, CanaryText):
        if not text.text.strip():
            raise InputError("text is empty", file=path, place=f"line {number}")
        texts.append(text)
    if len(texts) < 8:
        raise InputError(f"has {len(texts)} texts", file=path, remedy="give at least 8, of several lengths")
    return texts


def estimate(texts: Sequence[CanaryText], card: ModelCard, calls: int) -> tuple[float, float | None]:
    """Tokens and dollars of so many calls; no dollars where no price is known."""
    tokens = calls * sum(estimated_tokens([text.text], card.prompt(text.role)) for text in texts)
    return tokens, None if card.price is None else tokens * card.price.usd_per_million_tokens / 1e6


def ask(
    provider: Provider, texts: Sequence[CanaryText], calls: int, seed: int, policy: RetryPolicy | None = None
) -> NDArray[np.float32]:
    """All texts in every call, each time in another order and so in other batches."""
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
    """Asks a few times: two calls at least, since one has no noise. A task's texts are asked once."""
    head = Head(
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
    """The queries of a task, once."""
    vectors: NDArray[np.float32] = ask(provider, [CanaryText(q.text, Role.QUERY) for q in task.queries], 1, seed)[0]
    return vectors


def save(recording: Recording, path: Path) -> None:
    """One file: the head as a line of JSON, then the arrays as numpy writes them."""
    buffer = io.BytesIO()
    for array in (recording.vectors, recording.documents, recording.queries):
        if array is not None:
            np.save(buffer, array, allow_pickle=False)
    write_atomic(path, msgspec.json.encode(recording.head) + b"\n" + buffer.getvalue())


def load(path: Path) -> Recording:
    """What `save` wrote."""
    head, newline, body = read_bytes(path).partition(b"\n")
    try:
        if not newline:
            raise ValueError("it has one line only")
        known = msgspec.json.decode(head, type=Head)
        vectors, *rest = arrays_in(body, 3 if known.task else 1)
        if vectors.ndim != 3 or vectors.shape[1] != len(known.texts):
            raise ValueError("texts and vectors do not match")
    except (msgspec.DecodeError, ValueError, EOFError, OSError) as error:
        remedy = "make one: bakeoff canary record"
        raise InputError(f"is no recording of a canary ({error})", file=path, remedy=remedy) from None
    return Recording(known, vectors, *rest)
