"""What every registered plug-in promises: a new line in a registry is tested here before anything else is written."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from bakeoff.search.stores import STORES
from bakeoff.tasks.kinds import TASK_KINDS
from bakeoff.tasks.kinds.base import TaskKind
from bakeoff_providers.registry import Registry

from tests.errors import refuses
from tests.registries import EVERY
from tests.search.store_setups import ELSEWHERE, SETUPS

ROOT = Path(__file__).parent.parent
DOCUMENTED = {  # by the group of entry points
    "bakeoff.chats": "docs/guides/grade-with-a-model.md",
    "bakeoff.engines": "docs/guides/cluster.md",
    "bakeoff.existing": "docs/guides/own-functions.md",
    "bakeoff.formats": "docs/reference/tasks.md",
    "bakeoff.kinds": "docs/concepts/kinds.md",
    "bakeoff.makers": "docs/guides/label-queries.md",
    "bakeoff.measures": "docs/concepts/measures.md",
    "bakeoff.providers": "docs/guides/pick-a-model.md",
    "bakeoff.rankers": "docs/guides/hybrid-and-rerank.md",
    "bakeoff.rerankers": "docs/guides/hybrid-and-rerank.md",
    "bakeoff.retrievers": "docs/guides/own-functions.md",
    "bakeoff.stores": "docs/guides/pick-a-store.md",
    "bakeoff.systems": "docs/reference/python.md",
    "bakeoff.token_stores": "docs/guides/hybrid-and-rerank.md",
    "bakeoff.vector_files": "docs/guides/large-corpora.md",
}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def _first_names(registry: Registry[Any]) -> list[str]:
    """Without second spellings, which come after the first one of the same plug-in."""
    targets = list(registry.builtin.values())
    return [name for at, name in enumerate(registry.builtin) if targets.index(targets[at]) == at]


PLUGINS = [(registry, name) for registry in EVERY.values() for name in _first_names(registry)]


@pytest.mark.parametrize(("registry", "name"), PLUGINS, ids=lambda value: getattr(value, "group", value))
def test_a_plugin_is_whole_and_says_what_it_needs(registry: Registry[Any], name: str) -> None:
    plugin = registry.get(name)
    assert inspect.getdoc(plugin)
    assert not inspect.isabstract(plugin)
    named = "row_type" if registry.group == "bakeoff.systems" else "name"
    assert getattr(plugin, named, name) == name  # errors and reports call it as line-ups do
    extra = getattr(plugin, "extra", None)
    assert extra is None or extra in EXTRAS
    if missing := getattr(plugin, "missing", None):
        assert missing() is None or isinstance(missing(), str)
    assert callable(plugin)


@pytest.mark.parametrize(("group", "name"), [(registry.group, name) for registry, name in PLUGINS])
def test_a_plugin_is_documented(group: str, name: str) -> None:
    page = DOCUMENTED[group]
    assert re.search(rf"\b{re.escape(name)}\b", (ROOT / page).read_text(encoding="utf-8")), f"{name} in {page}"


@pytest.mark.parametrize("name", TASK_KINDS.builtin)
def test_a_kind_of_task_says_what_it_does_itself(name: str) -> None:
    kind = TASK_KINDS.get(name)
    assert kind.refines == (kind.refine is not TaskKind.refine)
    assert kind.scores_itself == (kind.score is not TaskKind.score)


def test_a_kind_of_task_that_hides_a_score_of_its_own_is_refused() -> None:
    with refuses(TypeError, "scores_itself"):
        type("Hidden", (TaskKind,), {"score": lambda self, task, answers, measures: {}})


def test_every_store_is_in_the_conformance_suite() -> None:
    assert {setup.store for setup in SETUPS} | set(ELSEWHERE) == set(STORES.builtin)
