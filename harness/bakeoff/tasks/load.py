"""A task of any kind from what a user names it by: the one place above both formats and kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff.core.task import Task
from bakeoff.tasks.kinds import load_kind


def load_task(source: str | Mapping[str, Any], base: Path) -> Task:
    """By a built-in name, by its task.toml or the folder that holds one, or described in place."""
    return load_kind(source, base).task()
