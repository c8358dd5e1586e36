"""`bakeoff list` reads an index instead of the adapters: it has to say what they say, in every environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from bakeoff.cli.listing import GROUPS, INDEX, Listed, describe_plugin, plugins
from bakeoff.evaluation.measures import MEASURES
from bakeoff_providers.needs import Needs
from bakeoff_providers.registry import Registry

from tests.errors import says
from tests.registries import EVERY, FAMILIES
from tests.terminal import SOURCES

REGISTRIES: dict[str, Registry[Any]] = {sort: EVERY[group] for sort, group in GROUPS.items()}
ADAPTERS = [
    (sort, name)
    for sort, registry in REGISTRIES.items()
    for name in registry.builtin
    if hasattr(registry.get(name), "needs") and registry is not MEASURES
]
VARIABLES = ("OPENAI_BASE_URL", "QDRANT_URL", "MILVUS_URL", "BAKEOFF_PGVECTOR_URL")


@cache
def _line(sort: str, name: str) -> Listed:
    return next(line for line in plugins()[sort] if line.name == name)


def index() -> dict[str, dict[str, dict[str, Any]]]:
    """The file as the adapters would have it."""
    return {
        sort: {
            line.name: line.to_dict()
            for line in (
                [describe_plugin(name, family) for name, family in FAMILIES.items()]
                if sort == "measure"
                else [describe_plugin(name, registry.get(name)) for name in registry.builtin]
            )
        }
        for sort, registry in REGISTRIES.items()
    }


def text() -> str:
    return json.dumps(index(), indent=1, ensure_ascii=False) + "\n"


def test_the_index_says_what_the_adapters_say() -> None:
    assert INDEX.read_text(encoding="utf-8") == text(), "run: python -m tests.cli.test_listing"
    assert set(GROUPS.values()) == set(EVERY)


@pytest.mark.parametrize(("sort", "name"), ADAPTERS)
@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("value", ["", "http://127.0.0.1:9"])
def test_what_is_missing_is_the_same_by_the_index_and_by_the_adapter(
    sort: str, name: str, installed: bool, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    adapter, line = REGISTRIES[sort].get(name), _line(sort, name)
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))  # no weights there
    for variable in {*VARIABLES, *line.needs.keys, *filter(None, [line.needs.server])}:
        monkeypatch.setenv(variable, value)
    for module in ("needs", "registry"):
        monkeypatch.setattr(f"bakeoff_providers.{module}.importable", lambda _: installed)
    assert line.needs.missing() == adapter.missing()


@pytest.mark.parametrize(
    ("needs", "set_", "here", "expected"),
    [
        (Needs(("a", "b"), "ab"), "", "a b", None),
        (Needs(("a", "b"), "ab"), "", "a", "install bakeoff[ab]"),
        (Needs(("a", "b")), "", "a", "install a b"),
        (Needs(either=("a", "b"), extra="ab"), "", "b", None),
        (Needs(either=("a", "b"), extra="ab"), "", "", "install bakeoff[ab]"),
        (Needs(keys=("K1", "K2")), "", "", "K1 K2"),
        (Needs(keys=("K1", "K2")), "K2", "", None),
        (Needs(("a",), "x", keys=("K1",)), "", "", "K1 bakeoff[x]"),
        (Needs(keys=("K1",), server="URL"), "URL", "", None),  # a server of one's own wants no key
        (Needs(("a",), "x", server="URL", engine=("e",)), "", "a", "install bakeoff[x]"),
        (Needs(("a",), "x", server="URL", engine=("e",)), "", "a e", None),
        (Needs(("a",), "x", server="URL", engine=("e",)), "URL", "a", None),
        (Needs(("a",), "x", server="URL", engine=("e",), engine_extra="y"), "", "a",
         "URL bakeoff[y]"),
        (Needs(extra="x", server="URL", client=("c",), engine=("e",)), "URL", "e", "install bakeoff[x]"),
        (Needs(extra="x", server="URL", client=("c",), engine=("e",)), "", "e", None),
        (Needs(("a",), "x", server="URL"), "", "a", "URL"),
        (Needs(("a",), "x", server="URL"), "", "", "install bakeoff[x]"),
        (Needs(("a",), "x", server="URL"), "URL", "a", None),
        (Needs(("a",), running=True), "", "a", None),
        (Needs(note="only a line-up can"), "", "", "line-up"),
        (Needs(weights="minilm"), "", "", "minilm"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_in_words(
    needs: Needs, set_: str, here: str, expected: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    for variable in ("K1", "K2", "URL"):
        monkeypatch.setenv(variable, "value" if variable == set_ else "")
    for module in ("needs", "registry"):
        monkeypatch.setattr(f"bakeoff_providers.{module}.importable", here.split().__contains__)
    if expected is None:
        assert needs.missing() is None
    else:
        says(needs.missing() or "", *expected.split())


def test_a_server_that_only_a_call_can_find_is_not_called_available() -> None:
    says(Needs(running=True).state())
    assert Needs(note="a licence", running=True).state() == "a licence"
    assert Needs().state() == "available"
    assert _line("provider", "ollama").needs.running
    assert _line("chat", "ollama").needs.running


THIRD_PARTY = """
from bakeoff_providers.needs import Needs

class Mine:
    'A store of another package.'
    def needs():
        return Needs(note="a licence")
"""
LIST = """
import sys
from bakeoff.cli.main import main
sys.argv = ["bakeoff", "list"]
try:
    main()
except SystemExit:
    print("imported", [name for name in ("numpy", "faiss", "bakeoff.search.stores.base") if name in sys.modules])
"""


def test_the_list_imports_no_adapter_of_ours_and_asks_those_of_other_packages(tmp_path: Path) -> None:
    (tmp_path / "mine-1.dist-info").mkdir()
    (tmp_path / "mine-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (tmp_path / "mine-1.dist-info" / "entry_points.txt").write_text("[bakeoff.stores]\nmine = my_store:Mine\n")
    (tmp_path / "my_store.py").write_text(THIRD_PARTY)
    path = os.pathsep.join([str(tmp_path), SOURCES])
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "300"}
    command = [sys.executable, "-c", LIST]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert {*(name for _, name in ADAPTERS), "mine"} <= set(printed.split())
    assert "imported []" in printed


if __name__ == "__main__":
    INDEX.write_text(text(), encoding="utf-8")
