"""Names to adapters, imported only when asked for: how a plug-in of one file and one line is found."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from bakeoff_providers.errors import BakeoffError, InputError, Unavailable

T = TypeVar("T")


def nearest(name: str, known: list[str]) -> str:
    """The remedy for a misspelt name: the closest known one, or the list of all."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(sorted(known))}"


def missing_modules(modules: tuple[str, ...], extra: str | None) -> str | None:
    """Which install would make these importable; None when they all are. Imports nothing."""
    if all(importlib.util.find_spec(module) for module in modules):
        return None
    return f"install bakeoff[{extra}]" if extra else f"install {' '.join(modules)}"


class Registry(Generic[T]):
    """All plug-ins of one sort (`noun` names it): the built-in ones as `module:Class`, others by entry point."""

    def __init__(self, noun: str, group: str, builtin: Mapping[str, str]) -> None:
        self.noun, self.group, self.builtin = noun, group, dict(builtin)

    def names(self) -> list[str]:
        """Every known name, built-in ones first and in the order of their lines."""
        others = {point.name for point in entry_points(group=self.group)} - set(self.builtin)
        return [*self.builtin, *sorted(others)]

    def get(self, name: str) -> type[T]:
        """The adapter class; an unknown name is an input error that tells the nearest one."""
        if target := self.builtin.get(name):
            module, _, attribute = target.partition(":")
            return cast(type[T], getattr(import_module(module), attribute))
        for point in entry_points(group=self.group):
            if point.name == name:
                return cast(type[T], point.load())
        raise InputError(f"unknown {self.noun} {name!r}", remedy=nearest(name, self.names()))

    def create(self, name: str, /, **options: Any) -> T:
        """An adapter with its options; an option it does not take is an input error, a missing library a clear one."""
        adapter = self.get(name)
        self.check_options(name, options)
        try:
            return adapter(**options)
        except BakeoffError:
            raise
        except ImportError as error:
            raise Unavailable(f"{name}: {error}") from error

    def check_options(self, name: str, options: Mapping[str, Any]) -> None:
        """Refuses an option that the adapter does not take, before anything is imported, built or paid for."""
        parameters = inspect.signature(self.get(name)).parameters
        if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
            return
        for option in options:
            if option not in parameters:
                raise InputError(
                    f"{self.noun} {name!r} has no option {option!r}", remedy=nearest(option, list(parameters))
                )
