"""The house: which room may import which, no cycles, no long modules. Lazy imports and registry strings count too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.registries import MODULES, REGISTRIES

ROOMS = (
    "core", "evaluation", "statistics", "embedding", "search", "lineup", "tasks", "running", "results", "report",
    "storelab", "chat", "testsets", "production", "commands", "cli", "__main__",
)  # fmt: skip
PURE = {"evaluation", "statistics"}
IMPURE = {"os", "pathlib", "time", "datetime", "socket", "subprocess", "urllib", "shutil", "tempfile", "random"}
LONGEST = 350
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


def _all_edges() -> Iterator[Edge]:
    """With what registries name, however their strings are put together."""
    for module, path in MODULES.items():
        yield from edges(module, path.read_text(encoding="utf-8"))
        for registry in REGISTRIES.get(module, ()):
            for target in registry.builtin.values():
                yield Edge(module, 0, target.partition(":")[0])


EDGES = list(_all_edges())


def room(module: str) -> str:
    """The room of a module of bakeoff; "" for the package itself, which is the public API."""
    return module.split(".")[1] if "." in module else ""


def wrong(found: list[Edge]) -> list[str]:
    """The edges that lead from a room to a later one."""
    return [
        f"{edge.source}:{edge.line} → {edge.target}"
        for edge in found
        if edge.source.startswith("bakeoff.")
        and edge.target.startswith("bakeoff.")
        and ROOMS.index(room(edge.target)) > ROOMS.index(room(edge.source))
    ]


def test_every_module_is_in_a_known_room() -> None:
    assert {room(module) for module in MODULES if module.startswith("bakeoff.")} <= set(ROOMS)


def test_a_room_imports_only_rooms_before_it() -> None:
    assert wrong(EDGES) == []


def test_nothing_but_the_command_line_imports_the_public_api() -> None:
    assert {room(edge.source) for edge in EDGES if edge.target == "bakeoff"} <= {"commands", "cli"}


def test_providers_never_import_the_harness() -> None:
    assert [edge for edge in EDGES if edge.source.startswith("bakeoff_providers") and room(edge.target) in ROOMS] == []


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
    for edge in EDGES:
        graph[edge.source].add(edge.target)
    reached = {module: _reachable(graph, module) for module in graph}
    assert [
        f"{one} ⇄ {other}"
        for one in graph
        for other in reached[one]
        if one < other and one in reached[other] and MODULES[one].parent != MODULES[other].parent
    ] == []


def test_registries_are_seen() -> None:
    assert Edge("bakeoff.evaluation.measures", 0, "bakeoff.evaluation.measures.ndcg") in EDGES


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


@pytest.mark.parametrize("module", [module for module in MODULES if room(module) in PURE])
def test_measures_and_statistics_touch_no_file_clock_or_network(module: str) -> None:
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        for name in _named(node, module)
    }
    assert imported & IMPURE == set()


def test_no_module_is_long() -> None:
    assert [module for module, path in MODULES.items() if len(path.read_text("utf-8").splitlines()) > LONGEST] == []
