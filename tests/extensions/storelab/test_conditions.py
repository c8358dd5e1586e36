"""Writes, filters, tenants and cold starts: counted by hand, then on real stores."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from bakeoff.core.facts import fact
from bakeoff.core.filters import Condition
from bakeoff.extensions.storelab import cold
from bakeoff.extensions.storelab.churn import ExpectedContents, ReadWriteLock, Write, churn, plan_writes
from bakeoff.extensions.storelab.client_loops import in_own_process
from bakeoff.extensions.storelab.conditions import ConditionSettings, conditions
from bakeoff.extensions.storelab.filtered import filter_test, metadata_of
from bakeoff.extensions.storelab.tables import conditions_sheet, markdown
from bakeoff.extensions.storelab.vector_sample import VectorSample, synthetic
from bakeoff.search.hits import Hits
from bakeoff.search.stores import STORES
from bakeoff.search.stores.faiss import Faiss
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.errors import refuses, says
from tests.examples import examples
from tests.facts import sentences

REAL = ("faiss", "chroma", "lancedb", "qdrant")
AXES: Vectors = np.array([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], dtype=np.float32)
EAST: Vectors = np.array([[1, 0]], dtype=np.float32)
NONE = np.array([], dtype=np.int64)


def _fill(folder: Path, rows: Sequence[int]) -> Faiss:
    store = Faiss(dimensions=2, folder=folder)
    store.add([str(row) for row in rows], AXES[list(rows)])
    return store


def test_recall_over_what_is_there_now_by_hand(tmp_path: Path) -> None:
    """East asks for 2. All four: rows 0 and 1. Without row 0: rows 1 and 2. With row 3 turned east: rows 3 and 1."""
    store, contents = _fill(tmp_path, range(4)), ExpectedContents(AXES, 4)
    assert contents.look(store, EAST, 2) == (1.0, 0)
    contents.apply(Write(NONE, np.array([0]), NONE, AXES[:0]))
    assert contents.look(store, EAST, 2) == (0.5, 1)  # the store still answers 0 and 1: one of two, and 0 is stale
    store.delete(["0"])
    assert contents.look(store, EAST, 2) == (1.0, 0)
    contents.apply(Write(NONE, NONE, np.array([3]), EAST))
    assert contents.look(store, EAST, 2) == (0.5, 0)  # the store has the old vector of 3, and answers 1 and 2
    store.add(["3"], EAST)
    assert contents.look(store, EAST, 2) == (1.0, 0)


@settings(max_examples=examples(25), deadline=None)
@given(documents=st.integers(40, 400), share=st.floats(2.5, 24))
def test_a_plan_changes_each_document_at_most_once(documents: int, share: float) -> None:
    changed = round(documents * share / 100)
    contents, changes = plan_writes(np.eye(documents, 4, dtype=np.float32) + 1, share)
    at_first = set(contents.rows.tolist())
    inserted, deleted, updated = (
        [row for change in changes for row in getattr(change, part)] for part in ("inserted", "deleted", "updated")
    )
    assert [len(rows) for rows in (inserted, deleted, updated)] == [changed] * 3
    assert len({*inserted, *deleted, *updated}) == 3 * changed
    assert not at_first & set(inserted)
    assert {*deleted, *updated} <= at_first
    assert sum(len(change.replacements) for change in changes) == changed
    for change in changes:
        contents.apply(change)
    assert set(contents.rows.tolist()) == (at_first | set(inserted)) - set(deleted)


def test_a_share_that_leaves_nothing_to_compare_is_refused() -> None:
    with refuses(InputError, "26", "100", place="--writes"):
        plan_writes(np.ones((100, 2), dtype=np.float32), 26)
    with refuses(InputError, "0.1", "100", place="--writes") as refused:
        plan_writes(np.ones((100, 2), dtype=np.float32), 0.1)
    assert "25" in refused.value.remedy


@pytest.mark.parametrize("name", REAL)
def test_real_stores_while_they_are_written_to(name: str, tmp_path: Path) -> None:
    sample = synthetic(200, 16, 20)
    store = STORES.create(name, dimensions=16, folder=tmp_path)
    line = churn(store, sample, 2.5, seconds=0.2, clients=2)
    store.discard()
    assert [phase.name for phase in line.phases][:3] == ["before", "during", "after"]
    assert (line.phases[-1].name == "built again") == (line.rebuild_seconds is not None) == (name in REAL[2:])
    assert line.changed == 5
    for phase in line.phases:
        assert phase.documents == 190
        assert phase.recall == 1 if name == "faiss" else phase.recall >= 0.95
        assert (phase.stale, phase.errors) == (0, {})
        assert phase.latency.n > 0
    assert line.write.n == 3 * 5
    assert (line.waits, line.in_place) == (name == "faiss", name != "faiss")


def test_a_write_has_the_store_alone_and_searches_share_it() -> None:
    lock, inside, seen = ReadWriteLock(needed=True), threading.Barrier(2), []

    def read() -> None:
        with lock.hold_for_reading():
            inside.wait(timeout=30)  # passes only if both are in at the same time
            seen.append("read")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    with lock.hold_for_writing():
        late = threading.Thread(target=lambda: lock.hold_for_reading().__enter__() or seen.append("late"))  # type: ignore[func-returns-value]
        late.start()
        late.join(timeout=0.05)
        assert late.is_alive()
        seen.append("written")
    late.join(timeout=30)
    assert seen == ["read", "read", "written", "late"]


def test_who_passes_by_hand() -> None:
    fields = metadata_of(200, (50, 1), 10)
    assert sum(document.get("share_50", False) for document in fields) == 100
    assert sum(document.get("share_1", False) for document in fields) == 2
    assert [sum(document["tenant"] == tenant for document in fields) for tenant in range(10)] == [20] * 10


@pytest.mark.parametrize("name", REAL)
def test_filters_and_tenants_on_real_stores(name: str, tmp_path: Path) -> None:
    store = STORES.create(name, dimensions=16, folder=tmp_path)
    line = filter_test(store, synthetic(600, 16, 20), tenants=100)
    store.discard()
    assert [(each.name, each.passing) for each in line.filters] == [
        ("none", 600), ("50 %", 300), ("10 %", 60), ("1 %", 6), ("0.1 %", 1), ("1 of 100 tenants", 6),
    ]  # fmt: skip
    for each in line.filters:
        assert each.full == 1
        assert each.recall == 1 if name == "faiss" else each.recall >= 0.95


class HalfBlind(Faiss):
    """Answers under a filter the first of what passes, and one document that does not."""

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        if not filters:
            return super()._search(vector, k, filters)
        passing = super()._search(vector, 400, filters).ids
        everything = super()._search(vector, 400, ()).ids
        wrong = next(item for item in everything if item not in set(passing))
        return Hits([passing[0], wrong], [1.0, 0.0])


def test_short_lists_and_wrong_documents_are_counted(tmp_path: Path) -> None:
    """Half of 400 pass and 4 are asked for: one of four is right, and what does not pass fills nothing."""
    line = filter_test(HalfBlind(dimensions=8, folder=tmp_path), synthetic(400, 8, 10), shares=(50,), k=4)
    assert [(each.recall, each.full) for each in line.filters] == [(1.0, 1.0), (0.25, 0.25)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says what is in memory")
def test_files_are_dropped_from_memory(tmp_path: Path) -> None:
    mounts = [part for part in psutil.disk_partitions(all=True) if tmp_path.is_relative_to(part.mountpoint)]
    if max(mounts, key=lambda part: len(part.mountpoint)).fstype == "tmpfs":
        pytest.skip("a file system in memory has nowhere else to keep its files")
    file = tmp_path / "a"
    file.write_bytes(os.urandom(1 << 20))
    (tmp_path / "empty").touch()
    files = cold.files_under(tmp_path)
    assert [each.name for each in files] == ["a", "empty"]
    assert cold.resident_share([file]) == 1
    assert cold.evict(files)
    assert cold.resident_share([file]) == 0
    assert cold.drop_from_memory(files) == fact("storelab.evicted", files=2, resident_share=0.0)
    assert cold.drop_from_memory([]) == fact("storelab.files_of_a_server")
    says(sentences([cold.drop_from_memory([file]), cold.drop_from_memory([])]))


@pytest.mark.parametrize("name", REAL)
def test_what_was_written_is_opened_and_answers(name: str, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    sample = synthetic(300, 16, 2)
    sample.save(tmp_path)
    (size,) = cold._fill(name, {}, tmp_path, tmp_path / "store")
    assert size is not None
    assert size >= 300 * 16 * 4
    opened = cold.open_again(name, {}, tmp_path / "store", sample.queries[0], 5)
    assert min(opened.open_ms, opened.first_ms, opened.later_ms) > 0


def test_one_store_that_fails_costs_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold, "TIMES", 1)
    stores: list[tuple[str, dict[str, Any]]] = [("faiss", {}), ("faiss", {"index": "IVF9999,Flat"})]
    measured = conditions(synthetic(300, 8, 10), stores, ConditionSettings(cold=True))
    kept, lost = measured.cold
    assert (kept.not_run, len(kept.cold), len(kept.warm)) == (None, 1, 1)
    says(lost.not_run or "", "'IVF9999,Flat'")
    text = markdown(conditions_sheet(measured))
    assert "| faiss | 0.0 |" in text
    says(text, "IVF9999")


def test_what_keeps_nothing_has_no_cold_start(tmp_path: Path) -> None:
    synthetic(100, 8, 2).save(tmp_path)
    with refuses(Unavailable):
        cold._fill("chroma", {"mode": "ephemeral"}, tmp_path, tmp_path)


def test_a_process_that_dies_is_a_reason() -> None:
    with refuses(Unavailable):
        in_own_process(os._exit, 1)


def test_saved_vectors_come_back(tmp_path: Path) -> None:
    sample = synthetic(50, 4, 5)
    sample.save(tmp_path)
    again = VectorSample.load(tmp_path)
    assert np.array_equal(again.documents, sample.documents)
    assert np.array_equal(again.queries, sample.queries)
