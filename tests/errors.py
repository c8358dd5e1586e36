"""Errors and messages by their facts; their wording is held by one stored list, so that it can change in one place.

A test names the facts: which file, which place in it, the value that is quoted, the exit code. How they are put into
words is compared with `tests/stored/messages.txt`, by test, without what differs from run to run.
`python -m tests.errors` runs the tests and writes that list again: read the difference before it is committed.
Arguments are pytest's own.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from bakeoff_providers.errors import InputError

from tests.terminal import Ended

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
STORED = TESTS / "stored" / "messages.txt"
WRITING = "BAKEOFF_TEST_MESSAGES"
_PLACES = "|".join(re.escape(str(folder)) for folder in (tempfile.gettempdir(), ROOT, Path.home()))
_FOLDER = re.compile(rf"(?:{_PLACES})(?:/[\w.+=@~-]*)*/")
_VARIES = re.compile(
    r"\d{8}-\d{6}|[\da-f]{32}|(?<=127\.0\.0\.1:)\d+|(?<=port )\d+|(?<=\$)[\d.]+(?= spent)"
    r"|\d[\d.,]*(?= (?:k?B|MB|GB|ms|s|per second)\b)"
)
_ENDS = re.compile(r"\n|(?<=\.) (?=[A-Z])")

Raised = TypeVar("Raised", bound=BaseException)


@contextmanager
def refuses(
    kind: type[Raised], *naming: str, file: Path | str = "", place: str = ""
) -> Iterator[pytest.ExceptionInfo[Raised]]:
    """What is raised is of this kind and names these facts; an InputError has this file and this place."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert not [fact for fact in naming if fact not in str(error)], str(error)
    remedy = ""
    if isinstance(error, InputError):
        assert str(error.file or "").endswith(str(file)), error.file
        assert error.place == place or not place, error.place
        remedy = error.remedy
    _hold(f"{error}\nremedy: {remedy}" if remedy else str(error))


def refused(done: Ended, *naming: str, code: int = 2) -> None:
    """A command ended with this code, and its errors name these facts."""
    assert done.returncode == code, done
    says(done.stderr, *naming)


def says(text: str | Sequence[str], *naming: str) -> None:
    """A text names these facts, and the lines or sentences that do are as stored; without any facts, all of it is.

    Folders are left out before the lines are chosen: the name of a temporary one may hold any number.
    """
    text = text if isinstance(text, str) else "\n".join(text)
    assert not [fact for fact in naming if fact not in text], text
    lines = [_without_folders(line.strip()) for line in _ENDS.split(text) if line.strip()]
    naming = tuple(_without_folders(fact) for fact in naming)
    named = [line for line in lines if all(fact in line for fact in naming)]
    _hold("\n".join(named or [line for line in lines if any(fact in line for fact in naming)]))


def _without_folders(text: str) -> str:
    return _FOLDER.sub("…/", text)


def _hold(text: str) -> None:
    """Compares with what is stored for the test that runs, or notes it down for the list."""
    module, *_, function = os.environ["PYTEST_CURRENT_TEST"].split(" (")[0].split("[")[0].split("::")
    test = f"{Path(module).stem}::{function}"
    words = _VARIES.sub("#", _without_folders(text))
    words = "".join(sign if sign.isprintable() or sign == "\n" else ascii(sign)[1:-1] for sign in words)
    if scratch := os.environ.get(WRITING):
        with Path(scratch).open("a", encoding="utf-8") as file:
            file.write(json.dumps([test, words]) + "\n")
    else:
        assert words in stored().get(test, []), f"{words}\nis not in {STORED.name}; python -m tests.errors {module}"


@functools.cache
def stored() -> dict[str, list[str]]:
    """The messages of each test."""
    found: dict[str, list[str]] = {}
    for line in STORED.read_text(encoding="utf-8").splitlines():
        if line.startswith("test_"):
            messages = found.setdefault(line, [])
        elif line.startswith("- "):
            messages.append(line[2:])
        else:
            messages[-1] += "\n" + line[2:]
    return found


def is_test(name: str) -> bool:
    """Whether a test of this name exists, in whichever folder its module is."""
    module, function = name.split("::")
    return any(f"def {function}(" in file.read_text(encoding="utf-8") for file in TESTS.rglob(f"{module}.py"))


def write(arguments: list[str]) -> int:
    """Runs tests and stores their messages; those of tests that did not run stay, if the tests are still there."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "messages.jsonl"
        scratch.touch()
        command = [sys.executable, "-m", "pytest", "-q", *arguments]
        code = subprocess.run(command, cwd=ROOT, env=os.environ | {WRITING: str(scratch)}, check=False).returncode
        fresh: dict[str, set[str]] = {}
        for line in scratch.read_text(encoding="utf-8").splitlines():
            test, words = json.loads(line)
            fresh.setdefault(test, set()).add(words)
    kept = {test: set(messages) for test, messages in stored().items() if is_test(test)}
    with STORED.open("w", encoding="utf-8") as file:
        for test, messages in sorted((kept | fresh).items()):
            print(test, file=file)
            for message in sorted(messages):
                print("- " + message.replace("\n", "\n  "), file=file)
    return code


if __name__ == "__main__":
    sys.exit(write(sys.argv[1:]))
