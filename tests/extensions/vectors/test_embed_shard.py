"""Vectors made shard by shard, by jobs that know nothing of each other: the figures of one plain run, bit for bit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.cli.shared_options import shard_folders
from bakeoff.core.remote import SharedFolder
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.space import Space
from bakeoff.extensions.corpus_size.study import corpus_sizes
from bakeoff.extensions.vectors.embed_shard import Embedded, embed_shard
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.running.runner import Outcome, run
from bakeoff.running.settings import Settings
from bakeoff.running.shard_folders import ShardNumber, complete_folders
from bakeoff_providers import fake as fake_module
from bakeoff_providers.base import ModelCard, Role
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.errors import refuses, says
from tests.wire import PROXIES, WireServer

LOCAL = """
[[contender]]
provider = "fake"
store = ["faiss", { name = "faiss", label = "codes", options = { index = "SQ8" } }]
[[contender]]
provider = "tfidf"
store = "faiss"
[[contender]]
ranker = "bm25"
"""


def _task(folder: Path, documents: int = 90, queries: int = 35) -> None:
    random = np.random.default_rng(0)
    words = [f"w{number}" for number in range(200)]
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    texts = [" ".join(random.choice(words, 5 + n % 9)) for n in range(documents)]
    texts[7] = texts[80]
    (folder / "corpus.jsonl").write_text(
        "\n".join(json.dumps({"_id": f"d{n}", "text": text}) for n, text in enumerate(texts))
    )
    (folder / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": f"q{n}", "text": " ".join(random.choice(words, 4))}) for n in range(queries))
    )
    grades = [f"q{n % queries}\td{int(document)}\t1" for n, document in enumerate(random.permutation(documents)[:70])]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *grades]))


def _lineup(folder: Path, contenders: str) -> Lineup:
    _task(folder / "task")
    path = folder / "lineup.toml"
    chunking = 'chunking = { chunk_strategy = "fixed", max_chunk_size = 6 }'
    path.write_text(f'task = {{ format = "beir", folder = "task", {chunking} }}\nrounds = 1\ndepth = 20\n{contenders}')
    return Lineup.read(path)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with WireServer() as server:
        yield server


def _hosted(folder: Path, wire: WireServer) -> Lineup:
    options = f'options = {{ base_url = "{wire.base("openai")}", dimensions = 8, batch_items = 20 }}'
    return _lineup(
        folder,
        f'[[contender]]\nprovider = "openai"\nmodel = "text-embedding-3-small"\nstore = "faiss"\n{options}\n',
    )


def _shard(lineup: Lineup, shard: str, out: Path, *, queries: bool = False) -> list[Embedded]:
    number = ShardNumber.parse(shard)
    return embed_shard(lineup, number, Settings(cache=out / number.folder), queries=queries)


def _same(one: Outcome, other: Outcome) -> None:
    assert one.not_run == other.not_run == []
    assert one.scores == other.scores
    for row, twin in zip(one.ran, other.ran, strict=True):
        assert row.rankings == twin.rankings  # ids and scores, every bit
        assert (row.search and row.search.loss) == (twin.search and twin.search.loss)


def test_shards_in_any_order_give_the_figures_of_a_plain_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_module, "ModelCard", lambda **card: ModelCard(**{**card, "batch_items": 16}))
    lineup, out = _lineup(tmp_path, LOCAL), tmp_path / "shards"
    plain = run(lineup, Settings(cache=tmp_path / "plain"))
    for number in (3, 1, 2):
        fake, tfidf = _shard(lineup, f"{number}/3", out)
        assert fake.asked
        assert not fake.failed + tfidf.failed
    sharded = run(lineup, Settings(cache=tmp_path / "own", vectors=complete_folders(out)))
    _same(plain, sharded)
    for row in sharded.ran:
        if row.search and row.search.embedding:
            usage = row.search.embedding.usage[Role.DOCUMENT]
            assert usage.requests == 0
            assert usage.asked == usage.cached
    assert not list((tmp_path / "own").glob("*/*.f32"))  # local queries are timed, not kept


def test_a_job_that_stopped_goes_on_where_it_was(tmp_path: Path, wire: WireServer) -> None:
    lineup, number = _hosted(tmp_path, wire), ShardNumber(1, 2)
    folder = tmp_path / "shards" / number.folder
    (stopped,) = embed_shard(lineup, number, Settings(cache=folder, max_cost=0.000005))
    says(stopped.failed)
    first = [text for request in wire.embeddings() for text in request.texts]
    assert first
    with refuses(InputError, "1/2", "2/2", file="shards"):
        complete_folders(tmp_path / "shards")
    (done,) = embed_shard(lineup, number, Settings(cache=folder))
    asked = [text for request in wire.embeddings() for text in request.texts]
    assert len(asked) == len(set(asked)) == done.texts
    assert done.asked == done.texts - len(first)


def test_room_is_looked_for_for_the_whole_shard_before_the_first_request(
    tmp_path: Path, wire: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineup = _hosted(tmp_path, wire)
    monkeypatch.setattr("bakeoff.extensions.vectors.embed_shard.WINDOW", 1)
    window = 20 * (4 * 8 + 64)  # bytes of the first batch; the shard has several
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=window))
    (refused,) = _shard(lineup, "1/2", tmp_path / "out")
    says(refused.failed, "MB")
    assert wire.embeddings() == []
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000 * window))
    (done,) = _shard(lineup, "1/2", tmp_path / "out")
    assert done.asked > 20


def test_a_missing_shard_is_named_before_anything_is_asked(tmp_path: Path, wire: WireServer) -> None:
    lineup, out = _hosted(tmp_path, wire), tmp_path / "shards"
    for number in (1, 2, 3):
        _shard(lineup, f"{number}/3", out)
    wire.requests.clear()
    whole = complete_folders(out)
    twin = _lineup(tmp_path, LOCAL + (tmp_path / "lineup.toml").read_text().partition("depth = 20\n")[2])
    outcome = run(twin, Settings(vectors=whole))
    assert [row.contender.label for row in outcome.ran] == ["bm25", "text-embedding-3-small+faiss"]
    says(failure_words(outcome.not_run[0].failure), "1/3", "2/3", "3/3", "fake+faiss")
    assert "--contender fake+faiss --shard 1/3" in failure_words(outcome.not_run[0].failure)
    shutil.move(out / "00002-of-00003", tmp_path / "elsewhere")
    with refuses(InputError, "2/3", file="shards") as error:
        complete_folders(out)
    assert "--shard 2/3" in error.value.remedy
    shutil.move(tmp_path / "elsewhere", out / "00002-of-00003")
    wire.requests.clear()
    _task(tmp_path / "task", documents=91)
    (lost,) = run(lineup, Settings(vectors=whole)).not_run
    says(failure_words(lost.failure), "3 shards")
    assert wire.embeddings() == []
    (out / "00001-of-00002").mkdir()
    with refuses(InputError, "2", "3", file="shards"):
        complete_folders(out)
    with refuses(InputError, file="none"):
        complete_folders(tmp_path / "none")


@given(count=st.integers(0, 500), of=st.integers(1, 70))
def test_every_batch_is_in_one_shard(count: int, of: int) -> None:
    shares = [ShardNumber(number, of).share(count) for number in range(1, of + 1)]
    assert [batch for start, stop in shares for batch in range(start, stop)] == list(range(count))
    assert max(stop - start for start, stop in shares) - min(stop - start for start, stop in shares) <= 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "-1/3", "a/b", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with refuses(InputError, place="--shard"):
        ShardNumber.parse(text)


def test_a_shard_that_another_process_writes_is_neither_sent_nor_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs on one machine that share a URL: what the one sends and fetches costs the other nothing."""
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    shared = SharedFolder("memory://bucket/two-writers")
    one, other = (VectorCache(shared.path).space({"provider": "two"}) for _ in range(2))
    vectors = np.ones((1, 4), dtype=np.float32)
    one.put(["a"], vectors, tokens=None)
    other.put(["b"], vectors, tokens=None)
    one.end_shard()
    shared.send(one.folder)
    assert sum(name.endswith(".f32") for name in shared.fetch_listed() or ()) == 1  # the ended one alone
    shared.send_files(file for file in other.folder.iterdir() if file.suffix != ".lock")  # an early state of it
    other.put(["c"], vectors, tokens=None)
    shared.fetch()
    other.put(["d"], vectors, tokens=None)
    other.close()
    assert len(VectorCache(shared.path).space({"provider": "two"})) == 4


