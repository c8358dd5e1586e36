"""What every registered plug-in promises: a new line in a registry is tested here before anything else is written."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from bakeoff.chat import CHATS
from bakeoff.evaluation.measures import MEASURES, families
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.kinds import TASK_KINDS
from bakeoff.testsets.generate import MAKERS
from bakeoff_providers import PROVIDERS
from bakeoff_providers.registry import Registry

from tests.search.store_setups import ELSEWHERE, SETUPS

ROOT = Path(__file__).parent.parent
DOCUMENTED = {
    "bakeoff.providers": "docs/providers.md",
    "bakeoff.stores": "docs/stores.md",
    "bakeoff.rankers": "README.md",
    "bakeoff.formats": "docs/tasks.md",
    "bakeoff.kinds": "README.md",
    "bakeoff.measures": "docs/scoring.md",
}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
PLUGINS: list[tuple[Registry[Any], str]] = [
    (registry, name)
    for registry in (PROVIDERS, STORES, RANKERS, FORMATS, TASK_KINDS, CHATS, MAKERS)
    for name in registry.names()
] + [(MEASURES, name) for name in families()]  # without the second spellings


@pytest.mark.parametrize(("registry", "name"), PLUGINS, ids=lambda value: getattr(value, "group", value))
def test_a_plugin_is_whole_and_says_what_it_needs(registry: Registry[Any], name: str) -> None:
    plugin = registry.get(name)
    assert inspect.getdoc(plugin)
    assert not inspect.isabstract(plugin)
    assert getattr(plugin, "name", name) == name  # errors and reports call it as line-ups do
    extra = getattr(plugin, "extra", None)
    assert extra is None or extra in EXTRAS
    if missing := getattr(plugin, "missing", None):
        assert missing() is None or isinstance(missing(), str)
    assert callable(plugin)


@pytest.mark.parametrize(("group", "name"), [(registry.group, name) for registry, name in PLUGINS])
def test_a_plugin_is_documented(group: str, name: str) -> None:
    if page := DOCUMENTED.get(group):
        assert re.search(rf"\b{re.escape(name)}\b", (ROOT / page).read_text(encoding="utf-8")), f"{name} in {page}"


def test_every_store_is_in_the_conformance_suite() -> None:
    assert {setup.store for setup in SETUPS} | set(ELSEWHERE) == set(STORES.names())
