"""Every module of ours, and every registry that one makes: a new one can't be forgotten by the tests."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from bakeoff.evaluation.measures import MEASURES
from bakeoff_providers.registry import Registry

ROOT = Path(__file__).parent.parent


def _modules(root: Path) -> dict[str, Path]:
    """Every module below a source root, by its dotted name."""
    paths = sorted(root.rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


MODULES = _modules(ROOT / "harness") | _modules(ROOT / "providers")


def _made_by(module: str, path: Path) -> list[Registry[Any]]:
    """A module is imported only where its source says that it makes one."""
    if not re.search(r"^[A-Z_]+.* = Registry\(", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        return []
    return [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Registry)]


REGISTRIES = {module: made for module, path in MODULES.items() if (made := _made_by(module, path))}
EVERY = {registry.group: registry for made in REGISTRIES.values() for registry in made}  # by the group of entry points
FAMILIES = {MEASURES.get(name).name: MEASURES.get(name) for name in MEASURES.builtin}  # ours: others may be installed
