"""User code: loaded from a file and identified by its content, so that caches never mix versions."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest, snapshot_packages
from bakeoff_providers.stopping import ends_run

OURS = ("bakeoff_providers", "bakeoff")
SCHEME = "file:"


def file_reference(text: str) -> tuple[str, str] | None:
    """`file:mine.py:embed` → the file and the name in it; None for anything else."""
    if not text.startswith(SCHEME):
        return None
    file, colon, name = text.removeprefix(SCHEME).rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise InputError(f"{text!r} names no function", remedy='write it as "file:mine.py:embed"')
    return file, name


def load_from_file(file: Path | str, name: str) -> Any:
    """A function or class of a Python file. Errors raised by the file are reported with their place."""
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="paths are relative to the line-up")
    module = _module(path)
    if not hasattr(module, name):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise InputError(f"has no {name!r}", file=path, remedy=nearest(name, known) if known else "define it")
    loaded = getattr(module, name)
    if not callable(loaded):
        raise InputError(f"{name!r} is neither a function nor a class", file=path)
    return loaded


def _module(path: Path) -> ModuleType:
    """Reloaded when its content changes. It can import modules from its folder."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    name = f"bakeoff_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("is not a Python file", file=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if ends_run(error):
            raise
        raise InputError(f"can't be imported: {type(error).__name__}: {error}", file=path) from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def code_identity(code: object) -> dict[str, str] | None:
    """The identity of a class or function: nothing for ours, else a revision, else a hash of its source.

    None if there is no source. Its results must not be cached then.
    """
    module = inspect.getmodule(code)
    package = (module.__name__ if module else "").partition(".")[0]
    if package in OURS:
        return {}
    revision = getattr(code, "revision", None)
    if isinstance(revision, (str, int)):
        return {"revision": str(revision)}
    try:
        source = inspect.getsourcefile(code)  # type: ignore[arg-type]
    except (TypeError, OSError):
        source = None
    if source is None or not Path(source).is_file():
        return None
    identity = {"code": _hash(_files(Path(source), package))}
    for distribution in _distributions(snapshot_packages()).get(package, ())[:1]:
        try:
            identity["distribution"] = f"{distribution} {version(distribution)}"
        except PackageNotFoundError:
            continue
    return identity


@lru_cache(maxsize=1)
def _distributions(state: object) -> Mapping[str, list[str]]:  # noqa: ARG001 - what was read depends on it
    """Import name → distributions that provide it. Reading them takes a third of a second."""
    return packages_distributions()


def _files(source: Path, package: str) -> list[Path]:
    """All modules of the file's package; only the file if it has no package."""
    if not (source.parent / "__init__.py").is_file():
        return [source]
    folder = next((parent for parent in source.parents if parent.name == package), source.parent)
    return sorted(folder.rglob("*.py"))


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:32]
