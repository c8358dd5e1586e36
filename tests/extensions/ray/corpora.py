"""A small task with line-ups of all kinds, and what must be equal wherever it is run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bakeoff.embedding.cache import VectorCache
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import Outcome
from bakeoff_providers.base import Role

from tests.wire import WireServer

WORDS = [f"w{number}" for number in range(300)]


def write_lineup(folder: Path, contenders: str, documents: int = 330) -> Lineup:
    """The task in `folder/task`, the line-up beside it."""
    random = np.random.default_rng(3)
    (folder / "task" / "qrels").mkdir(parents=True, exist_ok=True)
    texts = [" ".join(random.choice(WORDS, 6 + n % 20)) for n in range(documents)]
    (folder / "task" / "corpus.jsonl").write_text(
        "\n".join(json.dumps({"_id": f"d{n}", "text": text}) for n, text in enumerate(texts))
    )
    (folder / "task" / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": f"q{n}", "text": " ".join(random.choice(WORDS, 4))}) for n in range(12))
    )
    grades = [f"q{n % 12}\td{int(d)}\t{1 + n % 3}" for n, d in enumerate(random.permutation(documents)[:150])]
    (folder / "task" / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *grades]))
    path = folder / "lineup.toml"
    path.write_text(f'task = {{ format = "beir", folder = "task" }}\nrounds = 1\ndepth = 30\n{contenders}')
    return Lineup.read(path)


def hosted(wire: WireServer) -> str:
    """A contender that asks the test's own server, and pays by the list."""
    options = f'{{ base_url = "{wire.base("openai")}", dimensions = 8, batch_items = 10 }}'
    return (
        f'[[contender]]\nprovider = "openai"\nmodel = "text-embedding-3-small"\nstore = "faiss"\noptions = {options}\n'
    )


def all_vectors(cache: Path) -> dict[str, dict[bytes, bytes]]:
    """Every vector of a cache by space and key."""
    stored: dict[str, dict[bytes, bytes]] = {}
    for info in VectorCache(cache).spaces():
        space = VectorCache(cache).space(info.identity)
        stored[info.name] = {
            key.tobytes(): row.tobytes()
            for keys, _, rows in space.batches()
            for key, row in zip(keys, rows, strict=True)
        }
        space.close()
    return stored


def assert_same(one: Outcome, other: Outcome) -> None:
    """Rankings and scores by every bit, what an index loses, and what was asked for."""
    assert one.not_run == other.not_run == []
    assert one.scores == other.scores
    for row, twin in zip(one.ran, other.ran, strict=True):
        assert row.rankings == twin.rankings, row.contender.label  # ids and scores, every bit
        assert (row.search and row.search.loss) == (twin.search and twin.search.loss)
        if row.search and twin.search and row.search.embedding and twin.search.embedding:
            mine, theirs = (r.search.embedding.usage[Role.DOCUMENT] for r in (row, twin))  # type: ignore[union-attr]
            assert (mine.asked, mine.cached, mine.requests) == (theirs.asked, theirs.cached, theirs.requests)
            assert mine.tokens == pytest.approx(theirs.tokens)