def test_a_folder_that_is_a_url_is_copied_here_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "one"))
    lineup = _lineup(tmp_path, LOCAL)
    for number in (1, 2):
        shard = ShardNumber(number, 2)
        shared = SharedFolder("memory://bucket/shards")
        folder = shared.fetch(shard.folder)

        def saved(space: Space, shared: SharedFolder = shared, folder: Path = folder) -> None:
            space.end_shard()
            shared.send(folder)

        embed_shard(lineup, shard, Settings(cache=folder), saved=saved)
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "two"))  # another machine
    fetched = complete_folders(SharedFolder("memory://bucket/shards").fetch())
    assert tmp_path / "two" in fetched[0].parents
    _same(run(lineup, Settings(cache=tmp_path / "plain")), run(lineup, Settings(vectors=fetched)))
    assert SharedFolder(f"file://{tmp_path}/with%20space").fetch() == tmp_path / "with space"
    with refuses(InputError, file="x"):
        SharedFolder("nothing://x")


def test_what_was_removed_at_a_url_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    lineup, address = _lineup(tmp_path, LOCAL), "memory://bucket/again"
    shared = SharedFolder(address)
    for of in (3, 2):
        if of == 2:
            assert len(shard_folders(address)) == 3
            shared._system.rm("/bucket/again", recursive=True)
        for number in range(1, of + 1):
            folder = shared.path / ShardNumber(number, of).folder
            embed_shard(lineup, ShardNumber(number, of), Settings(cache=folder))
            shared.send(folder)
    assert [folder.name for folder in shard_folders(address)] == ["00001-of-00002", "00002-of-00002"]
    for path in shared._system.find("/bucket/again/00002-of-00002"):
        if path.endswith("complete.json"):
            shared._system.rm_file(path)
    with refuses(InputError, "2/2", file="again"):
        shard_folders(address)


