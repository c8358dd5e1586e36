"""The package examples/acme: installed by pip as its reader would, every sort of plug-in in it is used."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import bakeoff.plugins
import pytest

from tests.registries import EVERY
from tests.terminal import SOURCES, Ended, bakeoff_process
from tests.test_docs import DOCS

PAGE = (DOCS / "internals" / "plugins.md").read_text(encoding="utf-8")
EXAMPLE = DOCS.parent / "examples" / "acme"
SOURCES_OF_EXAMPLE = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLE.rglob("*.py")}
PUBLIC = {
    "acme_words": "providers", "acme_flat": "stores", "acme_count": "rankers", "acme_lookup": "retrievers",
    "acme_overlap": "rerankers", "acme_fixed": "systems", "enough": "measures", "acme_json": "formats",
    "acme-count": "commands",
}  # fmt: skip


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example; `site` in it is where pip put the package."""
    folder = tmp_path_factory.mktemp("acme")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation", "--quiet"]
    installed = subprocess.run([*pip, "--target", "site", "."], cwd=folder, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    (folder / "acme").rename(folder / "source")  # what is used is what was installed
    return folder


def _bakeoff(package: Path, *arguments: str) -> Ended:
    path = os.pathsep.join([SOURCES, str(package / "site")])
    done = bakeoff_process(*arguments, cwd=package, PYTHONPATH=path, BAKEOFF_HOME=str(package / "home"), COLUMNS="200")
    assert done.returncode == 0, done.stderr
    return done


def test_every_public_group_has_an_example() -> None:
    described = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    shown = dict(re.findall(r'^\[project.entry-points."bakeoff\.(\w+)"\]\n([\w-]+) = ', described, flags=re.MULTILINE))
    assert {name: group for group, name in shown.items()} == PUBLIC
    assert set(re.findall(r"`bakeoff\.(\w+)` \|", PAGE)) == set(PUBLIC.values())
    assert {f"bakeoff.{group}" for group in PUBLIC.values()} <= {*EVERY, "bakeoff.commands"}


def test_every_plugin_is_listed(package: Path) -> None:
    listed = set(_bakeoff(package, "list").stdout.split())
    named = {name for name, group in PUBLIC.items() if group not in ("measures", "commands")}
    assert {*named, "enough@k"} <= listed
    assert "(store, available)" in _bakeoff(package, "list", "acme_flat").stdout
    assert "acme-count" in _bakeoff(package, "--help").stdout


def test_every_plugin_is_used(package: Path) -> None:
    """Figures by hand. `b a` and `b c` for the retriever; `c b a` for every query in the fixed order."""
    _bakeoff(package, "validate", "acme.toml", "--no-health")
    _bakeoff(package, "run", "acme.toml", "--no-charts")
    (result,) = (package / "results").iterdir()
    rows = json.loads((result / "metrics_summary.json").read_text(encoding="utf-8"))["rows"]
    means = {
        row["label"]: [round(row["measures"][measure]["mean"], 6) for measure in ("mrr", "enough(m=2)@2")]
        for row in rows
        if row.get("measures")
    }
    assert means["acme_lookup"] == [0.75, 0.5]
    assert means["acme_fixed"] == [1.0, 0.5]
    assert means["acme_count"] == [1.0, 1.0]
    assert means["acme_words+acme_flat+acme_overlap"] == [1.0, 1.0]
    assert means["oracle"] == [1.0, 1.0]
    assert means["random"][1] == round(1 / 3, 6)  # two relevant of three documents, both in the first two places
    assert "acme_words+acme_flat" in means
    assert _bakeoff(package, "acme-count", "lakes.json").stdout == "3 documents\n"
    for name in set(PUBLIC) - {"acme-count", "acme_fixed"}:
        assert name in _bakeoff(package, "options", name).stdout


def test_the_conformance_suites_pass(package: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([SOURCES, str(package / "site")])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:bakeoff", "test_acme.py"]
    tested = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    passed = int(re.findall(r"(\d+) passed", tested.stdout)[0])
    assert passed > 60


def test_the_examples_import_nothing_that_is_not_promised() -> None:
    code = "".join(SOURCES_OF_EXAMPLE.values())
    assert set(re.findall(r"^from (bakeoff[\w.]*) import", code, flags=re.MULTILINE)) == {"bakeoff.plugins"}


def test_the_page_shows_the_example() -> None:
    assert set(re.findall(r"`acme/(\w+\.py)`", PAGE)) == set(SOURCES_OF_EXAMPLE) - {"__init__.py", "test_acme.py"}
    for shown in re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL):
        assert any(shown in source for source in SOURCES_OF_EXAMPLE.values())


def test_what_is_promised_can_be_imported_and_is_typed() -> None:
    """The table that is read at run time and the imports that a type checker reads are the same."""
    for name in bakeoff.plugins.__all__:
        assert getattr(bakeoff.plugins, name) is not None
    tree = ast.parse(inspect.getsource(bakeoff.plugins))
    typed = {
        f"{node.module}:{alias.asname}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
        if alias.asname
    }
    assert typed == set(bakeoff.plugins._PLACES.values())
    with pytest.raises(AttributeError):
        bakeoff.plugins.Nothing  # noqa: B018


def test_a_light_import_stays_light() -> None:
    code = "import sys\nfrom bakeoff.plugins import Command\nprint('numpy' in sys.modules, 'msgspec' in sys.modules)"
    assert bakeoff_process(cwd=DOCS, code=code).stdout == "False False\n"
