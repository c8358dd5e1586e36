"""`bakeoff list` reads an index instead of the adapters: it has to say what they say, in every environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bakeoff.cli.plugin_index import GROUPS, INDEX, listed, plugins
from bakeoff.evaluation.measures import MEASURES, families
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.kinds import TASK_KINDS
from bakeoff_providers import PROVIDERS
from bakeoff_providers.chat import CHATS
from bakeoff_providers.needs import Needs
from bakeoff_providers.registry import Registry

REGISTRIES: dict[str, Registry[Any]] = {
    "provider": PROVIDERS,
    "store": STORES,
    "ranker": RANKERS,
    "chat": CHATS,
    "kind of task": TASK_KINDS,
    "format": FORMATS,
    "measure": MEASURES,
}
ADAPTERS = [(sort, name) for sort in ("provider", "store", "ranker", "chat") for name in REGISTRIES[sort].builtin]
LINES = {(sort, line.name): line for sort, lines in plugins().items() for line in lines}
VARIABLES = ("OPENAI_BASE_URL", "QDRANT_URL", "MILVUS_URL", "BAKEOFF_PGVECTOR_URL")


def index() -> dict[str, dict[str, dict[str, Any]]]:
    """The file as the adapters would have it."""
    return {
        sort: {
            line.name: line.to_dict()
            for line in (
                [listed(name, family) for name, family in families().items() if name in registry.builtin]
                if sort == "measure"
                else [listed(name, registry.get(name)) for name in registry.builtin]
            )
        }
        for sort, registry in REGISTRIES.items()
    }


def text() -> str:
    return json.dumps(index(), indent=1, ensure_ascii=False) + "\n"


def test_the_index_says_what_the_adapters_say() -> None:
    assert INDEX.read_text(encoding="utf-8") == text(), "run: python -m tests.cli.test_listing"
    assert {sort: registry.group for sort, registry in REGISTRIES.items()} == GROUPS


@pytest.mark.parametrize(("sort", "name"), ADAPTERS)
@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("value", ["", "http://127.0.0.1:9"])
def test_what_is_missing_is_the_same_by_the_index_and_by_the_adapter(
    sort: str, name: str, installed: bool, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    adapter, line = REGISTRIES[sort].get(name), LINES[sort, name]
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
        (Needs(keys=("K1", "K2")), "", "", "K1 or K2 is not set"),
        (Needs(keys=("K1", "K2")), "K2", "", None),
        (Needs(("a",), "x", keys=("K1",)), "", "", "K1 is not set; install bakeoff[x]"),
        (Needs(keys=("K1",), server="URL"), "URL", "", None),  # a server of one's own wants no key
        (Needs(("a",), "x", server="URL", engine=("e",)), "", "a", "install bakeoff[x]"),
        (Needs(("a",), "x", server="URL", engine=("e",)), "", "a e", None),
        (Needs(("a",), "x", server="URL", engine=("e",)), "URL", "a", None),
        (Needs(("a",), "x", server="URL", engine=("e",), engine_extra="y"), "", "a",
         "URL is not set; or install bakeoff[y]"),
        (Needs(extra="x", server="URL", client=("c",), engine=("e",)), "URL", "e", "install bakeoff[x]"),
        (Needs(extra="x", server="URL", client=("c",), engine=("e",)), "", "e", None),
        (Needs(("a",), "x", server="URL"), "", "a", "needs a server: URL is not set"),
        (Needs(("a",), "x", server="URL"), "", "", "install bakeoff[x]"),
        (Needs(("a",), "x", server="URL"), "URL", "a", None),
        (Needs(("a",), running=True), "", "a", None),
        (Needs(note="only a line-up can"), "", "", "only a line-up can"),
        (Needs(weights="minilm"), "", "", "run: bakeoff models pull minilm"),
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
    assert needs.missing() == expected


def test_a_server_that_only_a_call_can_find_is_not_called_available() -> None:
    assert Needs(running=True).state() == "needs a running server"
    assert Needs(note="a licence", running=True).state() == "a licence"
    assert Needs().state() == "available"
    assert LINES["provider", "ollama"].needs.running
    assert LINES["chat", "ollama"].needs.running


THIRD_PARTY = """
class Mine:
    'A store of another package.'
    def missing():
        return "a licence"
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
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "300"}
    command = [sys.executable, "-c", LIST]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    rows = [re.split(r"  +", line) for line in printed.splitlines()]
    assert ["mine", "a licence", "A store of another package."] in rows
    assert {row[0] for row in rows} >= {*PROVIDERS.builtin, *STORES.builtin, *RANKERS.builtin, *CHATS.builtin}
    assert "imported []" in printed


if __name__ == "__main__":
    INDEX.write_text(text(), encoding="utf-8")