def test_files_come_once_and_only_those_that_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "one"))
    shared = SharedFolder("memory://bucket/few")
    for name in ("a/1.f32", "a/2.f32", "b/3.f32"):
        file = shared.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"rows")
    shared.send(shared.path)
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "two"))
    other = SharedFolder("memory://bucket/few")
    fetched: list[str] = []
    get = other._system.get_file

    def noted(there: str, here: str) -> None:
        fetched.append(there)
        get(there, here)

    monkeypatch.setattr(other._system, "get_file", noted)
    with ThreadPoolExecutor(4) as pool:  # as many tasks of a node at once
        for _ in range(4):
            pool.submit(other.fetch_files, ["a/2.f32"])
    assert [name.rpartition("/few/")[2] for name in fetched] == ["a/2.f32"]
    assert (other.path / "a" / "2.f32").read_bytes() == b"rows"
    other.fetch("b")
    assert sorted(file.name for file in other.path.glob("*/*")) == ["2.f32", "3.f32"]


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _lineup(tmp_path, LOCAL)
    monkeypatch.chdir(tmp_path)
    for shard in ("1/2", "2/2"):
        done = CliRunner().invoke(app, ["embed", "lineup.toml", "--shard", shard, "--out", "shards"])
        assert done.exit_code == 0, done.output
        assert f"shard {shard}, fake+faiss, fake+codes: " in done.output
    ran = CliRunner().invoke(app, ["run", "lineup.toml", "--vectors", "shards", "--dry-run"])
    assert ran.exit_code == 0, ran.output
    shutil.rmtree("shards/00001-of-00002")
    lost = CliRunner().invoke(app, ["run", "lineup.toml", "--vectors", "shards"])
    assert isinstance(lost.exception, InputError)
    says(str(lost.exception), "1/2")
    assert lost.exception.remedy == "bakeoff embed LINEUP --shard 1/2 --out shards"


def test_corpus_size_takes_shards_and_asks_for_no_document(
    tmp_path: Path, wire: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    _hosted(tmp_path, wire)
    path, out = tmp_path / "lineup.toml", tmp_path / "shards"
    path.write_text(path.read_text() + '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n')
    for shard in ("1/2", "2/2"):
        _shard(Lineup.read(path), shard, out)
    wire.requests.clear()
    command = ["corpus-size", str(path), "--sizes", "75,80", "--vectors", str(out), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    asked = [text for request in wire.embeddings() for text in request.texts]
    assert len(asked) == len(set(asked)) == 35  # the queries, once for all three sizes
    found = json.loads(done.stdout)
    assert [row["label"] for row in found["rows"]] == ["text-embedding-3-small+faiss", "tfidf+faiss"]
    assert found["not_run"] == {}
    wire.requests.clear()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert wire.embeddings() == []
    refused = CliRunner().invoke(app, [*command[:4], "--address", "auto"])
    says(str(refused.exception), "--address")


def test_nested_samples_ask_for_nothing_twice(tmp_path: Path, wire: WireServer) -> None:
    found = corpus_sizes(_hosted(tmp_path, wire), Settings(cache=tmp_path / "vectors"), (75, 80))
    assert found.sizes == [75, 80, 90]
    asked = [text for request in wire.embeddings() for text in request.texts]
    assert len(asked) == len(set(asked))
    assert {row.label for row in found.rows} == {"text-embedding-3-small+faiss"}
