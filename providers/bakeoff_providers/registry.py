"""Registries: names to adapters, which are imported on demand."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from bakeoff_providers.errors import BakeoffError, BrokenPlugin, InputError, Lack, Unavailable, is_panic, lack
from bakeoff_providers.secrets import scrub
from bakeoff_providers.stopping import ends_run

if TYPE_CHECKING:
    from pathlib import Path

    from bakeoff_providers.options import Option

T = TypeVar("T")
log = logging.getLogger(__name__)


def nearest(name: str, known: list[str]) -> str:
    """The remedy for a misspelt name: the closest known one, or the list of all."""
    return closest(name, known) or f"known: {', '.join(sorted(known))}"


def closest(name: str, known: list[str], alike: float = 0.5) -> str:
    """A question naming the closest known name; empty if none is close."""
    return _question(name, {known_one: known_one for known_one in known}, alike)


def closest_path(given: Path, known: Sequence[Path]) -> str:
    """Like `closest` for files, comparing file names without shared folders and suffixes."""
    return _question(given.stem, {path.stem: str(path) for path in known})


def _question(name: str, known: Mapping[str, str], alike: float = 0.5) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=alike)
    return f"did you mean {known[close[0]]!r}?" if close else ""


def missing_modules(modules: tuple[str, ...], extra: str | None) -> Lack | None:
    """The install command that would make these importable; None if they all are. Imports nothing."""
    if all(map(importable, modules)):
        return None
    return lack("package", install=f"bakeoff[{extra}]" if extra else " ".join(modules))


def importable(module: str) -> bool:
    """Whether a module is installed. Unlike `find_spec`, it does not import parent packages."""
    if module in sys.modules:
        return sys.modules[module] is not None  # Python marks modules that can't be imported with None
    package, _, rest = module.partition(".")
    spec = importlib.util.find_spec(package)
    while spec is not None and rest:
        name, _, rest = rest.partition(".")
        package = f"{package}.{name}"
        spec = PathFinder.find_spec(package, spec.submodule_search_locations)
    return spec is not None


def find_entry_points(groups: Sequence[str]) -> dict[str, list[Any]]:
    """Other packages' entry points by group, all read in one pass."""
    points = _entry_points(snapshot_packages())
    return {group: list(points.select(group=group)) for group in groups}


@lru_cache(maxsize=1)
def _entry_points(state: object) -> Any:  # noqa: ARG001 - what is read depends on it
    from importlib.metadata import entry_points  # here because it takes longer than starting Python

    return entry_points()


def snapshot_packages() -> tuple[tuple[str, int], ...]:
    """A value that changes when a package is installed or `sys.path` changes. Until then, metadata is read once."""
    from pathlib import Path

    folders = [Path(entry) for entry in sys.path]
    return tuple((str(folder), folder.stat().st_mtime_ns) for folder in folders if folder.is_dir())


def load_offered(point: Any, noun: str, read: Callable[[Any], T] = lambda plugin: plugin) -> T:
    """Loads another package's plug-in. If its code raises, the error names the package, and only it fails."""
    try:
        return read(point.load())
    except BaseException as error:
        if ends_run(error):
            raise
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        cause = scrub(f"{type(error).__name__}: {error}")
        raise BrokenPlugin(noun, point.name, package, f"{point.group}: {point.value}", cause) from error


def _others(group: str) -> list[Any]:
    return find_entry_points([group])[group]


class Registry(Generic[T]):
    """All plug-ins of one sort (`noun`): built-in ones as `module:Class`, others by entry point.

    `given` are parameters that the harness fills in, which are not user options.
    """

    def __init__(self, noun: str, group: str, builtin: Mapping[str, str], given: tuple[str, ...] = ()) -> None:
        self.noun, self.group, self.builtin, self.given = noun, group, dict(builtin), given

    def names(self) -> list[str]:
        """All known names, built-in ones first, in order."""
        others = {point.name for point in _others(self.group)} - set(self.builtin)
        return [*self.builtin, *sorted(others)]

    def load_all(self) -> Iterator[tuple[str, type[T]]]:
        """Every plug-in with its name. Other packages' plug-ins that can't be loaded are logged and skipped."""
        for name in self.names():
            try:
                yield name, self.get(name)
            except BrokenPlugin as error:
                log.warning("%s", error)

    def get(self, name: str) -> type[T]:
        """The adapter class. An unknown name is an InputError with the nearest one."""
        if target := self.builtin.get(name):
            module, _, attribute = target.partition(":")
            return cast(type[T], getattr(import_module(module), attribute))
        for point in _others(self.group):
            if point.name == name:
                return cast(type[T], load_offered(point, self.noun))
        raise InputError(f"unknown {self.noun} {name!r}", remedy=nearest(name, self.names()))

    def create(self, name: str, /, **options: Any) -> T:
        """An adapter with its options. Unknown options and missing libraries are clear errors."""
        adapter = self.get(name)
        self.check_options(name, {option: value for option, value in options.items() if option not in self.given})
        try:
            return adapter(**options)
        except BakeoffError:
            raise
        except BaseException as error:
            if isinstance(error, ImportError) or is_panic(error):
                raise Unavailable(f"{name}: {error}") from error
            raise

    def options(self, name: str) -> list[Option]:
        """The options a user may set, as the adapter declares them. The default model is a class attribute."""
        from bakeoff_providers.options import options_of  # here because `--help` and `list` don't need it

        adapter = self.get(name)
        known = getattr(adapter, "default_model", None)
        options = options_of(adapter, self.given)
        return [replace(option, default=known) if option.name == "model" else option for option in options]

    def check_options(self, name: str, options: Mapping[str, Any], *, whole: bool = False) -> None:
        """Refuses unknown options and values of the wrong type, before anything is built.

        A value that names a variable is checked if the variable is set; otherwise the row reports it. `whole` requires
        all required options.
        """
        from bakeoff_providers.keys import fill_in, missing_variables
        from bakeoff_providers.options import REST

        known = {option.name: option for option in self.options(name)}
        for option, value in options.items():
            if option in known:
                if not missing_variables(value):
                    _check_type(known[option], fill_in(value, secret=False))
            elif REST not in known or option in self.given:
                raise InputError(f"{self.noun} {name!r} has no option {option!r}", remedy=nearest(option, [*known]))
        for needed in known.values():
            if whole and needed.required and needed.name not in options:
                raise InputError(
                    f"{self.noun} {name!r} needs {needed.name} ({needed.meaning})",
                    place=needed.name,
                    remedy=f"`bakeoff options {name}` lists all that it takes",
                )


def _check_type(option: Option, value: Any) -> None:
    from bakeoff_providers.options import check_range, convert

    with contextlib.suppress(TypeError):  # a type that only the adapter can check
        convert(option.name, value, option.type)
    check_range(option.name, value, option.range)
