"""Sweep, load test and footprint over the engines that come from larger packages, by a small drawn sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from bakeoff.extensions.storelab.footprint import footprints
from bakeoff.extensions.storelab.loadtest import loadtest_store
from bakeoff.extensions.storelab.sweep import StoreGrid, sweep
from bakeoff.extensions.storelab.vector_sample import VectorSample, synthetic
from bakeoff.extensions.stores.typesense import KEY

from tests.servers import typesense_server
from tests.servers.redis_server import FOLDER, redis_server

pytestmark = pytest.mark.servers

DOCUMENTS, DIMENSIONS = 1000, 16
Options = dict[str, str]


@contextmanager
def _no_server(folder: Path) -> Iterator[Options]:
    yield {}


@contextmanager
def _redis(folder: Path) -> Iterator[Options]:
    if FOLDER not in os.environ:
        pytest.skip(f"{FOLDER} names no folder of Debian's packages: python -m tests.servers.redis_server FOLDER")
    with redis_server(Path(os.environ[FOLDER]), folder) as url:
        yield {"url": url}


@contextmanager
def _typesense(folder: Path) -> Iterator[Options]:
    with pytest.MonkeyPatch.context() as patch, typesense_server.typesense_server(folder) as url:
        patch.setenv(KEY, typesense_server.KEY)
        yield {"url": url}


class Engine(NamedTuple):
    """A store with its server, and values to try; `own_process` says whether the engine runs outside of ours."""

    store: str
    server: Callable[[Path], AbstractContextManager[Options]]
    values: dict[str, list[int]]
    own_process: bool


GRAPH = {"m": [8, 16], "ef": [16, 256]}
ENGINES = [
    Engine("milvus", _no_server, {}, own_process=True),
    Engine("clickhouse", _no_server, GRAPH, own_process=False),
    Engine("redis", _redis, GRAPH, own_process=True),
    Engine("typesense", _typesense, {"ef": [16, 256]}, own_process=True),
]


@pytest.fixture(scope="module")
def sample() -> VectorSample:
    return synthetic(DOCUMENTS, DIMENSIONS, 20)


@pytest.fixture(scope="module", params=ENGINES, ids=lambda engine: engine.store)
def engine(request: pytest.FixtureRequest) -> Engine:
    chosen: Engine = request.param
    return chosen


@pytest.fixture(scope="module")
def options(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Options]:
    with engine.server(tmp_path_factory.mktemp(engine.store)) as found:
        yield found


def test_a_sweep_finds_what_its_parameters_cost(engine: Engine, options: Options, sample: VectorSample) -> None:
    found = sweep(sample, [StoreGrid(engine.store, options, engine.values)], rounds=1, target=1.0)
    assert found.not_run == {}
    assert len(found.points) + found.pruned >= len(engine.values.get("m", [0])) * len(engine.values.get("ef", [0]))
    assert max(point.recall for point in found.points) >= 0.99
    assert all(point.recall == 1 for point in found.points if point.exact)
    assert all(point.latency.n == len(sample.queries) for point in found.points)
    assert all(point.size_model_bytes >= 4 * DIMENSIONS * DOCUMENTS for point in found.points)


def test_clients_at_the_same_time_are_all_answered(engine: Engine, options: Options, sample: VectorSample) -> None:
    found = loadtest_store(engine.store, options, sample, clients=(1, 3), rates=(20,), seconds=0.5)
    assert [(level.loop, level.clients, level.errors) for level in found.levels] == [
        ("closed", 1, {}),
        ("closed", 3, {}),
        ("open", 3, {}),
    ]
    assert all(level.answered for level in found.levels)


def test_a_footprint_has_its_bytes_and_the_engines_memory(
    engine: Engine, options: Options, sample: VectorSample
) -> None:
    (found,) = footprints(sample, [(engine.store, options)]).stores
    assert found.not_run is None
    assert [each.documents for each in found.measured] == [DOCUMENTS // 2, DOCUMENTS]
    for each in found.measured:
        assert each.disk_bytes is None or each.disk_bytes >= 4 * DIMENSIONS * each.documents
        assert ((each.server_bytes or 0) > 1_000_000) == engine.own_process
    assert [each.documents for each in found.projections] == [1_000_000, 100_000_000]
