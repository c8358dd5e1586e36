"""Counting under load. Times are only ever held against lower bounds that sleeping guarantees."""

from __future__ import annotations

import io
import itertools
import threading
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bakeoff.core.facts import fact
from bakeoff.core.figures import Percentiles
from bakeoff.extensions.storelab import loadtest as module
from bakeoff.extensions.storelab.client_loops import (
    DROP_AFTER,
    ClientSamples,
    percentiles_of,
    pool_times,
    run_closed_loop,
    run_closed_loop_during,
    run_open_loop,
)
from bakeoff.extensions.storelab.loadtest import (
    LoadLevel,
    NullStore,
    knee,
    level_of,
    load_facts,
    loadtest,
    loadtest_store,
)
from bakeoff.extensions.storelab.sweep import StoreGrid, sweep
from bakeoff.extensions.storelab.tables import loadtest_sheet, markdown, sweep_sheet, terminal
from bakeoff.extensions.storelab.vector_sample import synthetic
from bakeoff_providers.errors import InputError
from rich.console import Console

from tests.errors import refuses, says
from tests.facts import arguments, sentences


def test_percentiles_come_from_all_samples_together() -> None:
    """A client with one slow request among few, and one with many fast ones: a mean of percentiles would be far off."""
    slow, fast = (
        ClientSamples(Counter({10_000_000: 30})),
        ClientSamples(Counter({1_000_000: 970}), Counter({"OSError": 2}), late=3, dropped=4),
    )
    found = level_of("closed", 2, [slow, fast], 2.0)
    assert (found.answered, found.throughput) == (1000, 500)
    assert (found.latency.p50, found.latency.p95) == (1.0, 1.0)
    assert found.latency.p99 == 10.0
    assert (found.errors, found.late, found.dropped) == ({"OSError": 2}, 3, 4)


def test_closed_loop_asks_every_request_once_and_counts_errors() -> None:
    asked: list[int] = []

    def search(request: int) -> None:
        asked.append(request)
        time.sleep(0.001)
        if request % 3 == 0:
            raise OSError("gone")

    answers, seconds = run_closed_loop(search, 3, 0.1)
    found = level_of("closed", 3, answers, seconds)
    assert len(set(asked)) == len(asked)
    assert found.errors == {"OSError": sum(request % 3 == 0 for request in asked)}
    assert found.answered == len(asked) - found.errors["OSError"]
    assert seconds >= 0.1
    assert found.latency.p50 is not None
    assert found.latency.p50 >= 1.0


def test_clients_really_ask_at_the_same_time() -> None:
    together = threading.Barrier(4)

    def search(request: int) -> None:
        if request < 4:
            together.wait(timeout=30)
        time.sleep(0.001)

    answers, _ = run_closed_loop(search, 4, 0.05)
    assert not any(level.errors for level in answers)
    assert all(client.times for client in answers)


def test_open_loop_counts_from_the_intended_start() -> None:
    """One client needs 20 ms a request and gets one every 5 ms: the last waits for all before it."""
    answers, _ = run_open_loop(lambda _request: time.sleep(0.02), 200, 1, 0.3, drop_after=60)
    times = answers[0].times
    assert times.total() > 20
    assert answers[0].dropped == 0
    assert answers[0].late > 0
    assert max(times) >= (times.total() * 0.02 - 0.3) * 1e9


def test_open_loop_drops_what_is_too_far_behind() -> None:
    answers, _ = run_open_loop(lambda _request: time.sleep(0.05), 200, 1, 0.3, drop_after=0.1)
    sent = answers[0].times.total()
    due = np.cumsum(np.random.default_rng(42).exponential(1 / 200, size=130))
    assert answers[0].dropped > 0
    assert sent + answers[0].dropped == int((due < 0.3).sum())


@pytest.mark.parametrize("count", [1, 5, 59, 60, 300, 5000])
def test_percentiles_are_those_of_all_times(count: int) -> None:
    """Against numpy over the times themselves."""
    times = (np.random.default_rng(count).lognormal(14, 1, size=count)).astype(int).tolist()
    seen = ClientSamples()
    for time_ in times:
        seen.add(time_)
    found = percentiles_of(pool_times([seen, ClientSamples()]))
    assert found.n == count
    for q, needed in {50: 5, 95: 60, 99: 300}.items():
        expected = pytest.approx(np.percentile(times, q) / 1e6, rel=1e-3) if count >= needed else None
        assert getattr(found, f"p{q}") == expected


