"""Adapters of other packages: every option enters the cache key, though their authors forget it in `identity`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import Settings, run
from bakeoff.running.validation import check_rows
from bakeoff.search.rerankers import RERANKERS
from bakeoff.tasks.load import load_task
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role, cache_key

from tests.installed import install

MODULE = '''
import zlib
from typing import Annotated, Any

import numpy as np
from bakeoff.plugins import EmbeddingBatch, ModelCard, Provider, Reranked, Reranker, Transport


class Letters(Provider):
    """Hashed words; `identity` is the base's, which knows no salt."""

    name, default_model, local = "letters", "v1", True

    def __init__(
        self,
        *,
        model: str | None = None,
        salt: int = 31,
        url: str = "",
        api_key: str = "",
        timeout: Annotated[float, "seconds of one call", Transport] = 1.0,
        helper: Any = None,
    ) -> None:
        self.card = ModelCard(name=model or self.default_model, dimensions=16)
        self.salt = salt

    def embed(self, texts, role):
        vectors = np.full((len(texts), 16), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(f"{self.salt}{word}".encode()) % 16] += 1
        return EmbeddingBatch(vectors)


class Careless(Letters):
    """Says itself what is kept of its code: the options are lost."""

    name = "careless"

    def code(self):
        return {"revision": "1"}


class Judge(Reranker):
    name, default_model, model = "judge", "v1", "v1"

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict

    def rank(self, query, documents):
        return Reranked([float(self.strict)] * len(documents))
'''
POINTS = {"providers": "letters = letters:Letters\ncareless = letters:Careless", "rerankers": "judge = letters:Judge"}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(install(tmp_path / "site", "letters", {"letters": MODULE}, POINTS)))
    yield
    sys.modules.pop("letters", None)


def _lineup(folder: Path, provider: str, one: str, other: str) -> Lineup:
    (folder / "lineup.toml").write_text(
        'task = "wikipedia"\nrounds = 1\nmeasures = ["ndcg@5"]\n'
        f'[[contender]]\nprovider = "{provider}"\nlabel = "a"\nstore = "faiss"\noptions = {{ {one} }}\n'
        f'[[contender]]\nprovider = "{provider}"\nlabel = "b"\nstore = "faiss"\noptions = {{ {other} }}\n'
    )
    return Lineup.read(folder / "lineup.toml")


def test_two_contenders_do_not_share_vectors_that_an_option_tells_apart(tmp_path: Path) -> None:
    lineup = _lineup(tmp_path, "letters", "salt = 31", "salt = 7")
    fresh, kept = (run(lineup, Settings(cache=cache)).scores for cache in (None, tmp_path / "cache"))
    assert fresh["a+faiss"] != fresh["b+faiss"]
    assert kept == fresh


def _key(**options: Any) -> dict[str, Any]:
    return cache_key(PROVIDERS.create("letters", **options), Role.DOCUMENT) or {}


def test_options_enter_the_key_but_those_that_change_no_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _key()
    assert _key(salt=7) == {**plain, "option salt": "7"}
    assert _key(timeout=9.0) == _key(api_key="sk-0123456789") == plain
    assert _key(url="http://me:secret-word@host/v1")["option url"] == "http://host/v1"
    monkeypatch.setenv("ACME_TOKEN", "a-secret-of-acme")
    assert "a-secret-of-acme" not in str(_key(model="a-secret-of-acme")["option model"])
    assert cache_key(PROVIDERS.create("letters", helper=object()), Role.DOCUMENT) is None  # only its address names it


def test_an_object_made_by_hand_keeps_its_options_apart_too() -> None:
    letters = PROVIDERS.get("letters")
    assert cache_key(letters(salt=7), Role.QUERY) == cache_key(PROVIDERS.create("letters", salt=7), Role.QUERY)
    assert cache_key(letters(salt=7), Role.QUERY) != cache_key(letters(), Role.QUERY)


def test_scores_of_a_reranker_are_told_apart_too() -> None:
    keys = [cache_key(RERANKERS.create("judge", strict=strict)) for strict in (False, True)]
    assert keys[0] != keys[1]


def test_our_own_keys_are_as_they_were() -> None:
    """Written down from the version before: another one would lose every cache."""
    own = cache_key(PROVIDERS.create("fake", seed=3, dimensions=8), Role.QUERY)
    assert own == {
        "provider": "fake", "model": "hash", "dimensions": 8, "role": "query", "prompt": "", "revision": "1", "seed": 3,
    }  # fmt: skip
    hosted = cache_key(PROVIDERS.create("voyage", timeout=3.0, batch_items=7, max_chars=10), Role.QUERY)
    assert hosted == {
        "provider": "voyage", "model": "voyage-4", "dimensions": 1024, "role": "query", "prompt": "", "task": "query",
        "truncate": True, "max_chars": 10,
    }  # fmt: skip
    assert cache_key(RERANKERS.create("cohere", price=2.0)) == {"reranker": "cohere", "model": "rerank-v3.5"}


@pytest.mark.parametrize(
    ("provider", "one", "other", "refused"),
    [
        ("careless", "salt = 31", "salt = 7", True),
        ("careless", "timeout = 1.0", "salt = 7", True),  # the default counts
        ("careless", "timeout = 1.0", "timeout = 2.0", False),
        ("careless", "salt = 31", "timeout = 2.0", False),
        ("letters", "salt = 31", "salt = 7", False),
        ("fake", "seed = 1", "seed = 2", False),
        ("minilm", "threads = 1", "threads = 2", False),
        ("tfidf", "max_features = 10", "max_features = 20", False),
    ],
)
def test_validate_refuses_two_rows_that_would_share_vectors(
    tmp_path: Path, provider: str, one: str, other: str, refused: bool
) -> None:
    lineup = _lineup(tmp_path, provider, one, other)
    first, second = check_rows(lineup, load_task(lineup.task, tmp_path))
    assert first.failure is None
    assert second.wrong == refused
    if second.failure:
        assert all(fact in second.failure.text for fact in ("salt", "7", "31", "a+faiss"))
