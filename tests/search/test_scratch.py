"""Folders of live processes stay, however many collect at once; those of dead ones go."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from bakeoff.search.stores import scratch as module
from bakeoff.search.stores.scratch import LOCK, PREFIX, collect, scratch
from bakeoff_providers.files import try_lock

MANY = """
import sys, tempfile
from bakeoff.search.stores.scratch import scratch
tempfile.tempdir = sys.argv[1]
for number in range(150):
    with scratch() as folder:
        (folder / "index").write_bytes(b"x")
        assert (folder / "index").read_bytes() == b"x", folder
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_collector_between_a_folder_and_its_lock_takes_nothing_that_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = list[str]()

    def with_a_collector_before(handle: int) -> bool | None:
        if not met:  # another process looks just now, when the lock file exists and nobody holds it
            code = f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}; from bakeoff.search.stores import scratch"
            command = [sys.executable, "-c", f"{code}; print(len(scratch.collect()))"]
            met.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
        return try_lock(handle)

    monkeypatch.setattr(module, "try_lock", with_a_collector_before)
    with scratch() as folder:
        assert met == ["1"]
        assert (folder / LOCK).is_file()
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_keep_their_folders(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", MANY, str(tmp_path)]) for _ in range(4)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_lost_its_process_before_its_lock_goes_when_it_is_old_and_empty(tmp_path: Path) -> None:
    names = [f"{PREFIX}run-1-0123abcd", f"{PREFIX}run-2-0123abcd", f"{PREFIX}mine"]
    for name in names:
        (tmp_path / name).mkdir()
    assert collect() == []  # one that is being made right now looks like this
    for name in names:
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / names[1] / "kept").touch()
    os.utime(tmp_path / names[1], (1, 1))
    assert collect() == [tmp_path / names[0]]


def test_half_a_removal_is_finished_by_the_next(tmp_path: Path) -> None:
    with scratch() as folder:
        (folder / "index").mkdir()
        (folder / "index" / "data").touch()
        saved = folder
        handle = module._open.pop(folder)
        os.close(handle)  # as if its process had been killed
        assert collect() == [saved]
    assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_locks_folders_are_made_and_none_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "try_lock", lambda _handle: None)
    with scratch() as folder:
        assert folder.is_dir()
        os.close(module._open.pop(folder))  # as if its process had been killed
        assert collect() == []
    assert not folder.exists()
