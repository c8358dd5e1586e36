"""Corpora, tasks and line-ups that ship with Bakeoff, in a checkout or a wheel."""

from __future__ import annotations

from pathlib import Path

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import closest, closest_path, nearest
from bakeoff_providers.weights import home

DRAFT_HEAD = "draft.json"  # in the folder of what a run measured, until its result is written


def is_draft(folder: Path) -> bool:
    """Whether this folder holds what a run measured, and no result yet."""
    return (folder / DRAFT_HEAD).is_file()


def root() -> Path:
    """The folder with corpora/, queries/, lineups/ and bakeoff.toml."""
    package = Path(__file__).parent.parent
    installed = package / "data"
    return installed if installed.is_dir() else package.parent.parent


def vectors_folder() -> Path:
    """The folder of the vector cache."""
    return home() / "vectors"


def default_lineup() -> Path:
    """The line-up that `bakeoff run` uses if the current folder has none."""
    return root() / "bakeoff.toml"


def built_in_lineups() -> dict[str, Path]:
    """The line-ups that can be run by name. The default one has the name of its task."""
    return {"wikipedia": default_lineup()} | {path.stem: path for path in (root() / "lineups").glob("*.toml")}


def lineup_names() -> list[str]:
    """The names of the built-in line-ups."""
    return sorted(built_in_lineups())


def lineup_file(given: Path) -> Path:
    """A line-up by path, or by built-in name if there is no such file."""
    if given.is_dir() and given.name not in lineup_names():
        own = given / "bakeoff.toml"
        remedy = f"name the file: {own}" if own.is_file() else f"bakeoff init {given} writes one for a task's folder"
        raise InputError("is a folder; a line-up is a file", file=given, remedy=remedy)
    if given.is_file():
        return given
    if given.suffix or len(given.parts) > 1:
        question = closest_path(given, sorted(given.parent.glob("*.toml")))
        raise InputError("no such file", file=given, remedy=question or "check the path")
    if given.name not in lineup_names():
        raise InputError(
            f"no such file, and no built-in line-up {given.name!r}",
            remedy=f"{nearest(given.name, lineup_names())} A path to your own line-up works too.",
        )
    return built_in_lineups()[given.name]


def task_names() -> list[str]:
    """The built-in tasks: every folder under queries/ that describes one."""
    return sorted(path.parent.name for path in (root() / "queries").glob("*/task.toml"))


def task_file(name: str, base: Path = Path()) -> Path:
    """The description of a built-in task. `base` is where a folder of this name was looked for."""
    if name in (known := task_names()):
        return root() / "queries" / name / "task.toml"
    if (base / name).is_dir():
        raise InputError(
            f"the folder {name!r} is not a task: it has no task.toml",
            remedy=f"bakeoff init --documents {name}/FILE makes a task of documents; or name the folder of a task",
        )
    own = [path.parent.name for path in sorted(base.glob("*/task.toml"))]
    question = closest(name, [*own, *known])
    raise InputError(
        f"unknown task {name!r}: no such folder or file is here, and the built-in ones are {', '.join(known)}",
        remedy=f"{question} The path of your own task folder or task.toml works too.".lstrip(),
    )


def task_description(source: str, base: Path) -> Path:
    """The task.toml of a built-in name, a path or a folder. Built-in names take precedence over folders."""
    if source.endswith(".toml"):
        return base / source
    own = base / source / "task.toml"
    try:
        is_own = source not in task_names() and own.is_file()
    except OSError as error:
        raise InputError(f"can't be a task: {error.strerror}", place=f"{source[:40]}…") from None
    return own if is_own else task_file(source, base)
