"""Names to adapters, imported only when asked for: how a plug-in of one file and one line is found."""

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
from bakeoff_providers.secrets import scrubbed
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
    """The question after the closest known name; empty where none is close."""
    return _question(name, {known_one: known_one for known_one in known}, alike)


def closest_path(given: Path, known: Sequence[Path]) -> str:
    """The same for files: their names are compared, as a folder or an ending that all share makes none alike."""
    return _question(given.stem, {path.stem: str(path) for path in known})


def _question(name: str, known: Mapping[str, str], alike: float = 0.5) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=alike)
    return f"did you mean {known[close[0]]!r}?" if close else ""


def missing_modules(modules: tuple[str, ...], extra: str | None) -> Lack | None:
    """Which install would make these importable; None when they all are. Imports nothing."""
    if all(map(importable, modules)):
        return None
    return lack("package", install=f"bakeoff[{extra}]" if extra else " ".join(modules))


def importable(module: str) -> bool:
    """Whether a module is installed. `find_spec` would import the packages that it is in."""
    if module in sys.modules:
        return sys.modules[module] is not None  # None is how Python marks what can't be imported
    package, _, rest = module.partition(".")
    spec = importlib.util.find_spec(package)
    while spec is not None and rest:
        name, _, rest = rest.partition(".")
        package = f"{package}.{name}"
        spec = PathFinder.find_spec(package, spec.submodule_search_locations)
    return spec is not None


def offered(groups: Sequence[str]) -> dict[str, list[Any]]:
    """What other packages offer, by the group of their entry points; all are read in one pass."""
    points = _entry_points(installed_state())
    return {group: list(points.select(group=group)) for group in groups}


@lru_cache(maxsize=1)
def _entry_points(state: object) -> Any:  # noqa: ARG001 - what is read depends on it
    from importlib.metadata import entry_points  # not above: it takes longer than Python's start

    return entry_points()


def installed_state() -> tuple[tuple[str, int], ...]:
    """Changes when a package is installed or a folder joins the path; until then its metadata is read once."""
    from pathlib import Path

    folders = [Path(entry) for entry in sys.path]
    return tuple((str(folder), folder.stat().st_mtime_ns) for folder in folders if folder.is_dir())


def load_offered(point: Any, noun: str, read: Callable[[Any], T] = lambda plugin: plugin) -> T:
    """What is read of a plug-in of another package. Whatever its code raises says whose it is, and costs it alone."""
    try:
        return read(point.load())
    except BaseException as error:
        if ends_run(error):
            raise
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        cause = scrubbed(f"{type(error).__name__}: {error}")
        raise BrokenPlugin(noun, point.name, package, f"{point.group}: {point.value}", cause) from error


def _others(group: str) -> list[Any]:
    return offered([group])[group]


class Registry(Generic[T]):
    """All plug-ins of one sort (`noun` names it): the built-in ones as `module:Class`, others by entry point.

    `given` are the parameters that the harness fills in: no option of a user's.
    """

    def __init__(self, noun: str, group: str, builtin: Mapping[str, str], given: tuple[str, ...] = ()) -> None:
        self.noun, self.group, self.builtin, self.given = noun, group, dict(builtin), given

    def names(self) -> list[str]:
        """Every known name, built-in ones first and in the order of their lines."""
        others = {point.name for point in _others(self.group)} - set(self.builtin)
        return [*self.builtin, *sorted(others)]

    def loaded(self) -> Iterator[tuple[str, type[T]]]:
        """Every plug-in with its name, but those of other packages that can't be loaded: the log says why."""
        for name in self.names():
            try:
                yield name, self.get(name)
            except BrokenPlugin as error:
                log.warning("%s", error)

    def get(self, name: str) -> type[T]:
        """The adapter class; an unknown name is an input error that tells the nearest one."""
        if target := self.builtin.get(name):
            module, _, attribute = target.partition(":")
            return cast(type[T], getattr(import_module(module), attribute))
        for point in _others(self.group):
            if point.name == name:
                return cast(type[T], load_offered(point, self.noun))
        raise InputError(f"unknown {self.noun} {name!r}", remedy=nearest(name, self.names()))

    def create(self, name: str, /, **options: Any) -> T:
        """An adapter with its options; an option it does not take is an input error, a missing library a clear one."""
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
        """What a user may set, as the adapter declares it; the model's default is an attribute of the class."""
        from bakeoff_providers.options import options_of  # not above: `--help` and `list` need none

        adapter = self.get(name)
        known = getattr(adapter, "default_model", None)
        options = options_of(adapter, self.given)
        return [replace(option, default=known) if option.name == "model" else option for option in options]

    def check_options(self, name: str, options: Mapping[str, Any], *, whole: bool = False) -> None:
        """Refuses an option that the adapter does not take, or a value of another type, before anything is built.

        A value that names a variable is checked where that is set: elsewhere the row will say that it is not.
        `whole` says that nothing will be added: then an option that is required has to be there, too.
        """
        from bakeoff_providers.keys import filled, missing_variables
        from bakeoff_providers.options import REST

        known = {option.name: option for option in self.options(name)}
        for option, value in options.items():
            if option in known:
                if not missing_variables(value):
                    _check_type(known[option], filled(value, secret=False))
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
    from bakeoff_providers.shapes import check_range, converted

    with contextlib.suppress(TypeError):  # a type that only the adapter itself can check
        converted(option.name, value, option.type)
    check_range(option.name, value, option.range)