def test_memory_does_not_grow_with_the_number_of_answers() -> None:
    """A list of 100,000 times takes 4 MB."""
    asked = itertools.count()
    marks = {50_000: threading.Event(), 150_000: threading.Event()}

    def search(_request: int) -> None:
        if mark := marks.get(next(asked)):
            mark.set()

    held: list[int] = []

    def look() -> None:
        for mark in marks.values():
            assert mark.wait(timeout=60)
            held.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        run_closed_loop_during(search, 1, look)
    finally:
        tracemalloc.stop()
    assert held[1] - held[0] < 1_000_000


def _level(clients: int, throughput: float, p95: float, **more: object) -> LoadLevel:
    latency = Percentiles(1000, p95 / 2, p95, None)
    fields = {"loop": "closed", "clients": clients, "seconds": 1.0, "answered": 1000, "throughput": throughput}
    return LoadLevel(**fields, latency=latency, **more)  # type: ignore[arg-type]


def test_the_knee_by_hand() -> None:
    # throughput / p95: 100, 180, 130, 52
    levels = [_level(1, 100, 1.0), _level(2, 198, 1.1), _level(4, 260, 2.0), _level(8, 260, 5.0)]
    best = knee(levels)
    assert best is not None
    assert best.clients == 2
    (found,) = arguments(load_facts(levels), "storelab.knee")
    assert (found["clients"], found["per_second"], found["p95_ms"], found["last"]) == (2, 198, 1.1, False)
    assert (found["most_per_second"], found["most_clients"]) == (260, 4)
    says(sentences(load_facts(levels)))
    assert arguments(load_facts(levels[:2]), "storelab.knee")[0]["last"]
    says(sentences(load_facts(levels[:2])), "--clients")


def test_times_of_a_busy_machine_are_marked() -> None:
    sample = synthetic(200, 8, 20)
    result = loadtest(NullStore(dimensions=8, folder=Path()), sample, clients=(1,), seconds=0.1)
    machine = msgspec.structs.replace(result.machine, cores=2, load_before=12.31, load_after=0.5)
    result.machine = machine
    sheet = loadtest_sheet(result)
    says(sheet.sentences[-1], "12.3", "2 cores")
    assert [cell.endswith(" ?") for cell in sheet.tables[0].rows[0][3:7]] == [True] * 4
    assert "answered/s" in str(sheet)
    swept = sweep(sample, [StoreGrid("faiss", {"index": "Flat"})], rounds=1)
    swept.machine = machine
    says(sweep_sheet(swept).sentences[-1], "12.3", "2 cores")
    assert sweep_sheet(swept).tables[0].rows[0][3].endswith(" ?")
    # Its own load is no other's work.
    swept.machine = result.machine = msgspec.structs.replace(machine, load_before=0.5, load_after=8.0)
    assert not [line for line in (*sweep_sheet(swept).sentences, *loadtest_sheet(result).sentences) if "?" in line]
    assert "?" not in str(sweep_sheet(swept).tables)


def test_limits_delays_and_errors_are_reported() -> None:
    found = load_facts(
        [_level(1, 90, 1.0, limited=True, client_limit=100.0, errors={"X": 2}, late=3, dropped=4, rate=50.0)]
    )
    load = {"clients": 1, "rate": 50.0}
    assert found[1:] == [
        fact("storelab.client_limit", **load, per_second=100.0),
        fact("storelab.late", **load, late=3, dropped=4, dropped_after_s=DROP_AFTER),
        fact("storelab.errors", **load, kinds=["X"], counts=[2]),
    ]
    says(sentences(found))


def test_a_store_that_does_nothing_reaches_the_clients_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT", 0.1)  # the same loop twice on a busy machine: not equal, but of one kind
    sample = synthetic(200, 8, 20)
    result = loadtest(NullStore(dimensions=8, folder=Path()), sample, clients=(1,), seconds=0.3)
    assert result.levels[0].limited


def test_load_on_a_real_store() -> None:
    sample = synthetic(2000, 16, 50)
    result = loadtest_store("faiss", {"index": "HNSW16"}, sample, clients=(1, 2), rates=(50.0,), seconds=0.3)
    assert [(level.loop, level.clients) for level in result.levels] == [("closed", 1), ("closed", 2), ("open", 2)]
    assert [sum(times.values()) for times in result.times_ns] == [level.answered for level in result.levels]
    assert not any(level.errors for level in result.levels)
    assert result.knee in (1, 2)
    sheet = loadtest_sheet(result)
    assert "| open | 2 | 50 |" in markdown(sheet)
    output = io.StringIO()
    Console(width=60, file=output).print(terminal(sheet))
    lines = output.getvalue().splitlines()
    heads = [line for line in lines if line.startswith("loop")]
    assert len(heads) > 1
    assert all(line.split()[:2] == ["loop", "clients"] for line in heads)
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_misspelt_store_is_refused() -> None:
    with refuses(InputError, "'fais'"):
        loadtest_store("fais", {}, synthetic(100, 4, 5))
