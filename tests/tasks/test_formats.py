"""What any format must be able to do, whoever wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError

from tests.errors import refuses

MODULE = """
from bakeoff.core.task import Document, Query, Task

def load(name, base, lines: str, rel: int = 1):
    texts = (base / lines).read_text().splitlines()
    documents = [Document(id=str(at), text=text) for at, text in enumerate(texts)]
    queries = [Query(id=f"q{at}", text=text) for at, text in enumerate(texts)]
    return Task(name=name, documents=documents, queries=queries, judgments={"q0": {"0": 1}}, rel=rel)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of somebody else's that brings a format, as pip leaves it in site-packages."""
    packages = tmp_path / "site-packages"
    metadata = packages / "lines_format-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lines-format\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[bakeoff.formats]\nlines = lines_format:load\n")
    (packages / "lines_format.py").write_text(MODULE)
    monkeypatch.syspath_prepend(packages)
    return tmp_path


def test_a_format_of_another_package_is_loaded_like_a_built_in_one(installed: Path) -> None:
    (installed / "texts.txt").write_text("copper\nlake\n")
    task = load_task({"name": "own", "format": "lines", "lines": "texts.txt", "rel": 1}, installed)
    assert [document.text for document in task.documents] == ["copper", "lake"]
    assert (task.name, task.judgments) == ("own", {"q0": {"0": 1}})
    assert "lines" in FORMATS.names()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lines": 3}, "lines"),
        ({"lines": "texts.txt", "colour": "red"}, "colour"),
        ({}, "needs lines"),
    ],
)
def test_its_options_are_checked_by_its_own_signature(installed: Path, options: dict[str, object], said: str) -> None:
    with refuses(InputError, said):
        load_task({"format": "lines", **options}, installed)


def test_without_the_package_the_name_is_unknown(tmp_path: Path) -> None:
    with refuses(InputError, "lines"):
        load_task({"format": "lines"}, tmp_path)
