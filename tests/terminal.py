"""The command line as a terminal runs it: within this process, or in one of its own where that is what is tested."""

from __future__ import annotations

import contextvars
import io
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from bakeoff.cli import main as cli
from bakeoff.cli import signals
from bakeoff_providers import stopping

ROOT = Path(__file__).parents[1]
SOURCES = os.pathsep.join([str(ROOT / "harness"), str(ROOT / "providers")])
COMMAND = "import sys; sys.argv[0] = 'bakeoff'; from bakeoff.cli.main import main; main()"


class Ended(NamedTuple):
    """Exit code, output and errors of a command that ended."""

    returncode: int
    stdout: str
    stderr: str


def bakeoff(*arguments: str, cwd: Path, **environment: str) -> Ended:
    """A command through the entry point, within this process, which is left as it was found."""
    with _kept_process(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["bakeoff", *arguments])
        patch.setattr(sys.modules["__main__"], "__package__", None)  # a script's, which usage lines call by its name
        for name in [name for name in os.environ if name.endswith("_API_KEY")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        out, err = _Stream(), _Stream()
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            contextvars.copy_context().run(cli.main)
            code: object = 0
        except SystemExit as ended:
            code = ended.code or 0
        if not isinstance(code, int):  # as Python does for `sys.exit("text")`
            print(code, file=sys.stderr)
            code = 1
        return Ended(code, out.text(), err.text())


def bakeoff_process(*arguments: str, cwd: Path, code: str = COMMAND, piped: bytes = b"", **environment: str) -> Ended:
    """A command in a process of its own; `code` is what it runs, `piped` what it finds in standard input."""
    clean = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, env=clean | {"PYTHONPATH": SOURCES} | environment,
        input=piped, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


class _Stream(io.TextIOWrapper):
    """A pipe's end: text that becomes bytes, in the encoding that the command chooses."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8")

    def text(self) -> str:
        self.flush()
        return self._bytes.getvalue().decode()


@contextmanager
def _kept_process() -> Iterator[None]:
    """Puts back what a command changes in its process because it has it for itself."""
    variables, path = dict(os.environ), list(sys.path)
    loggers = [(logger, logger.level, list(logger.handlers)) for logger in map(logging.getLogger, _LOGGERS)]
    with ExitStack() as kept:
        kept.enter_context(warnings.catch_warnings())
        if threading.current_thread() is threading.main_thread():
            kept.enter_context(_kept_signals())
        try:
            yield
        finally:
            sys.path[:] = path
            for logger, level, handlers in loggers:
                logger.setLevel(level)
                logger.handlers[:] = handlers
            for name in os.environ.keys() - variables.keys():
                del os.environ[name]
            os.environ.update(variables)
            signals.received.clear()
            stopping.resume()


_LOGGERS = (None, "bakeoff", "bakeoff_providers")


@contextmanager
def _kept_signals() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in signals.SIGNALS}
    wakeup = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if (ours := signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)) != -1:
            with socket.socket(fileno=os.dup(ours)) as writer:  # its reader's thread ends and closes both
                writer.shutdown(socket.SHUT_RDWR)
