"""What travels with Bakeoff: the corpora, the tasks and the line-ups, in a checkout and in a wheel alike."""

from __future__ import annotations

from pathlib import Path

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest
from bakeoff_providers.weights import home


def root() -> Path:
    """The folder that holds corpora/, queries/, lineups/ and bakeoff.toml."""
    package = Path(__file__).parent.parent
    installed = package / "data"
    return installed if installed.is_dir() else package.parent.parent


def vectors_folder() -> Path:
    """Where vectors are kept between runs."""
    return home() / "vectors"


def default_lineup() -> Path:
    """The line-up that `bakeoff run` takes when there is none in the current folder."""
    return root() / "bakeoff.toml"


def lineup_names() -> list[str]:
    """The built-in line-ups that can be run by name, one for each example."""
    return sorted(path.stem for path in (root() / "lineups").glob("*.toml"))


def lineup_file(given: Path) -> Path:
    """A line-up by its path, or by the name of a built-in one where there is no such file."""
    if given.exists() or given.suffix or len(given.parts) > 1:
        return given
    if given.name not in lineup_names():
        raise InputError(
            f"no such file, and no built-in line-up {given.name!r}",
            remedy=f"{nearest(given.name, lineup_names())} A path to an own line-up works too.",
        )
    return root() / "lineups" / f"{given.name}.toml"


def task_names() -> list[str]:
    """The built-in tasks: every folder under queries/ that describes one."""
    return sorted(path.parent.name for path in (root() / "queries").glob("*/task.toml"))


def task_file(name: str) -> Path:
    """The description of a built-in task."""
    if name not in (known := task_names()):
        raise InputError(
            f"unknown task {name!r}: no such folder or file is here, and the built-in ones are {', '.join(known)}",
            remedy=f"{close + ' ' if (close := nearest(name, known)).endswith('?') else ''}"
            "The path of an own task's folder, or of its task.toml, works too.",
        )
    return root() / "queries" / name / "task.toml"
