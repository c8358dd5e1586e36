"""Every long part of a run says where it is, and nothing is shown where nobody asked for it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core import corpus
from bakeoff.core.corpus import collect_documents
from bakeoff.core.files import read_json_lines
from bakeoff.core.progress import Advance, showing, steps, track
from bakeoff.core.remote import SharedFolder
from bakeoff.core.task import Document
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.corpus_chunks import ChunkAsDocumentSays, chunks_of_corpus
from bakeoff.embedding.space import Space
from bakeoff.extensions.vectors.embed_shard import embed_shard
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.running.plan import plan
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.running.shard_folders import ShardNumber

from tests.running.beir_task import beir_task


class Noted:
    """Progress that is kept: for each label, how many steps were to come and how many came."""

    def __init__(self) -> None:
        self.seen: dict[str, list[int]] = {}

    @contextmanager
    def __call__(self, label: str, total: int) -> Iterator[Advance]:
        counts = self.seen.setdefault(label, [0, 0])
        counts[0] += total

        def advance(done: int) -> None:
            counts[1] += done

        yield advance


def test_steps_are_shown_where_it_was_asked_for_and_nowhere_else() -> None:
    inner, outer = Noted(), Noted()
    with showing(outer):
        with showing(inner), steps("a", 2) as advance:
            advance(2)
        with steps("b", 1):
            pass
    with steps("c", 1) as advance:
        advance(1)
    assert (inner.seen, outer.seen) == ({"a": [2, 2]}, {"b": [1, 0]})


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_followed_by_the_megabyte(tmp_path: Path, packed: bool) -> None:
    file, lines = tmp_path / "large.jsonl", b'"0123456789abcdef"\n' * 150_000
    file.write_bytes(gzip.compress(lines, 0) if packed else lines)
    noted = Noted()
    with showing(noted):
        assert sum(1 for _ in read_json_lines(file, str)) == 150_000
    assert noted.seen == {"large.jsonl: MB read": [3, 2]}  # 2.7 MB


def test_every_part_of_a_run_shows_its_steps_to_the_end(tmp_path: Path) -> None:
    beir_task(tmp_path)
    (tmp_path / "lineup.toml").write_text(
        'rounds = 1\ntask = { format = "beir", folder = "." }\n[[contender]]\nranker = "bm25"\n'
        '[[contender]]\nprovider = "fake"\nstore = { name = "faiss", options = { index = "HNSW16" } }\n'
    )
    noted = Noted()
    settings, lineup = Settings(progress=noted), Lineup.read(tmp_path / "lineup.toml")
    plan(lineup, settings)
    outcome = run(lineup, settings)
    with showing(noted):
        folder = save(outcome, tmp_path / "results")
    titles = len(json.loads((folder / "detailed_results.json").read_text())["titles"])
    parts = {label: counts for label, counts in noted.seen.items() if "MB read" not in label}
    assert parts == {
        "hash: texts to count": [300, 300],
        "hash: document vectors": [300, 300],
        "faiss: adding": [300, 300],
        "bm25: texts": [300, 300],
        "preparing": [2, 2],
        "bm25": [0, 0],  # who is waited for
        "fake+faiss": [0, 0],
        "queries": [24, 24],
        "exact search: documents": [300, 300],
        "scoring: contenders": [2, 2],
        "intervals: contenders": [2, 2],
        "verdict": [1, 1],
        "titles": [titles, titles],
        "result: files written": [3, 3],
    }
    assert {"corpus.jsonl: MB read", "queries.jsonl: MB read", "test.tsv: MB read"} <= noted.seen.keys()


def test_documents_that_are_cut_again_and_vectors_that_are_checked_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", 1000)
    documents = collect_documents([[Document(id=f"d{n}", text="a text") for n in range(50)]])
    space = VectorCache(tmp_path).space({"model": "m"})
    space.put([str(n) for n in range(3_000)], np.ones((3_000, 256), dtype=np.float32), None)
    space.close()
    noted = Noted()
    with showing(noted):
        chunks_of_corpus(documents, ChunkAsDocumentSays())
        VectorCache(tmp_path).space({"model": "m"}).close()
        assert list(track("parts", 5, ["ab", "cde"])) == ["ab", "cde"]
    assert noted.seen == {"documents to cut": [50, 50], "cached vectors: MB checked": [2, 2], "parts": [5, 5]}


def test_a_job_is_followed_from_reading_to_sending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    beir_task(tmp_path / "task")
    path = tmp_path / "lineup.toml"
    path.write_text('task = { format = "beir", folder = "task" }\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n')
    shared, noted, number = SharedFolder("memory://followed/shards"), Noted(), ShardNumber(1, 1)
    settings = Settings(cache=shared.fetch(number.folder), progress=noted)

    def saved(space: Space) -> None:
        space.end_shard()
        shared.send(space.folder)

    embed_shard(Lineup.read(path), number, settings, saved=saved)
    assert noted.seen["hash: document texts to count"] == [300, 300]
    assert "corpus.jsonl: MB read" in noted.seen
    to_come, came = noted.seen["files sent"]
    assert to_come == came >= 3
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "other"))
    with showing(noted):
        SharedFolder("memory://followed/shards").fetch()
    assert noted.seen["files fetched"][0] == noted.seen["files fetched"][1] >= 3
