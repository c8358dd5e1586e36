"""Two processes over one cache, and processes that are killed: what is paid for twice."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from bakeoff.calls.budget import price_of
from bakeoff.calls.key_index import Keys, keys_of
from bakeoff.calls.locks import Claims
from bakeoff.core.progress import Advance
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import AT_RISK_TEXTS, AT_RISK_USD, WORKERS, Embedder, batches
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Price, Provider, Role
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

ASKING = """
import os, sys, time
from pathlib import Path
import numpy as np
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.embed import Embedder
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role

class Hosted(Provider):
    name = default_model = "hosted"
    revision = "1"
    card = ModelCard(name="hosted", batch_items=16)
    def embed(self, texts, role):
        with open(sys.argv[2], "ab", buffering=0) as log:
            log.write(b"".join(text.encode() + b"\\n" for text in texts))
        time.sleep(float(sys.argv[4]))
        return EmbeddingBatch(np.array([[float(text), 1, 1] for text in texts], dtype=np.float32))

texts = [str(number) for number in range(int(sys.argv[3]))]
vectors = Embedder(Hosted(), VectorCache(Path(sys.argv[1]))).embed(texts, Role.DOCUMENT)
assert np.argsort(vectors[:, 0], kind="stable").tolist() == list(range(len(texts)))
"""
CLAIMING = """
import json, sys
from pathlib import Path
import numpy as np
from bakeoff.embedding.cache import VectorCache
from bakeoff.calls.key_index import Keys, keys_of

