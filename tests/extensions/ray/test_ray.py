"""A real Ray of two workers on the loopback interface: the same bits as here, kills, limits, errors, listeners."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from bakeoff.calls.budget import price_of
from bakeoff.core.facts import Fact
from bakeoff.core.progress import Advance
from bakeoff.embedding.cache import VectorCache
from bakeoff.extensions.ray import pool as ray_cluster
from bakeoff.extensions.ray.engine import ActorShard, RayEngine
from bakeoff.extensions.ray.faiss_shards import FaissShards
from bakeoff.extensions.vectors.transfer import one_embedding
from bakeoff.lineup.entries import EngineEntry
from bakeoff.report.words import failure_words
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.search import brute_force
from bakeoff.systems.base import NotRun
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError, Unavailable

from tests.extensions.ray.corpora import all_vectors, assert_same, hosted, write_lineup
from tests.facts import ids
from tests.wire import PROXIES, Fault, WireServer

pytestmark = pytest.mark.ray
pytest.importorskip("ray", reason="pip install 'bakeoff[ray]'")

RAY = EngineEntry(name="ray", workers=2)
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    sources = os.pathsep.join([str(ROOT / "harness"), str(ROOT / "providers")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", sources)
        for name in PROXIES:
            patch.delenv(name, raising=False)
        patch.setenv("OPENAI_API_KEY", "sk-none")
        before = set(Path(tempfile.gettempdir()).glob("bakeoff-ray-*"))
        end = ray_cluster.connect("", 2)
        try:
            yield
        finally:
            end()
    assert set(Path(tempfile.gettempdir()).glob("bakeoff-ray-*")) <= before


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small corpus is many tasks."""
    monkeypatch.setattr(RayEngine, "blocks", 2)
    monkeypatch.setattr(RayEngine, "queries", 5)
    monkeypatch.setattr(brute_force, "FIRST", 64)
    monkeypatch.setattr(brute_force, "BLOCK", 64)


def test_shards_rankings_and_scores_are_those_of_a_local_run(tmp_path: Path) -> None:
    stores = """store = ["faiss", { name = "faiss_shards", label = "flat", options = { shards = 2 } },
      { name = "faiss_shards", label = "graphs", options = { shards = 2, index = "HNSW16", ef = 8 } }]"""
    lineup = write_lineup(
        tmp_path,
        f'[[contender]]\nprovider = "minilm"\n{stores}\n[[contender]]\nprovider = "wordllama"\ndimensions = [64]\n'
        'precision = ["float32", "int8"]\nstore = { name = "faiss", options = { index = "SQ4" } }\n'
        '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n[[contender]]\nranker = "bm25"\n',
    )
    here = run(lineup, Settings(cache=tmp_path / "here"))
    there = run(lineup, Settings(cache=tmp_path / "there", engine=RAY))
    assert_same(here, there)
    losses = [row.search.loss for row in there.ran if row.search]
    assert any(loss and loss.recall < 1 for loss in losses)  # an exact search that had nothing to find proves nothing
    assert all_vectors(tmp_path / "here") == all_vectors(tmp_path / "there")
    shards = [path.stem for path in (tmp_path / "there").glob("*/*.manifest")]
    assert len({name.partition("-")[0] for name in shards}) >= 2  # written by more processes than this one
    assert str(os.getpid()) not in {name.partition("-")[0] for name in shards} or len(shards) > 2
    again = run(lineup.narrow(["minilm+faiss"]), Settings(cache=tmp_path / "there", engine=RAY))
    embedding = again.ran[0].search and again.ran[0].search.embedding
    assert embedding
    assert (embedding.usage[Role.DOCUMENT].requests, embedding.usage[Role.DOCUMENT].cached) == (0, 330)


def test_the_bar_of_vectors_counts_what_is_there_and_ends_with_the_last_text(tmp_path: Path) -> None:
    contender = '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    run(write_lineup(tmp_path, contender, documents=200), Settings(cache=tmp_path / "there"))
    shown: dict[str, list[int]] = {}

    @contextlib.contextmanager
    def bars(label: str, total: int) -> Iterator[Advance]:
        shown[label] = [total, 0]
        yield lambda count: shown[label].__setitem__(1, shown[label][1] + count)

    lineup = write_lineup(tmp_path, contender, documents=330)
    assert run(lineup, Settings(cache=tmp_path / "there", engine=RAY, progress=bars)).not_run == []
    (embedded,) = (bar for label, bar in shown.items() if "document vectors on Ray" in label)
    assert embedded == [330, 330]
    assert shown["scoring on Ray: queries"] == [12, 12]


