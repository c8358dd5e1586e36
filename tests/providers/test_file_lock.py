"""Whose a lock is, and what is said where there are none."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bakeoff_providers.files import is_at, try_lock


@pytest.fixture
def two_handles(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """One file, opened as two processes would."""
    handles = [os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    yield handles[0], handles[1]
    for handle in handles:
        os.close(handle)


def test_one_holds_it_alone_or_many_share_it(two_handles: tuple[int, int]) -> None:
    first, second = two_handles
    assert try_lock(first) is True
    assert try_lock(second) is False
    assert try_lock(second, shared=True) is False
    assert try_lock(first, shared=True) is True
    assert try_lock(second, shared=True) is True
    assert try_lock(first) is False


def test_a_file_that_was_removed_is_no_longer_at_its_path(two_handles: tuple[int, int], tmp_path: Path) -> None:
    assert is_at(two_handles[0], tmp_path / "lock")
    (tmp_path / "lock").unlink()
    assert not is_at(two_handles[0], tmp_path / "lock")
    (tmp_path / "lock").touch()
    assert not is_at(two_handles[0], tmp_path / "lock")


def test_where_there_are_no_locks_nobody_can_tell(
    two_handles: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    assert try_lock(two_handles[0]) is None
