"""Checks values against types. Errors name the place, the allowed values, and the nearest key."""

from __future__ import annotations

import collections.abc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from bakeoff_providers.errors import InputError
from bakeoff_providers.options import bare, choices_of, is_union, options_of, type_words
from bakeoff_providers.registry import nearest

T = TypeVar("T")

_ARTICLES = {"integer": "an integer", "number": "a number", "string": "a string", "table": "a table"}
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")


def convert(name: str, value: Any, shape: type[T]) -> T:
    """An option's value as its type."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        if re.fullmatch(r"Expected `[^`]*`, got `[^`]*`", str(error)):  # the value itself, not something within it
            words = type_words(shape)
            raise InputError(f"{value!r} is not {_ARTICLES.get(words, words)}", place=name) from None
        raise misfit(error, shape, name) from None


def check_range(name: str, value: Any, allowed: msgspec.Meta) -> None:
    """Refuses numbers outside an option's range, also in lists, before they cause late errors."""
    for number in value if isinstance(value, list | tuple) else [value]:
        if isinstance(number, int | float) and not isinstance(number, bool) and not _within(number, allowed):
            low = f"above {allowed.gt:,}" if allowed.gt is not None else f"from {allowed.ge:,}"
            shown = number if isinstance(number, float) or abs(number) < 10**18 else f"{str(number)[:18]}…"
            raise InputError(f"{shown} is not {low} to {allowed.le:,.12g}", place=name)


def _within(number: float, allowed: msgspec.Meta) -> bool:
    """NaN is never within."""
    low = number > allowed.gt if allowed.gt is not None else allowed.ge is None or number >= allowed.ge
    return low and (allowed.le is None or number <= allowed.le)


def misfit(error: msgspec.ValidationError, shape: Any, name: str = "$", file: Path | str | None = None) -> InputError:
    """A helpful form of msgspec's error: the key, the allowed values, the nearest one."""
    problem, _, path = str(error).partition(" - at ")
    path = path.strip("`")
    place = name + path.removeprefix("$") if path else "" if name == "$" else name
    shapes = list(_at(shape, path))
    if match := re.fullmatch(r"Object contains unknown field `(.*)`", problem):
        keys = [option.name for struct in shapes if _is_struct(struct) for option in options_of(struct)]
        return InputError(f"there is no key {match[1]!r}", file=file, place=place, remedy=nearest(match[1], keys))
    if match := re.fullmatch(r"Invalid enum value '?(.*?)'?", problem):
        choices = [choice for one in shapes for choice in choices_of(one) if choice]
        listed = f"{match[1]!r} is not one of: {', '.join(dict.fromkeys(choices))}"
        return InputError(listed, file=file, place=place, remedy=nearest(match[1], choices))
    if match := re.fullmatch(r"Object missing required field `(.*)`", problem):
        options = [option for struct in shapes if _is_struct(struct) for option in options_of(struct)]
        meaning = next((option.meaning for option in options if option.name == match[1]), "")
        return InputError(f"{match[1]} is missing" + (f" ({meaning})" if meaning else ""), file=file, place=place)
    return InputError(problem, file=file, place=place)


def _at(shape: Any, path: str) -> Iterator[Any]:
    """The types allowed at a path such as `$.contender[0].store`."""
    shapes = list(_alternatives(shape))
    for step in _STEP.finditer(path):
        inner = (part for one in shapes for part in _inside(one, step["key"]))
        shapes = [alternative for part in inner for alternative in _alternatives(part)]
    yield from shapes


def _inside(shape: Any, key: str | None) -> Iterator[Any]:
    """The types under a key of a struct or table, or within a list."""
    if _is_struct(shape):
        yield from (option.type for option in options_of(shape) if option.name == key)
    elif get_origin(shape) in (list, tuple, collections.abc.Sequence):
        yield get_args(shape)[0]
    elif get_origin(shape) in (dict, collections.abc.Mapping):
        yield get_args(shape)[1]


def _alternatives(shape: Any) -> Iterator[Any]:
    shape = bare(shape)
    if is_union(shape):
        for part in get_args(shape):
            yield from _alternatives(part)
    else:
        yield shape


def _is_struct(shape: Any) -> bool:
    return isinstance(shape, type) and issubclass(shape, msgspec.Struct)