def test_a_folder_of_vectors_that_a_node_does_not_see_is_named(tmp_path: Path) -> None:
    (tmp_path / "00001-of-00001" / "space").mkdir(parents=True)
    (tmp_path / "00001-of-00001" / "space" / "complete.json").symlink_to(tmp_path / "nowhere")  # listed, and not there
    with pytest.raises(InputError, match=r"00001-of-00001.*127.0.0.1"):
        ray_cluster.check_nodes({}, None, [tmp_path / "00001-of-00001"])


def test_a_folder_for_shards_is_given_by_its_url(tmp_path: Path) -> None:
    lineup = write_lineup(tmp_path, '[[contender]]\nprovider = "fake"\nstore = "faiss"\n', documents=60)
    here = run(lineup, Settings(cache=tmp_path / "here"))
    engine = EngineEntry(name="ray", workers=2, shards=f"file://{tmp_path}/all%20see")
    there = run(lineup, Settings(cache=tmp_path / "there", engine=engine))
    assert_same(here, there)
    assert all_vectors(tmp_path / "all see") == all_vectors(tmp_path / "here")
    assert not (tmp_path / "there").exists()


KILLED = """
import hashlib, os, signal, time
from pathlib import Path

here = Path(__file__).parent

def embed(texts):
    with (here / "asked.txt").open("a") as file:
        file.write("\\n".join(texts) + "\\n")
    if not (here / "killed").exists() and len((here / "asked.txt").read_text().splitlines()) > 300:
        try:
            (here / "killed").touch(exist_ok=False)  # of two that come here at once, one
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return [[b - 127.5 for b in hashlib.sha256(text.encode()).digest()] for text in texts]
"""


def test_a_worker_that_is_killed_costs_at_most_one_batch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    code = tmp_path / "mine.py"
    code.write_text(KILLED)
    lineup = write_lineup(
        tmp_path,
        '[[contender]]\nprovider = "file:mine.py:embed"\nstore = "faiss"\n'
        'options = { batch_items = 20, revision = "1" }\n',
    )
    said: list[Fact | NotRun] = []
    there = run(lineup, Settings(cache=tmp_path / "there", engine=RAY, notice=said.append))
    asked = Counter((tmp_path / "asked.txt").read_text().splitlines())
    assert (tmp_path / "killed").exists()
    documents = {document.text for document in there.task.documents}
    twice = [text for text, count in asked.items() if count > 1 and text in documents]
    assert 0 < len(twice) <= 20
    assert documents <= set(asked)
    assert "ray.worker_replaced" in ids(said)
    assert "ray.worker_replaced" in caplog.text
    here = run(lineup, Settings(cache=tmp_path / "here"))
    assert here.scores == there.scores
    assert [row.rankings for row in here.ran] == [row.rankings for row in there.ran]
    assert all_vectors(tmp_path / "here") == all_vectors(tmp_path / "there")


POISON = """
import hashlib, os, signal
from pathlib import Path

def embed(texts):
    if any(text.startswith("poison") for text in texts):
        with (Path(__file__).parent / "deaths.txt").open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGSEGV)
    return [[b - 127.5 for b in hashlib.sha256(text.encode()).digest()] for text in texts]
"""


def test_a_batch_that_kills_every_worker_costs_its_row_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POISON)
    lineup = write_lineup(
        tmp_path,
        '[[contender]]\nprovider = "file:mine.py:embed"\nstore = "faiss"\n'
        'options = { batch_items = 5, revision = "1" }\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n',
        documents=100,
    )
    corpus = tmp_path / "task" / "corpus.jsonl"
    lines = corpus.read_text().splitlines()
    lines[52] = json.dumps({"_id": "d52", "text": "poison for a tokenizer"})
    corpus.write_text("\n".join(lines))
    there = run(lineup, Settings(cache=tmp_path / "there", engine=RAY))
    assert [row.contender.label for row in there.ran] == ["fake+faiss"]
    (lost,) = there.not_run
    assert re.search(r"\b3 workers .*\b5 texts.* '", failure_words(lost.failure))
    assert (tmp_path / "deaths.txt").read_text() == "xxx"
    kept = [vectors for vectors in all_vectors(tmp_path / "there").values() if len(vectors) < 100]
    assert max(map(len, kept)) >= 45  # what was embedded before is not lost


UNLOADABLE = """
import os
import ray

class Model:
    def __init__(self):
        if ray.get_runtime_context().get_actor_id():
            os._exit(3)

    def embed(self, texts):
        return [[1.0, 2.0]] * len(texts)
"""