space = VectorCache(Path(sys.argv[1])).space(json.loads(sys.argv[2]))
texts = sys.argv[3].split()
assert all(space.claims.take(keys_of(texts)))
print("claimed", flush=True)
sys.stdin.readline()
space.put(texts, np.array([[float(text), 1, 1] for text in texts], dtype=np.float32), tokens=None)
space.claims.release(keys_of(texts))
"""
IDENTITY = {"provider": "hosted", "model": "hosted", "dimensions": None, "role": "document", "prompt": ""}


def _asking(folder: Path, log: Path, texts: int, seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", ASKING, str(folder), str(log), str(texts), str(seconds)])


def test_two_processes_at_once_ask_for_each_text_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [_asking(tmp_path / "cache", log, 400, 0.05) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    asked = Counter(log.read_text().split())
    assert len(asked) == 400
    assert set(asked.values()) == {1}


def test_a_killed_process_has_the_next_one_pay_for_what_was_in_flight_only(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = _asking(tmp_path / "cache", log, 600, 0.05)
    other = None
    try:
        while not log.exists() or len(log.read_text().split()) < 150:
            time.sleep(0.01)
            assert process.poll() is None
        other = _asking(tmp_path / "cache", log, 600, 0.05)  # waits for what the first one has claimed
        time.sleep(0.3)
    finally:
        process.kill()
        process.wait()
    assert other.wait(timeout=60) == 0
    asked = Counter(log.read_text().split())
    assert len(asked) == 600
    assert max(asked.values()) <= 2
    assert sum(count == 2 for count in asked.values()) <= 16 * WORKERS


def test_a_space_sees_what_another_one_wrote_and_not_what_it_claims(tmp_path: Path) -> None:
    one, two = (VectorCache(tmp_path).space(IDENTITY) for _ in range(2))
    one.put(["a"], np.ones((1, 3), dtype=np.float32), tokens=1)
    assert "a" not in two
    two.refresh()
    np.testing.assert_array_equal(two.get(["a"])[0], np.ones((1, 3)))
    one.put(["b"], np.full((1, 3), 2.0, dtype=np.float32), tokens=1)
    two.put(["c"], np.full((1, 3), 3.0, dtype=np.float32), tokens=1)
    for space in (one, two):
        space.refresh()
        np.testing.assert_array_equal(space.get(["c", "a", "b"])[0][:, 0], [3, 1, 2])
    assert one.claims.take(keys_of(["x", "y"])) == [True, True]


def test_progress_counts_what_another_process_asks_for_when_it_is_there(tmp_path: Path) -> None:
    """Of 0 to 3 the other process has 0, 1 and 2, and answers only after 3 was asked for here."""

    class Releasing(Provider):
        name = default_model = "hosted"
        revision = "1"
        card = ModelCard(name="hosted", batch_items=2)

        def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
            asked.extend(texts)
            assert other.stdin is not None
            other.stdin.write(b"\n")
            other.stdin.flush()
            return EmbeddingBatch(np.array([[float(text), 1, 1] for text in texts], dtype=np.float32))

    @contextmanager
    def noting(label: str, total: int) -> Iterator[Advance]:
        steps.append(-total)
        yield steps.append

    asked, steps = list[str](), list[int]()
    embedder = Embedder(Releasing(), VectorCache(tmp_path), workers=1, progress=noting)
    identity = json.dumps({**embedder.provider.identity(Role.DOCUMENT), **(embedder.provider.code() or {})})
    command = [sys.executable, "-c", CLAIMING, str(tmp_path), identity, "0 1 2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"claimed\n"
        vectors = embedder.embed(["0", "1", "2", "3"], Role.DOCUMENT)
    assert other.returncode == 0
    assert asked == ["3"]
    assert steps[0] == -4  # four to come
    assert sorted(steps[1:-1]) == [0, 1]  # none of one batch and one of the other, whichever is looked at first
    assert steps[-1] == 3  # then those of the other process
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], [0, 1, 2, 3], rtol=1e-6)


@given(
    lengths=st.lists(st.integers(1, 4000), min_size=1, max_size=600),
    price=st.sampled_from([None, 0.0, 0.02, 0.13, 100.0]),
    items=st.sampled_from([1, 96, 2048]),
)
def test_what_is_in_flight_is_at_most_256_texts_or_a_cent(lengths: list[int], price: float | None, items: int) -> None:
    listed = None if price is None else Price(usd_per_million_tokens=price, seen="2026-11", source="test")
    card = ModelCard(name="m", batch_items=items, price=listed)
    texts = ["x" * length for length in lengths]
    cut = list(batches(texts, card, WORKERS))
    assert [text for batch in cut for text in batch] == texts
    for batch in cut:
        usd = price_of(sum(max(1.0, len(text) / 4) for text in batch), card)
        cheap = price is not None and usd * WORKERS <= AT_RISK_USD * (1 + 1e-9)
        assert len(batch) * WORKERS <= AT_RISK_TEXTS or cheap
        assert len(batch) <= items


def test_without_a_price_at_risk_nothing_is_cut() -> None:
    card = ModelCard(name="m", batch_items=2048)
    assert [len(batch) for batch in batches(["x"] * 3000, card)] == [2048, 952]
    assert [len(batch) for batch in batches(["x"] * 130, card, WORKERS)] == [64, 64, 2]
    cheap = ModelCard(
        name="m", batch_items=2048, price=Price(usd_per_million_tokens=1.0, seen="2026-11", source="test")
    )
    # a cent is 10,000 tokens at a dollar a million: 2,500 for each of four workers
    assert [len(batch) for batch in batches(["x" * 4] * 3000, cheap, WORKERS)] == [2048, 952]
    assert [len(batch) for batch in batches(["x" * 40] * 300, cheap, WORKERS)] == pytest.approx([250, 50])


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.EIO])
def test_where_files_cannot_be_locked_everyone_asks(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """NFS without lockd: nobody's claim can be seen, so nobody is waited for."""

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.lockf", refused)
    claims, keys = Claims(tmp_path / "asking.lock"), keys_of(["a", "b"])
    assert claims.take(keys) == [True, True]
    claims.release(keys)
    claims.wait(keys)
    assert sum("can't be locked" in record.getMessage() for record in caplog.records) == 1
    claims.close()


def test_a_lock_file_that_cannot_be_opened_is_an_error_and_nobodys_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    claims = Claims(tmp_path / "asking.lock")
    monkeypatch.setattr("os.open", refused)
    with refuses(OSError):
        claims.take(keys_of(["a"]))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EAGAIN])
def test_anothers_claim_is_waited_for(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.lockf", refused)
    assert Claims(tmp_path / "asking.lock").take(keys_of(["a"])) == [False]


class _Hosted(Provider):
    """Asked over a network, as far as the harness knows."""

    name = default_model = "hosted"
    revision = "1"
    card = ModelCard(name="hosted", batch_items=16)

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        return EmbeddingBatch(np.array([[float(text), 1, 1] for text in texts], dtype=np.float32))


def test_batches_of_a_shard_are_claimed_before_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed: list[int] = []
    take = Claims.take

    def noted(self: Claims, keys: Keys) -> list[bool]:
        claimed.append(len(keys))
        return take(self, keys)

    monkeypatch.setattr(Claims, "take", noted)
    embedder = Embedder(_Hosted(), VectorCache(tmp_path))
    space = embedder.space(Role.DOCUMENT)
    assert space is not None
    embedder.embed_batches([["1", "2"], ["3"]], Role.DOCUMENT, space, lambda _: None)
    assert sorted(claimed) == [1, 2]
