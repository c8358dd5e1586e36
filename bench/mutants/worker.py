"""A process with its own copy of the project: it has loaded the libraries once, and forks for every run of tests."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

LIBRARIES = (
    "numpy", "scipy.stats", "scipy.special", "msgspec", "tenacity", "httpx", "rich", "typer", "faiss", "xxhash",
    "sklearn.metrics", "pytrec_eval", "ir_measures", "bm25s", "jinja2",
)  # fmt: skip
QUIET = ("-x", "-q", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--hypothesis-profile=mutants")
MARKS = "not browser and not servers and not ray and not wheel"


class Survey:
    """A plug-in for pytest: how long each test takes, and which of our functions it calls."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self.roots, self.now, self.tests = roots, set[str](), dict[str, dict[str, Any]]()
        self.shared: dict[str, set[str]] = {}

    def _called(self, frame: FrameType, _event: str, _: object) -> None:
        if frame.f_code.co_filename.startswith(self.roots):
            self.now.add(f"{frame.f_code.co_filename}:{frame.f_code.co_firstlineno}")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """What a fixture calls counts for all tests of the file, since another may be the first to need it."""
        self.now = self.shared.setdefault(item.nodeid.partition("::")[0], set())
        with self._watched():
            yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """The test's own calls and time."""
        self.now, begin = set(), _seconds()
        with self._watched():
            outcome = yield
        if outcome.excinfo is None:  # type: ignore[attr-defined]
            self.tests[item.nodeid] = {"seconds": _seconds() - begin, "calls": self.now}

    @contextlib.contextmanager
    def _watched(self) -> Generator[None]:
        sys.settrace(self._called)
        threading.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)

    def written(self) -> dict[str, Any]:
        """Each test with all that it may call."""
        return {
            name: {"seconds": seen["seconds"], "calls": sorted(seen["calls"] | self.shared[name.partition("::")[0]])}
            for name, seen in self.tests.items()
        }


def _seconds() -> float:
    """Of the processor, also by children that have ended: how busy the machine is makes no test slow."""
    return sum(os.times()[:4])


def forked(job: dict[str, Any], answer: Path) -> int | None:
    """The exit code of pytest in a child of its own; None where the time was up."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        with answer.with_suffix(".log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        code = 70
        with contextlib.suppress(BaseException):
            code = _tested(job, answer)
        os._exit(code)
    end = time.monotonic() + float(job["limit"])
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _ended(child)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    _ended(child)
    os.waitpid(child, 0)
    return None


def _ended(group: int) -> None:
    """The child and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _tested(job: dict[str, Any], answer: Path) -> int:
    base = [*QUIET, "-m", MARKS, f"--basetemp={answer.with_suffix('.files')}", *job["tests"]]
    if not job["survey"]:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        return int(pytest.main(base))
    survey = Survey(tuple(str(Path(root).resolve()) for root in ("harness", "providers")))
    code = int(pytest.main(base[1:], plugins=[survey]))  # to the end, whatever fails
    answer.write_text(json.dumps(survey.written()))
    return code


def main() -> None:
    """Jobs come as lines of JSON; each gets a line with the exit code."""
    settings.register_profile(
        "mutants", derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    answer = Path(sys.argv[1])
    for line in sys.stdin:
        job = json.loads(line)
        changed = Path(job["module"]) if job["module"] else None
        if changed is not None:
            before, times = changed.read_bytes(), changed.stat()
            changed.write_text(job["source"])
        begin = time.monotonic()
        code = forked(job, answer)
        if changed is not None:
            changed.write_bytes(before)
            os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
        print(json.dumps({"code": code, "seconds": time.monotonic() - begin}), flush=True)


if __name__ == "__main__":
    main()
