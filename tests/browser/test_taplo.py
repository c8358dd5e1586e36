"""The schemas in taplo, which Even Better TOML and other editors run: it finds them by the line-up's first line."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from bakeoff.extensions.schema.commands import FILE
from bakeoff.extensions.schema.generate import FOLDER

from tests.browser.conftest import missing
from tests.cli.test_wrong_arguments import bakeoff
from tests.extensions.schema.test_schema import (
    BUILT_IN,
    LINEUP,
    LINEUP_MISTAKES,
    TASK,
    TASK_MISTAKES,
    TASKS,
    Mistake,
    with_mistake,
)

pytestmark = pytest.mark.browser
HEAD = f"#:schema ./{FILE}\n"
_PLACE = re.compile(r"┌─ (.+?):(\d+):\d+")


@pytest.fixture(scope="session")
def taplo() -> Path:
    path = Path(os.environ.get("BAKEOFF_TAPLO", ".venv/node_modules/.bin/taplo"))
    if not path.exists():
        missing(f"no taplo at {path}: make test-browser installs it")
    return path.absolute()


def _lint(taplo: Path, folder: Path) -> dict[str, set[int]]:
    """The lines of each file that have errors. One process for all files: it takes seconds to start."""
    files = sorted(map(str, folder.glob("*.toml")))
    done = subprocess.run(
        [taplo, "lint", "--colors=never", *files], cwd=folder, capture_output=True, text=True, check=False
    )
    found: dict[str, set[int]] = {}
    for file, line in _PLACE.findall(done.stdout + done.stderr):
        found.setdefault(Path(file).stem, set()).add(int(line))
    assert (done.returncode != 0) == bool(found), done.stdout + done.stderr
    return found


def _copy(folder: Path, name: str) -> None:
    (folder / FILE).write_bytes((FOLDER / f"{name}.schema.json").read_bytes())


def test_built_in_line_ups_pass(taplo: Path, tmp_path: Path) -> None:
    _copy(tmp_path, "lineup")
    for path in BUILT_IN:
        (tmp_path / path.name).write_text(HEAD + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert _lint(taplo, tmp_path) == {}


def test_built_in_tasks_pass(taplo: Path, tmp_path: Path) -> None:
    _copy(tmp_path, "task")
    for path in TASKS:
        (tmp_path / f"{path.parent.name}.toml").write_text(HEAD + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert _lint(taplo, tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "text", "mistakes"), [("lineup", LINEUP, LINEUP_MISTAKES), ("task", TASK, TASK_MISTAKES)]
)
def test_mistakes_are_found_where_they_are(
    taplo: Path, tmp_path: Path, name: str, text: str, mistakes: list[Mistake]
) -> None:
    _copy(tmp_path, name)
    for number, mistake in enumerate(mistakes):
        (tmp_path / f"{number}.toml").write_text(HEAD + with_mistake(text, mistake), encoding="utf-8")
    found = _lint(taplo, tmp_path)
    for number, mistake in enumerate(mistakes):
        first = (HEAD + text).partition(mistake.old)[0].count("\n") + 1
        lines = set(range(first, first + mistake.new.count("\n") + 1))
        assert found[str(number)] & lines if mistake.new else found[str(number)], mistake


def test_what_init_writes_is_checked_by_the_schema_that_it_names(taplo: Path, tmp_path: Path) -> None:
    assert bakeoff(tmp_path, "init", "wikipedia")[0] == 0
    assert _lint(taplo, tmp_path) == {}
    written = (tmp_path / "bakeoff.toml").read_text(encoding="utf-8")
    (tmp_path / "bakeoff.toml").write_text(written.replace('ranker = "bm25"', 'ranker = "bm26"', 1), encoding="utf-8")
    (line,) = (number for number, text in enumerate(written.splitlines(), start=1) if text.startswith("ranker"))
    assert _lint(taplo, tmp_path) == {"bakeoff": {line}}
