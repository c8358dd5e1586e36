"""Clusters that run already: reached by each kind of address, or refused before anything is asked for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from tests.extensions.ray.corpora import hosted, write_lineup
from tests.extensions.ray.heads import LOOPBACK, Head, environment, head, listeners, python_without, two_nodes
from tests.wire import WireServer

pytestmark = pytest.mark.ray
pytest.importorskip("ray", reason="pip install 'bakeoff[ray]'")

S3_USER = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_DEFAULT_REGION": "us-east-1"}
WORDLLAMA = '[[contender]]\nprovider = "wordllama"\nstore = "faiss"\n'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Head]:
    """Sixteen processors on whatever there is, two GPUs that only Ray believes in, and an S3 that nobody serves."""
    nobody = {**S3_USER, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}
    with head(cpus=16, gpus=2, changes=nobody) as running:
        yield running


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def _child(module: str, *arguments: str, folder: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env=environment(**{"BAKEOFF_HOME": str(folder / "home"), **changes}),
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def _refused(folder: Path, address: str, **changes: str) -> str:
    """What the command says; it ends with an error and has written no result."""
    arguments = ("run", "lineup.toml", "--engine", "ray", "--address", address, "--no-charts")
    done = _child("bakeoff", *arguments, folder=folder, **changes)
    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert not (folder / "results").exists()
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("kind", ["auto", "client"])
def test_a_cluster_that_runs_gives_the_same_bits(kind: str, cluster: Head, tmp_path: Path) -> None:
    stores = 'store = ["faiss", { name = "faiss_shards", label = "parts", options = { shards = 2 } }]'
    write_lineup(tmp_path, f'[[contender]]\nprovider = "wordllama"\n{stores}\n[engine]\nworkers = 2\n')
    address, changes = ("auto", {"RAY_ADDRESS": cluster.address}) if kind == "auto" else (cluster.client, {})
    done = _child("tests.extensions.ray.both", "lineup.toml", address, folder=tmp_path, **changes)
    assert done.stdout.startswith("same bits, 1 "), done.stderr  # 330 texts are one batch of its
    listening = listeners(psutil.Process(cluster.process.pid))
    assert {name for name, _ in listening} >= {"gcs_server", "raylet"}
    assert [pair for pair in listening if not pair[1].startswith(LOOPBACK)] == []


def test_sixteen_workers_ask_a_hosted_provider_no_more_than_one_process_does(
    cluster: Head, tmp_path: Path, wire: WireServer
) -> None:
    wire.most_at_once, wire.seconds_each = 4, 0.05  # as many as a local run has under way; one more is a 429
    write_lineup(tmp_path, hosted(wire) + "[engine]\nworkers = 16\n", documents=300)
    done = _child("tests.extensions.ray.both", "lineup.toml", cluster.address, folder=tmp_path)
    assert done.stdout.startswith("same bits"), done.stderr  # the numbers of texts and requests are part of it
    asked = Counter(text for request in wire.embeddings() for text in request.texts)
    assert set(asked.values()) == {2}  # once here, once there: nothing was refused and asked again
    assert 1 < wire.peak <= 4


WHICH_GPU = """
import hashlib, os, pathlib, time

def embed(texts):
    with (pathlib.Path(__file__).parent / "gpus.txt").open("a") as file:
        file.write(os.environ.get("CUDA_VISIBLE_DEVICES", "none") + "\\n")
    time.sleep(0.1)  # the first worker that is there must not be done before the second has started
    return [[b - 127.5 for b in hashlib.sha256(text.encode()).digest()] for text in texts]
"""


def test_workers_get_the_gpus_that_are_asked_for(cluster: Head, tmp_path: Path, wire: WireServer) -> None:
    (tmp_path / "mine.py").write_text(WHICH_GPU)
    contender = '[[contender]]\nprovider = "file:mine.py:embed"\nstore = "faiss"\n'
    contender += 'options = { batch_items = 5, revision = "1" }\n'
    write_lineup(tmp_path, f"{contender}[engine]\nworkers = 2\ngpus_per_worker = 1\n", documents=300)
    done = _child("tests.extensions.ray.both", "lineup.toml", cluster.address, folder=tmp_path)
    assert done.stdout.startswith("same bits"), done.stderr
    assert {"0", "1"} <= set((tmp_path / "gpus.txt").read_text().split())
    write_lineup(tmp_path, hosted(wire) + "[engine]\nworkers = 3\ngpus_per_worker = 1\n")
    said = _refused(tmp_path, cluster.address)
    assert [fact for fact in ("3 workers", "1 GPUs", "16 processors", "2 GPUs") if fact not in said] == []
    assert wire.embeddings() == []


HASHES = """
import hashlib, os, pathlib

def embed(texts):
    with (pathlib.Path(__file__).parent / "asking.txt").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    return [[b - 127.5 for b in hashlib.sha256(text.encode()).digest()] for text in texts]