def test_workers_that_end_before_they_have_a_model_end_the_row(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(UNLOADABLE)
    contender = '[[contender]]\nprovider = "file:mine.py:Model"\nstore = "faiss"\noptions = { revision = "1" }\n'
    lineup = write_lineup(tmp_path, contender, documents=60)
    (lost,) = run(lineup, Settings(cache=tmp_path / "there", engine=RAY)).not_run
    assert "workers ended while they had the same batch" in failure_words(
        lost.failure
    ) or "no worker could start" in failure_words(lost.failure)


LOADED = """
import hashlib, os, time
from pathlib import Path

class Model:
    def __init__(self):
        with (Path(__file__).parent / "loads.txt").open("a") as file:
            file.write(f"{os.getpid()}\\n")

    def embed(self, texts):
        time.sleep(0.5)  # the first worker that is there must not be done before the second has started
        return [[b - 127.5 for b in hashlib.sha256(text.encode()).digest()] for text in texts]
"""


def test_each_worker_loads_its_model_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LOADED)
    lineup = write_lineup(
        tmp_path,
        '[[contender]]\nprovider = "file:mine.py:Model"\nstore = "faiss"\nisolate = false\n'
        'options = { batch_items = 20, revision = "1" }\n',
    )
    assert run(lineup, Settings(cache=tmp_path / "there", engine=RAY)).not_run == []
    loads = Counter((tmp_path / "loads.txt").read_text().split())
    here = loads.pop(str(os.getpid()))  # it embeds the queries
    assert here >= 1
    assert sorted(loads.values()) == [1, 1]  # 17 batches between two workers


def _index_holders() -> list[psutil.Process]:
    holders = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "IndexHolder" in process.name():
                holders.append(process)
    return holders


