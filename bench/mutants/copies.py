"""Copies of the project in which mutants are tried, and what each test calls there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COPIED = ("harness", "providers", "tests")
PLENTY = 900.0  # seconds for all tests of a file


@dataclass(frozen=True, slots=True)
class Seen:
    """A test: its time, and the functions of ours that it calls, as file:line."""

    name: str
    seconds: float
    calls: frozenset[str]


class Copy:
    """A folder with the sources and the tests, and the process that runs tests in it."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder, self.answer = folder, folder.with_name(folder.name + "-answer.json")
        folder.mkdir()
        for entry in root.iterdir():
            if entry.name in COPIED:
                shutil.copytree(entry, folder / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
            elif not entry.name.startswith("."):
                (folder / entry.name).symlink_to(entry)
        paths = os.pathsep.join(str(folder / name) for name in ("harness", "providers", "."))
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), str(self.answer)],
            cwd=folder,
            env={**os.environ, **threads, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tried(self, tests: Sequence[str], limit: float, module: str = "", source: str = "") -> tuple[int | None, float]:
        """pytest's exit code (None: the time was up) and the seconds it took."""
        return self._asked({"tests": tests, "limit": limit, "module": module, "source": source, "survey": False})

    def surveyed(self, test_file: str) -> list[Seen]:
        """Every test of a file that passes, with what it calls; a failing one can't notice a mutant."""
        self.answer.unlink(missing_ok=True)
        self._asked({"tests": [test_file], "limit": PLENTY, "module": "", "source": "", "survey": True})
        if not self.answer.exists():
            print(f"{test_file} can't be run:\n{self.log()}")
            return []
        prefix = f"{self.folder}{os.sep}"
        return [
            Seen(name, entry["seconds"], frozenset(call.removeprefix(prefix) for call in entry["calls"]))
            for name, entry in json.loads(self.answer.read_text()).items()
        ]

    def log(self) -> str:
        """What the last run of tests printed."""
        path = self.answer.with_suffix(".log")
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """Ends the process: it reads no more jobs."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _asked(self, job: dict[str, Any]) -> tuple[int | None, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer["code"], answer["seconds"]


def remembered(copy: Copy, root: Path, test_file: str, memory: Path | None) -> list[Seen]:
    """The survey of a file, from a folder where it is kept as long as neither it nor what it calls has changed."""
    if memory is None:
        return copy.surveyed(test_file)
    path = memory / f"{test_file.replace('/', '-')}.json"
    if path.exists():
        kept = json.loads(path.read_text())
        if kept["files"] == _digests(root, kept["files"]):
            return [Seen(name, seconds, frozenset(calls)) for name, seconds, calls in kept["tests"]]
    seen = copy.surveyed(test_file)
    files = {test_file, *(call.rpartition(":")[0] for test in seen for call in test.calls)}
    tests = [[test.name, test.seconds, sorted(test.calls)] for test in seen]
    memory.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"files": _digests(copy.folder, files), "tests": tests}))
    return seen


def _digests(root: Path, files: Iterable[str]) -> dict[str, str]:
    return {
        file: hashlib.sha256((root / file).read_bytes()).hexdigest() if (root / file).is_file() else ""
        for file in sorted(files)
    }
