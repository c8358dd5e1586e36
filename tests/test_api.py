"""The public API: what `bakeoff` names is there, is quick to import, and stays what it is."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import bakeoff
import bakeoff_providers.errors
import pytest
from bakeoff_providers.errors import BakeoffError

from tests.errors import refuses

ROOT = Path(__file__).parent.parent
FUNCTIONS = {"run", "save", "load", "score", "compare", "gate", "evaluate"}
CLASSES = {
    "Lineup", "Task", "Document", "Query", "Measure", "Provider", "Role", "EmbeddingBatch", "ModelCard", "Store",
    "Hits", "Capabilities",
}  # fmt: skip
HEAVY = ("numpy", "scipy", "faiss", "chromadb", "typer", "rich", "msgspec", "sklearn", "bm25s", "jinja2", "altair")


def _python(code: str) -> str:
    path = f"{ROOT / 'harness'}:{ROOT / 'providers'}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_promised_name_and_every_error_is_there() -> None:
    errors = {
        name
        for name, value in vars(bakeoff_providers.errors).items()
        if inspect.isclass(value) and issubclass(value, BakeoffError)
    }
    assert set(bakeoff.__all__) == FUNCTIONS | CLASSES | errors | {"__version__"}
    for name in bakeoff.__all__:
        assert getattr(bakeoff, name) is not None
    assert set(bakeoff.__all__) <= set(dir(bakeoff))


def test_importing_it_imports_nothing_heavy() -> None:
    """What `import bakeoff` costs is what it imports: only the standard library, and none of our packages."""
    loaded = set(_python("import sys, bakeoff; print(*sys.modules)").split())
    assert not loaded & set(HEAVY)
    assert {name for name in loaded if name.startswith("bakeoff")} == {"bakeoff"}


ALL_PACKAGES = """
import importlib, pkgutil
for module in pkgutil.walk_packages(bakeoff.__path__, "bakeoff."):
    if module.name.count(".") < 3: importlib.import_module(module.name)
"""


@pytest.mark.parametrize("before", ["", ALL_PACKAGES], ids=["fresh", "after all packages"])
def test_public_names_stay_what_they_are(before: str) -> None:
    """Importing a subpackage sets an attribute on its parent: none may take the place of a public name."""
    code = f"import bakeoff\n{before}\nfor name in bakeoff.__all__: print(name, type(getattr(bakeoff, name)).__name__)"
    types = dict(line.split() for line in _python(code + "\n" + ALL_PACKAGES + code.rpartition("\n")[2]).splitlines())
    assert {name for name, kind in types.items() if kind == "function"} == FUNCTIONS
    assert "module" not in types.values()


def test_the_version_is_that_of_the_distribution() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert bakeoff.__version__ == tomllib.load(file)["project"]["version"]


def test_extensions_add_names() -> None:
    assert inspect.isfunction(bakeoff.interleave)
    assert "interleave" not in bakeoff.__all__  # an installation may lack the extension


def test_an_unknown_name_is_an_attribute_error() -> None:
    with refuses(AttributeError, "'nothing'"):
        _ = bakeoff.nothing