def test_an_index_that_is_killed_is_built_again(tmp_path: Path) -> None:
    lineup = write_lineup(tmp_path, '[[contender]]\nprovider = "fake"\nstore = "faiss"\n', documents=200)
    engine = RayEngine(RAY)
    engine.start(lineup.contenders, None)
    space = VectorCache(tmp_path / "cache").space({"dimensions": 8})
    vectors = np.random.default_rng(0).standard_normal((200, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    space.put([f"t{n}" for n in range(200)], vectors, None)
    from bakeoff.embedding.vector_rows import VectorRows

    earlier = {process.pid for process in _index_holders()}  # of rows that are just being ended
    store = FaissShards(dimensions=8, folder=tmp_path / "index", shards=2)
    engine.place(store)
    assert all(isinstance(shard, ActorShard) for shard in store.shards)
    store.fill([f"d{n:03}" for n in range(200)], VectorRows(space, space.places(), (), 8), None)
    before = store.search(vectors[7], 10)
    assert before.ids[0] == "d007"
    holders = [process for process in _index_holders() if process.pid not in earlier]
    assert len(holders) == 2
    for process in holders:
        process.send_signal(signal.SIGKILL)
    assert store.search(vectors[7], 10) == before
    store.close()


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def test_hosted_providers_share_one_rate_limit_and_are_asked_once(tmp_path: Path, wire: WireServer) -> None:
    lineup = write_lineup(tmp_path, hosted(wire), documents=300)
    here = run(lineup, Settings(cache=tmp_path / "here"))
    wire.requests.clear()
    wire.faults.extend([None, None, Fault(status=429, headers={"retry-after": "1"})])
    there = run(lineup, Settings(cache=tmp_path / "there", engine=RAY))
    assert here.scores == there.scores
    assert [row.rankings for row in here.ran] == [row.rankings for row in there.ran]
    assert all_vectors(tmp_path / "here") == all_vectors(tmp_path / "there")
    asked = Counter(text for request in wire.embeddings() for text in request.texts)
    assert sum(asked.values()) == len(asked) + 10  # the batch that was refused, and nothing else, came again
    search = there.ran[0].search
    assert search
    assert search.embedding
    assert search.embedding.usage[Role.DOCUMENT].retries == 1


def test_hosted_providers_share_one_budget(tmp_path: Path, wire: WireServer) -> None:
    lineup = write_lineup(tmp_path, hosted(wire), documents=300)
    price = run(lineup, Settings(cache=tmp_path / "here")).ran[0].search
    assert price
    assert price.embedding
    whole = price_of(price.embedding.usage[Role.DOCUMENT].tokens, price.embedding.card)
    assert whole
    wire.requests.clear()
    (lost,) = run(lineup, Settings(cache=tmp_path / "there", engine=RAY, max_cost=whole / 2)).not_run
    assert "stopped before" in failure_words(lost.failure)
    texts = sum(len(request.texts) for request in wire.embeddings())
    assert 0 < texts < 200  # about half of 300, whatever the number of workers


def _kill_when(wire: WireServer, requests: int, name: str) -> threading.Thread:
    """Kills one process of this name as soon as the server was asked so often."""

    def kill() -> None:
        limit = time.monotonic() + 120
        while len(wire.embeddings()) < requests and time.monotonic() < limit:
            time.sleep(0.01)
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if name in process.name():
                    process.kill()
                    return

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def test_a_hosted_worker_that_is_killed_has_at_most_one_batch_paid_twice(tmp_path: Path, wire: WireServer) -> None:
    lineup = write_lineup(tmp_path, hosted(wire), documents=300)
    here = run(lineup, Settings(cache=tmp_path / "here"))
    wire.requests.clear()
    wire.seconds_each = 0.3  # the server has the request and charges for it; nobody is there for the answer
    killer = _kill_when(wire, 9, "EmbedWorker")
    said: list[Fact | NotRun] = []
    there = run(lineup, Settings(cache=tmp_path / "there", engine=RAY, max_cost=1.0, notice=said.append))
    killer.join()
    assert "ray.worker_replaced" in ids(said)
    assert here.scores == there.scores
    asked = Counter(text for request in wire.embeddings() for text in request.texts)
    assert len(asked) == 312
    assert sum(asked.values()) - len(asked) in (0, 10)  # a batch of ten, if the kill came before it was on disk
    assert all_vectors(tmp_path / "here") == all_vectors(tmp_path / "there")


def test_limits_that_are_gone_stop_the_row_and_charge_all_that_was_given_out(tmp_path: Path, wire: WireServer) -> None:
    lineup = write_lineup(tmp_path, hosted(wire) + '[[contender]]\nprovider = "fake"\nstore = "faiss"\n', documents=300)
    wire.seconds_each = 0.3
    settings = Settings(cache=tmp_path / "there", engine=RAY, max_cost=1.0)
    killer = _kill_when(wire, 6, "SharedLimits")
    there = run(lineup, settings)
    killer.join()
    (lost,) = there.not_run
    assert "the process that keeps the budget and the rate limit has ended" in failure_words(lost.failure)
    assert [row.contender.label for row in there.ran] == ["fake+faiss"]
    paid = [request for request in wire.embeddings() if len(request.texts) > 1]
    tokens = sum(max(1.0, len(text) / 4) for request in paid for text in request.texts)
    price = one_embedding(lineup, "openai").create(tmp_path).card.price
    assert price
    assert settings.budget
    assert settings.budget.spent >= tokens * price.usd_per_million_tokens / 1e6  # never less than what was asked for


def test_what_can_not_work_is_said_before_anything_is_asked(
    tmp_path: Path, wire: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineup = write_lineup(tmp_path, hosted(wire), documents=300)

    def refused(match: str, error: type[Exception] = Unavailable, engine: EngineEntry = RAY) -> None:
        with pytest.raises(error, match=match):
            run(lineup, Settings(cache=tmp_path / "cache", engine=engine))

    refused("64 .* 2", InputError, EngineEntry(name="ray", workers=64))
    gpus = EngineEntry(name="ray", workers=2, gpus_per_worker=1)
    refused("2 .* 1 GPUs .* 0 GPUs", InputError, gpus)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "touch", lambda path: None)
        refused("127.0.0.1", InputError)
    assert wire.embeddings() == []


def test_every_listener_is_on_the_loopback_interface() -> None:
    listening = []
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            listening += [
                (process.name(), c) for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN
            ]
        except psutil.NoSuchProcess:
            continue
    assert {name for name, _ in listening} >= {"gcs_server", "raylet"}
    loopback = ("127.", "::1", "::ffff:127.")
    assert [(name, c.laddr) for name, c in listening if not c.laddr.ip.startswith(loopback)] == []


def test_the_command_starts_and_ends_a_ray_of_its_own(tmp_path: Path) -> None:
    write_lineup(tmp_path, '[[contender]]\nprovider = "fake"\nstore = "faiss"\n[engine]\nworkers = 2\n', documents=60)
    before = set(Path(tempfile.gettempdir()).glob("bakeoff-ray-*"))
    environment = {**os.environ, "BAKEOFF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "bakeoff", "run", "lineup.toml", "--engine", "ray", "--no-charts", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"]
    assert set(Path(tempfile.gettempdir()).glob("bakeoff-ray-*")) == before
