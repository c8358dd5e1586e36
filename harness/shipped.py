"""What travels with Bakeoff: the corpora, the tasks and the default line-up, in a checkout and in a wheel alike."""

from __future__ import annotations

from pathlib import Path

from providers.errors import InputError
from providers.registry import nearest


def root() -> Path:
    """The folder that holds corpora/, queries/ and bakeoff.toml."""
    installed = Path(__file__).parent / "shipped"
    return installed if installed.is_dir() else Path(__file__).parent.parent


def default_lineup() -> Path:
    """The line-up that `bakeoff run` takes when there is none in the current folder."""
    return root() / "bakeoff.toml"


def task_names() -> list[str]:
    """The built-in tasks: every folder under queries/ that describes one."""
    return sorted(path.parent.name for path in (root() / "queries").glob("*/task.toml"))


def task_file(name: str) -> Path:
    """The description of a built-in task."""
    if name not in task_names():
        raise InputError(
            f"unknown task {name!r}", remedy=f"{nearest(name, task_names())} A path to an own task.toml works too."
        )
    return root() / "queries" / name / "task.toml"
