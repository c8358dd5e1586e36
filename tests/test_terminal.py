"""A command within this process ends as one in a process of its own does, and leaves no trace."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
import typer

from tests.terminal import bakeoff, bakeoff_process

SECRET = "hunter2-Zq99"


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "nowhere"],
        ["run", f"http://me:{SECRET}@h/x"],
        ["run", "--no-such-option"],
        ["validate", "broken.toml"],
        ["tasks", "x" * 5_000],
        ["--version"],
    ],
)
def test_a_command_ends_alike_in_both(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "broken.toml").write_text("task =\n")
    assert bakeoff(*arguments, cwd=tmp_path) == bakeoff_process(*arguments, cwd=tmp_path)


def _state() -> list[object]:
    loggers = [logging.getLogger(name) for name in (None, "bakeoff", "bakeoff_providers")]
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    return [
        *(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)),
        wakeup, Path.cwd(), dict(os.environ), list(sys.argv), list(sys.path), sys.stdin, sys.stdout, sys.stderr,
        typer.echo, list(warnings.filters), *((logger.level, list(logger.handlers)) for logger in loggers),
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [["--verbose", "show", "nowhere"], ["tasks"]])
def test_a_command_leaves_its_process_as_it_was(tmp_path: Path, arguments: list[str]) -> None:
    before, threads = _state(), threading.active_count()
    files = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        bakeoff(*arguments, cwd=tmp_path, COLUMNS="70", OPENAI_API_KEY="k" * 20)
    assert _state() == before
    until = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < until:  # those that watch for signals end
        time.sleep(0.01)
    assert threading.active_count() == threads
    with contextlib.suppress(FileNotFoundError):
        assert len(list(Path("/proc/self/fd").iterdir())) == files
