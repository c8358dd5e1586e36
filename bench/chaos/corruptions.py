"""Damaged caches of vectors and of chat answers: what is still served is what was written, or nothing."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from bakeoff.core.hashing import Identity
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.space import IDENTITY, Space
from bakeoff.extensions.testsets.answers import AnswerCache, question_keys
from bakeoff_providers.chat.base import Reply

from chaos.row import Figure, Plan, not_made

WIDTH, BATCHES, ROWS = 8, 5, 16
SPACES: tuple[Identity, ...] = ({"model": "a", "dimensions": WIDTH}, {"model": "b", "dimensions": None})


@dataclass
class Damage:
    """What all corruptions together showed."""

    attempts: int = 0
    served: int = 0
    wrong_vectors: int = 0
    wrong_answers: int = 0
    errors: int = 0
    other_spaces: int = 0
    first: str = ""


def corruptions(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Two thirds of them hit vectors, the rest the answers of chat models; in a few processes."""
    shares = [range(first, count, plan.jobs) for first in range(plan.jobs)]
    folders = [folder / str(number) for number in range(plan.jobs)]
    with ProcessPoolExecutor(plan.jobs, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(_share, folders, [plan] * plan.jobs, shares))
    counted = [name for name, kind in Damage.__annotations__.items() if kind == "int"]
    damage = Damage(**{name: sum(getattr(part, name) for part in parts) for name in counted})
    damage.first = next((part.first for part in parts if part.first), "")
    return [
        Figure(f"wrong vectors, {damage.attempts:,} corrupted caches ({damage.served:,} served)", damage.wrong_vectors),
        Figure("  wrong answers of chat models", damage.wrong_answers),
        Figure("  spaces that another one's damage reached", damage.other_spaces),
        Figure("  errors", damage.errors, detail=damage.first),
        not_made("corruptions", count - damage.attempts),
    ]


def _share(folder: Path, plan: Plan, numbers: range) -> Damage:
    damage = Damage()
    vectors, answers = _vector_cache(folder / "vectors"), _answer_cache(folder / "answers")
    for number in numbers:
        if plan.over:
            break
        rng = plan.rng("corruptions", number)
        damage.attempts += 1
        try:
            if number % 3:
                _vectors(folder, vectors, rng, damage)
            else:
                _answers(folder, answers, rng, damage)
        except Exception as error:
            damage.errors += 1
            damage.first = damage.first or f"#{number}: {type(error).__name__}: {error}"
    return damage


def _vector(text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.random.default_rng(int(text)).standard_normal(WIDTH).astype(np.float32)


def _vector_cache(folder: Path) -> list[str]:
    texts: list[str] = []
    for number, identity in enumerate(SPACES):
        for shard in range(2):
            space = VectorCache(folder).space(identity)
            for batch in range(BATCHES):
                first = ((number * 2 + shard) * BATCHES + batch) * ROWS
                part = [str(text) for text in range(first, first + ROWS)]
                space.put(part, np.stack([_vector(text) for text in part]), tokens=100)
                texts += part
            space.close()
    return texts


def _vectors(folder: Path, texts: list[str], rng: random.Random, damage: Damage) -> None:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder / "vectors", work)
    hit = rng.choice(sorted(path for path in work.iterdir()))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        _corrupt(rng.choice(sorted(path for path in hit.iterdir() if path.is_file())), rng)
    cache = VectorCache(work)
    list(cache.spaces())
    if rng.random() < 0.3:
        cache.prune()
    for identity in SPACES:
        space = cache.space(identity)
        known = [text for text in texts if text in space]
        damage.served += len(known)
        if known:
            expected = np.stack([_vector(text) for text in known])
            damage.wrong_vectors += int((space.get(known)[0] != expected).any(axis=1).sum())
        damage.other_spaces += space.folder != hit and len(known) < len(texts) // 2
        _append(space)
        space.close()


def _append(space: Space) -> None:
    """A damaged space still takes new vectors, and gives them back."""
    fresh = np.ones((1, WIDTH), dtype=np.float32)
    space.put(["new"], fresh, tokens=1)
    assert (space.get(["new"])[0] == fresh).all()


def _answer_cache(folder: Path) -> list[str]:
    prompts = [f"prompt {number}" for number in range(30)]
    answers = AnswerCache(folder, {"model": "chat"})
    for prompt in prompts:
        reply = Reply(f'{{"grade": 2, "of": "{prompt}"}}', 10, 5)
        answers.put([prompt], [reply], None, question_keys(prompt, 1))
    answers.close()
    return prompts


def _answers(folder: Path, prompts: list[str], rng: random.Random, damage: Damage) -> None:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(folder / "answers", work)
    _corrupt(rng.choice(sorted(path for path in work.rglob("*") if path.is_file())), rng)
    answers = AnswerCache(work, {"model": "chat"})
    for prompt in prompts:
        places = answers.find(question_keys(prompt, 1))
        served = answers.take(places[places >= 0])
        damage.served += len(served)
        damage.wrong_answers += served not in ([], [Reply(f'{{"grade": 2, "of": "{prompt}"}}', 10, 5)])
    answers.put(["new"], [Reply("x", 1, 1)], None, question_keys("new", 1))
    answers.close()


def _corrupt(file: Path, rng: random.Random) -> None:
    """A flipped bit, a cut, a hole, bytes too many, a block twice, another file's bytes, or a file that is gone."""
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data)) if data else 0
    end = min(len(data), at + rng.choice([1, 4, 64, 512]))
    ways: list[Callable[[], object]] = [
        lambda: data.__setitem__(slice(at, at + 1), bytes([data[at] ^ 1 << rng.randrange(8)]) if data else b""),
        lambda: data.__delitem__(slice(at, None)),
        lambda: data.__delitem__(slice(at, end)),
        lambda: data.__setitem__(slice(at, end), bytes(end - at)),
        lambda: data.__setitem__(slice(at, at), rng.randbytes(rng.choice([1, 7, 64]))),
        lambda: data.__setitem__(slice(at, at), data[at:end]),
        lambda: data.__setitem__(slice(None), rng.randbytes(rng.choice([0, 3, 40, 4000]))),
        lambda: data.__setitem__(slice(None), rng.choice(_siblings(file)).read_bytes()),
    ]
    if rng.random() < 0.05:
        file.unlink()
        return
    rng.choice(ways)()
    if file.name == IDENTITY and rng.random() < 0.5:
        data[:] = rng.choice([b"", b"null", b"[]", b"{}", b'{"dimensions": 10000000000}', b'{"dimensions": "8"}'])
    file.write_bytes(bytes(data))


def _siblings(file: Path) -> list[Path]:
    return sorted(path for path in file.parent.iterdir() if path.is_file() and path.suffix == file.suffix)