"""


@pytest.fixture
def bucket() -> Iterator[dict[str, str]]:
    """S3 as moto serves it, and what tells clients of it."""
    moto = pytest.importorskip("moto.server", reason="pip install 'bakeoff[clusters]'")
    s3fs = pytest.importorskip("s3fs", reason="pip install 'bakeoff[clusters]'")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {**S3_USER, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    try:
        s3fs.S3FileSystem(key="nobody", secret="nothing", endpoint_url=settings["AWS_ENDPOINT_URL"]).mkdir("bucket")
        yield settings
    finally:
        server.stop()


def test_nodes_that_share_no_disk_share_shards_by_a_url(cluster: Head, tmp_path: Path, bucket: dict[str, str]) -> None:
    (tmp_path / "mine.py").write_text(HASHES)
    stores = 'store = ["faiss", { name = "faiss_shards", label = "parts", options = { shards = 2, index = "SQ4" } }]'
    contender = f'[[contender]]\nprovider = "file:mine.py:embed"\n{stores}\n'
    contender += 'options = { batch_items = 20, revision = "1" }\n'
    write_lineup(tmp_path, f'{contender}[engine]\nworkers = 2\nshards = "s3://bucket/run"\n')
    with head(changes={**bucket, "BAKEOFF_HOME": str(tmp_path / "elsewhere")}) as far:
        done = _child("tests.extensions.ray.both", "lineup.toml", far.address, folder=tmp_path, **bucket)
        assert done.stdout.startswith("same bits, 0 "), done.stderr  # workers handed them back
        assert len(_asking(tmp_path)) >= 2  # the run here, and workers there
        here, there = ({f.name for f in (tmp_path / n).glob("shards/*/*/*.f32")} for n in ("home", "elsewhere"))
        assert len(there) == 1  # 17 batches are one shard
        assert there <= here  # that machine fetched it to search and to index
    dry = ("run", "lineup.toml", "--engine", "ray", "--dry-run")
    again = _child("bakeoff", *dry, folder=tmp_path, BAKEOFF_HOME=str(tmp_path / "third"), **bucket)
    assert " 342 " in again.stdout, again.stdout + again.stderr
    assert " 330 " in again.stdout  # of 342 texts: a third machine finds the documents
    write_lineup(tmp_path, f'{contender}[engine]\nworkers = 2\nshards = "s3://bucket/other"\n')
    said = _refused(tmp_path, cluster.address, **bucket)
    assert "s3://bucket/other: " in said
    assert "127.0.0.1" in said


SLOW = HASHES.replace("def embed(texts):\n", "def embed(texts):\n    import time\n    time.sleep(0.15)\n")


def test_two_nodes_share_the_work_and_a_worker_has_its_gpus_on_one(tmp_path: Path, wire: WireServer) -> None:
    (tmp_path / "mine.py").write_text(SLOW)
    contender = '[[contender]]\nprovider = "file:mine.py:embed"\nstore = "faiss"\n'
    contender += 'options = { batch_items = 5, revision = "1" }\n'
    with two_nodes() as (process, address):
        write_lineup(tmp_path, hosted(wire) + "[engine]\ngpus_per_worker = 2\n")
        said = _refused(tmp_path, address)
        assert "gpus_per_worker" in said
        assert [fact for fact in ("2 processors", "2 GPUs", "1 on") if fact not in said] == []
        assert wire.embeddings() == []
        listening = listeners(psutil.Process(process.pid))
        assert [name for name, _ in listening].count("raylet") >= 2
        assert [pair for pair in listening if not pair[1].startswith(LOOPBACK)] == []
        write_lineup(tmp_path, f"{contender}[engine]\nworkers = 2\n")
        done = _child("tests.extensions.ray.both", "lineup.toml", address, folder=tmp_path)
    assert done.stdout.startswith("same bits, 2 "), done.stderr  # a worker on each node


def _asking(folder: Path) -> set[str]:
    file = folder / "asking.txt"
    return set(file.read_text().split()) if file.exists() else set()


def test_a_node_without_a_library_or_with_another_bakeoff_is_named_before_anything_is_asked(
    tmp_path: Path, wire: WireServer
) -> None:
    python = python_without(tmp_path / "python", ["wordllama", "bakeoff-"])
    write_lineup(tmp_path, hosted(wire) + WORDLLAMA)
    with head(python) as lacking:
        assert re.search(r"127\.0\.0\.1 .*\bbakeoff none, .* \d", _refused(tmp_path, lacking.address))
        (site_packages,) = (tmp_path / "python").glob("lib/python*/site-packages")
        (site_packages / "bakeoff-0.dist-info").mkdir()
        (site_packages / "bakeoff-0.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: bakeoff\nVersion: {version('bakeoff')}\n"
        )
        said = _refused(tmp_path, lacking.address)
    assert [fact for fact in ("127.0.0.1", "wordllama+faiss", "bakeoff[wordllama]") if fact not in said] == []
    assert wire.embeddings() == []


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "auto"])
def test_no_cluster_at_an_address(address: str, tmp_path: Path, wire: WireServer) -> None:
    write_lineup(tmp_path, hosted(wire))
    said = _refused(tmp_path, address, RAY_ADDRESS="127.0.0.1:1")
    assert f" {address} (" in said
    assert "Connection refused" in said
    assert wire.embeddings() == []


def test_a_cluster_that_asks_for_another_token(cluster: Head, tmp_path: Path, wire: WireServer) -> None:
    write_lineup(tmp_path, hosted(wire))
    said = _refused(tmp_path, cluster.address, RAY_AUTH_TOKEN="0" * 64)
    assert cluster.address in said
    assert "RAY_AUTH_TOKEN" in said
    assert wire.embeddings() == []


def test_a_cluster_of_another_version(tmp_path: Path, wire: WireServer) -> None:
    if not (python := os.environ.get("BAKEOFF_OTHER_RAY")):
        pytest.skip("BAKEOFF_OTHER_RAY names a Python with another Ray: make test-ray makes one")
    write_lineup(tmp_path, hosted(wire))
    with head(python) as other:
        for address in (other.address, other.client):
            said = _refused(tmp_path, address)
            assert f" {address}: " in said
            assert "2.59.0" in said
    assert wire.embeddings() == []
