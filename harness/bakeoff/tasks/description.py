"""Where a task is described: its task.toml."""

from __future__ import annotations

from pathlib import Path

from bakeoff_providers.errors import InputError

from bakeoff.core.paths import task_file, task_names


def task_description(source: str, base: Path) -> Path:
    """The task.toml behind a built-in name, a path or a folder; a built-in name goes before a folder of that name."""
    if source.endswith(".toml"):
        return base / source
    own = base / source / "task.toml"
    try:
        is_own = source not in task_names() and own.is_file()
    except OSError as error:
        raise InputError(f"can't be a task: {error.strerror}", place=f"{source[:40]}…") from None
    return own if is_own else task_file(source, base)
