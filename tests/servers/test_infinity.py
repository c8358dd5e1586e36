"""infinity-emb's server with MiniLM's weights: embeddings by the openai adapter, reranking by Cohere's.

It wants older versions of numpy, rich and typer than we do, so it lives in an environment of its own: BAKEOFF_INFINITY
is that environment's Python (`make test-torch` makes it).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import Settings, run
from bakeoff.search.rerankers import RERANKERS
from bakeoff_providers.base import Role, check_batch
from bakeoff_providers.errors import CallFailed
from bakeoff_providers.minilm import MiniLM
from bakeoff_providers.openai import OpenAI

from tests.native_task import native_files, write_lineup
from tests.servers.minilm_folder import write_encoder, write_pair_scorer
from tests.wire import PROXIES

PYTHON = os.environ.get("BAKEOFF_INFINITY", "")
pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not PYTHON, reason="BAKEOFF_INFINITY is not set: make test-torch sets it"),
]
TEXTS = ["river", "The cat sat on the mat.", "Ein Fluß trat über die Ufer.", "old mining towns in Utah " * 20]
ENCODER, SCORER = "all-MiniLM-L6-v2", "pair-scorer"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """On loopback only, from folders, with the hub and its usage reports switched off."""
    folder = tmp_path_factory.mktemp("infinity")
    models = {ENCODER: write_encoder(folder / ENCODER), SCORER: write_pair_scorer(folder / SCORER)}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        str(Path(PYTHON).with_name("infinity_emb")),
        "v2",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--url-prefix",
        "/v2",
    ]
    for name, path in models.items():
        command += ["--model-id", str(path), "--served-model-name", name, "--device", "cpu", "--engine", "torch"]
        command += ["--no-model-warmup", "--no-bettertransformer"]
    environment = {key: value for key, value in os.environ.items() if key not in (*PROXIES, "PYTHONPATH")}
    environment |= {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, env=environment)
    url = f"http://127.0.0.1:{port}/v2"
    try:
        deadline = time.monotonic() + 150
        while not _answers(f"{url}/models"):
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
            time.sleep(0.3)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CO_API_KEY", "none-is-wanted")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _asked(url: str, body: dict[str, Any]) -> Any:
    """A request without any SDK or adapter."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_vectors_are_those_of_minilm(server: str) -> None:
    provider = OpenAI(model=ENCODER, base_url=server)
    provider.ready()
    batch = check_batch(provider.embed(TEXTS, Role.DOCUMENT), TEXTS, provider.card)
    own = MiniLM().embed(TEXTS, Role.DOCUMENT).vectors
    assert ((batch.vectors * own).sum(axis=1) / np.linalg.norm(batch.vectors, axis=1)).min() >= 0.999


def test_an_unknown_model_is_refused_with_the_servers_words(server: str) -> None:
    with pytest.raises(CallFailed, match="nobody") as caught:
        OpenAI(model="nobody", base_url=server).embed(["river"], Role.QUERY)
    assert not caught.value.retryable


def test_scores_of_pairs_are_those_that_the_server_gives(server: str) -> None:
    body = {"model": SCORER, "query": "river", "documents": TEXTS}
    results = _asked(f"{server}/rerank", body)["results"]
    expected = {result["index"]: result["relevance_score"] for result in results}
    reranker = RERANKERS.create("cohere", model=SCORER, base_url=server.removesuffix("/v2"))
    scores = reranker.rank("river", TEXTS).scores
    reranker.close()
    assert len(set(scores)) == len(TEXTS)
    assert list(scores) == pytest.approx([expected[place] for place in range(len(TEXTS))], abs=1e-4)


def test_a_run_with_both(server: str, tmp_path: Path) -> None:
    contenders = f"""
[[contender]]
provider = "openai"
model = "{ENCODER}"
label = "served"
store = "faiss"
options = {{ base_url = "{server}" }}
rerank = {{ provider = "cohere", model = "{SCORER}", depth = 2, options = {{ base_url = "{server[:-3]}" }} }}
[[contender]]
provider = "minilm"
store = "faiss"
"""
    path = write_lineup(tmp_path, native_files(), head='measures = ["mrr"]\nrounds = 1', contenders=contenders)
    outcome = run(Lineup.read(path), Settings(cache=tmp_path / "vectors"))
    assert outcome.not_run == []
    rows = {row.contender.label: row for row in outcome.ran}
    for measure, values in rows["minilm+faiss"].scores.items():
        np.testing.assert_allclose(rows["served+faiss"].scores[measure], values, atol=1e-3)
    (second,) = [row for row in outcome.ran if row.contender.row_type == "reranked"]
    assert second.search is not None
    assert second.search.timing.rerank_ns
