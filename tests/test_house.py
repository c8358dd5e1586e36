"""Which package may import which, no cycles, and how large they may be. Lazy imports and registry strings count too."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests.registries import MODULES, REGISTRIES

PACKAGES = (
    "core", "evaluation", "statistics", "calls", "embedding", "search", "systems", "lineup", "tasks", "plugins",
    "running", "results", "report", "cli", "pytest_plugin", "__main__", "extensions",
)  # fmt: skip
EXTENSIONS = "bakeoff.extensions."
PURE = {"evaluation", "statistics"}
IMPURE = {"os", "pathlib", "time", "datetime", "socket", "subprocess", "urllib", "shutil", "tempfile", "random"}
LONGEST = 600  # lines of a module
MOST_LINES = {"core": 38_390, "all": 64_260}  # `wc -l`; the core is all but bakeoff/extensions
MOST_MODULES = 389
SHARED_NAMES = {"Cost", "Draft", "Part", "Price", "_Handler"}  # of two classes each; none may be added
_PLACE = re.compile(r"(bakeoff|bakeoff_providers)(\.\w+)+(:\w+)?")


class Edge(NamedTuple):
    """One module names another."""

    source: str
    line: int
    target: str


def _named(node: ast.AST, module: str) -> list[str]:
    """The modules that a node names: by an import, wherever it stands, or by a string such as `bakeoff.x.y:Name`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{module}:{node.lineno} has a relative import"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _PLACE.fullmatch(node.value):
        named, colon, _ = node.value.partition(":")
        assert not colon or named in MODULES, f"{module}:{node.lineno} names {named}, which does not exist"
        return [named] if named in MODULES else []  # the name of an entry point group is no module
    return []


def edges(module: str, source: str) -> Iterator[Edge]:
    """All that a module names of ours; a name inside a module leads to that module."""
    for node in ast.walk(ast.parse(source)):
        for named in _named(node, module):
            target = named
            while target and target not in MODULES:
                target = target.rpartition(".")[0]
            if target and target != module:
                yield Edge(module, getattr(node, "lineno", 0), target)


@cache
def all_edges() -> list[Edge]:
    """With what registries name, however their strings are put together."""
    found = list[Edge]()
    for module, path in MODULES.items():
        found += edges(module, path.read_text(encoding="utf-8"))
        for registry in REGISTRIES.get(module, ()):
            targets = [target.partition(":")[0] for target in registry.builtin.values()]
            # what is found by listing the folder is not named
            found += [Edge(module, 0, target) for target in targets if not target.startswith(EXTENSIONS)]
    return found


def package(module: str) -> str:
    """The package that a module of bakeoff is in; "" for bakeoff itself, which is the public API."""
    return module.split(".")[1] if "." in module else ""


def wrong(found: list[Edge]) -> list[str]:
    """The edges that lead from a package to a later one, or from one extension to another."""
    return [
        f"{edge.source}:{edge.line} → {edge.target}"
        for edge in found
        if edge.source.startswith("bakeoff.")
        and edge.target.startswith("bakeoff.")
        and (
            PACKAGES.index(package(edge.target)) > PACKAGES.index(package(edge.source))
            or (package(edge.source) == "extensions" == package(edge.target) and not _in_one_extension(edge))
        )
    ]


def _in_one_extension(edge: Edge) -> bool:
    return edge.source.split(".")[2:3] == edge.target.split(".")[2:3]


def test_every_module_is_in_a_known_package() -> None:
    assert {package(module) for module in MODULES if module.startswith("bakeoff.")} <= set(PACKAGES)


def test_a_package_imports_only_packages_before_it() -> None:
    assert wrong(all_edges()) == []


def test_nothing_but_the_command_line_imports_the_public_api() -> None:
    assert {package(edge.source) for edge in all_edges() if edge.target == "bakeoff"} <= {"cli"}


def test_providers_never_import_the_harness() -> None:
    ours = [edge for edge in all_edges() if edge.source.startswith("bakeoff_providers")]
    assert [edge for edge in ours if edge.target.startswith("bakeoff.")] == []


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        nearby = graph[waiting.pop()] - reached
        reached |= nearby
        waiting += nearby
    return reached


def test_no_cycle_leaves_its_folder() -> None:
    """Within one folder a base class and the registry that names its subclasses may know each other."""
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for edge in all_edges():
        graph[edge.source].add(edge.target)
    reached = {module: _reachable(graph, module) for module in graph}
    assert [
        f"{one} ⇄ {other}"
        for one in graph
        for other in reached[one]
        if one < other and one in reached[other] and MODULES[one].parent != MODULES[other].parent
    ] == []


def _compares_words(pattern: ast.pattern) -> bool:
    parts = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    return any(isinstance(part, ast.MatchValue) for part in parts)


@pytest.mark.parametrize("module", MODULES)
def test_a_match_over_known_values_has_an_end(module: str) -> None:
    """mypy holds assert_never at such an end against forgotten cases; without an end it can't."""
    matches = [node for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))) if isinstance(node, ast.Match)]
    over_words = [node for node in matches if all(_compares_words(case.pattern) for case in node.cases[:-1])]
    ends = [(node.cases[-1].pattern, ast.unparse(node.cases[-1].body[0])) for node in over_words]
    assert all(
        isinstance(end, ast.MatchAs) and end.pattern is None and does.startswith("assert_never(") for end, does in ends
    )


def test_no_two_classes_share_a_name() -> None:
    trees = (ast.parse(path.read_text("utf-8")) for path in MODULES.values())
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1} <= SHARED_NAMES


def test_registries_are_seen() -> None:
    assert Edge("bakeoff.evaluation.measures", 0, "bakeoff.evaluation.measures.ndcg") in all_edges()


@pytest.mark.parametrize(
    "source",
    [
        "from bakeoff.report import exports",
        "def late():\n    import bakeoff.report.exports",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bakeoff.report.exports import exports",
        'LATER = {"x": "bakeoff.report.exports:exports"}',
        'import importlib\nimportlib.import_module("bakeoff.report.exports")',
    ],
)
def test_no_way_of_importing_is_overlooked(source: str) -> None:
    assert len(wrong(list(edges("bakeoff.core.files", source)))) == 1


def test_one_extension_may_not_import_another() -> None:
    source = "from bakeoff.extensions.storelab import sweep"
    assert len(wrong(list(edges("bakeoff.extensions.production.probe", source)))) == 1
    assert wrong(list(edges("bakeoff.extensions.storelab.tables", source))) == []


@pytest.mark.parametrize("module", [module for module in MODULES if package(module) in PURE])
def test_measures_and_statistics_touch_no_file_clock_or_network(module: str) -> None:
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        for name in _named(node, module)
    }
    assert imported & IMPURE == set()


LINES = {module: len(path.read_text("utf-8").splitlines()) for module, path in MODULES.items()}


def test_no_module_is_long() -> None:
    assert {module: lines for module, lines in LINES.items() if lines > LONGEST} == {}


def test_the_tree_keeps_to_its_budget() -> None:
    core = sum(lines for module, lines in LINES.items() if not module.startswith(EXTENSIONS))
    assert core <= MOST_LINES["core"]
    assert sum(LINES.values()) <= MOST_LINES["all"]
    assert len(LINES) <= MOST_MODULES
