"""A temporary disk without room costs the rows that need it, and each says what helps."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bakeoff.core.files import explain_full_disk
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import Embedder
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role
from bakeoff_providers.errors import InputError

from tests.errors import refuses, says
from tests.running.beir_task import beir_task

MEGABYTE = 1 << 20


def _lineup(folder: Path) -> Lineup:
    beir_task(folder / "task")
    path = folder / "lineup.toml"
    path.write_text(
        'task = { format = "beir", folder = "task" }\nrounds = 1\n'
        '[[contender]]\nprovider = "fake"\nstore = ["faiss", "sqlite_vec"]\n[[contender]]\nranker = "bm25"\n'
    )
    return Lineup.read(path)


def test_vectors_without_a_cache_name_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    outcome = run(_lineup(tmp_path), Settings(cache=None))
    assert [row.contender.label for row in outcome.ran] == ["bm25"]
    for row in outcome.not_run:
        says(failure_words(row.failure), "MB")
        says(failure_words(row.failure), "TMPDIR")
        assert "--no-cache" not in failure_words(row.failure)


def test_a_store_on_disk_looks_for_room_and_one_in_memory_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineup = _lineup(tmp_path)
    assert run(lineup, Settings(cache=tmp_path / "cache")).not_run == []
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    outcome = run(lineup, Settings(cache=tmp_path / "cache"))
    (refused,) = outcome.not_run
    assert "sqlite" in refused.contender.label
    says(failure_words(refused.failure), "TMPDIR")


def test_an_engine_that_finds_the_disk_full_names_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("FullError: database or disk is full")

    monkeypatch.setattr("bakeoff.extensions.stores.sqlite_vec.SqliteVec._add", full)
    (refused,) = run(_lineup(tmp_path), Settings(cache=tmp_path / "cache")).not_run
    says(failure_words(refused.failure))
    says(failure_words(refused.failure), "TMPDIR")


def test_other_errors_stay_what_they_are() -> None:
    with refuses(RuntimeError), explain_full_disk():
        raise RuntimeError("of another kind")
    with pytest.raises(PermissionError), explain_full_disk():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


class Unsaid(Provider):
    """A model that does not say its dimensions."""

    name = default_model = "unsaid"
    local = True

    def __init__(self) -> None:
        self.card = ModelCard(name="unsaid", batch_items=8)
        self.asked = 0

    def embed(self, texts: list[str], role: Role) -> EmbeddingBatch:  # type: ignore[override]
        self.asked += len(texts)
        return EmbeddingBatch(np.ones((len(texts), 4), dtype=np.float32))


def test_dimensions_that_nobody_said_are_looked_at_once_they_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,096 dimensions are reckoned with for the first block alone; 80 bytes are what a vector of four really takes."""
    free = {"bytes": 100 * 80}
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=max(free["bytes"], 8 * (4 * 4096 + 64))))
    blocks = [[f"{start} {n}" for n in range(8)] for start in range(200)]
    provider = Unsaid()
    Embedder(provider, VectorCache(tmp_path / "one")).embed_corpus(blocks, 1_600, tmp_path)
    assert provider.asked == 1_600  # 26 MB would have been asked for
    provider = Unsaid()
    many = 10_000_000
    with refuses(InputError, "800", "MB"):
        Embedder(provider, VectorCache(tmp_path / "two")).embed_corpus(blocks, many, tmp_path)
    assert provider.asked == 8
