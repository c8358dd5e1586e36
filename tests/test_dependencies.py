"""Every library that the code imports is declared: as a dependency, or as an extra where only an adapter needs it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
OURS = {"bakeoff", "bakeoff_providers"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = sorted([*(ROOT / "harness").rglob("*.py"), *(ROOT / "providers").rglob("*.py")])


class Import(NamedTuple):
    """A library that is imported: with its module, or only when a function runs."""

    package: str
    eager: bool
    place: str


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _declared(requirements: list[str]) -> set[str]:
    return {_normal(re.split(r"[\[<>=!~; ]", text, maxsplit=1)[0]) for text in requirements}


CORE = _declared(PROJECT["dependencies"])
EXTRAS = set().union(*(_declared(texts) for name, texts in PROJECT["optional-dependencies"].items() if name != "dev"))


@cache
def _distributions() -> dict[str, set[str]]:
    """Import name → the distributions that bring it, as they are installed here."""
    return {package: {_normal(name) for name in names} for package, names in packages_distributions().items()}


def _imports(tree: ast.AST, place: str, *, eager: bool = True) -> Iterator[Import]:
    """Third-party imports; what only a type checker imports is left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            package = name.partition(".")[0]
            if package not in sys.stdlib_module_names and package not in OURS:
                yield Import(package, eager, f"{place}:{node.lineno}" if hasattr(node, "lineno") else place)
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from _imports(node, place, eager=eager and not inside)


@cache
def _texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in MODULES}


@cache
def _all_imports() -> list[Import]:
    return [
        found
        for path, text in _texts().items()
        for found in _imports(ast.parse(text), path.relative_to(ROOT).as_posix())
    ]


@cache
def _needed(module: str) -> bool:
    name = re.sub(r"^(harness|providers)/|\.py$", "", module).replace("/", ".")
    parent, _, last = name.rpartition(".")
    ways = re.compile(rf"\b{re.escape(name)}\b|from {re.escape(parent)} import .*\b{last}\b")
    return any(last in text and ways.search(text) for path, text in _texts().items() if path.name != "plugins.py")


NOT_INSTALLED = {"chdb": {"chdb-core"}}  # names differ, and the tests here do without it


def _sources(package: str) -> set[str]:
    return _distributions().get(package) or NOT_INSTALLED.get(package, {_normal(package)})


def test_every_library_is_declared() -> None:
    """What comes with a module must come with Bakeoff; what a function imports may be an extra's.

    A module that no other names, such as the conformance suites, is imported by those who want it: `bakeoff.plugins`
    imports a name when somebody asks for it.
    """
    undeclared = dict[str, list[str]]()
    for package in {found.package for found in _all_imports()}:
        places = [found.place for found in _all_imports() if found.package == package and found.eager]
        eager = [place for place in places if _needed(place.rpartition(":")[0])]
        if not _sources(package) & (CORE if eager else CORE | EXTRAS):
            undeclared[package] = eager
    assert undeclared == {}


def test_every_dependency_is_used() -> None:
    used = set().union(*(_sources(found.package) for found in _all_imports()))
    assert CORE - used == set()


def _installed(extras: str) -> set[str]:
    """What `pip install .[a,b]` brings of what the project declares."""
    found = set(CORE)
    for extra in extras.split(","):
        for text in PROJECT["optional-dependencies"][extra]:
            inner = re.match(r"bakeoff\[(.+)\]", text)
            found |= _installed(inner[1]) if inner else _declared([text])
    return found


def test_make_run_installs_the_sdk_of_every_provider_in_the_default_line_up() -> None:
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").partition("$(VENV)/.run: ")[2].partition("\n\n")[0]
    extras = re.search(r"-e '\.\[(.+)\]'", rule)
    assert extras
    wanted = {"faiss-cpu", "chromadb", "ollama", "voyageai", "google-generativeai", "numpy", "tenacity"}
    assert wanted | {"openai", "google-genai", "cohere"} <= _installed(extras[1])


def test_the_check_sees_what_it_should() -> None:
    lines = [
        "import a.b",
        "if TYPE_CHECKING:",
        "    import c",
        "def late():",
        "    from d.e import f",
        "from a import g",
    ]
    tree = ast.parse("\n".join(lines))
    assert [(found.package, found.eager) for found in _imports(tree, "x")] == [("a", True), ("d", False), ("a", True)]
