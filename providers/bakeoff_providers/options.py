"""Options, read from their declarations. The text next to a type describes the option.

`ef: Annotated[int, "candidates that a search looks at"] = 64` in a signature or struct is the only source for checks,
for `bakeoff options` and for the reference pages. A struct next to the text is the shape of a table, a `msgspec.Meta`
the range of a number; other numbers have the ranges below. `Transport` marks an option that changes no answer.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

REST = "…"  # the name of options passed on to something else
COUNT = msgspec.Meta(ge=1, le=1_000_000)  # an integer's default range
AMOUNT = msgspec.Meta(ge=0, le=1e9)  # any other number's
_WORDS = {str: "string", int: "integer", float: "number", bool: "true or false", dict: "table", Any: "any value"}
_PLURALS = {
    "string": "strings",
    "integer": "integers",
    "number": "numbers",
    "table": "tables",
    "any value": "any values",
}


class Transport:
    """Marks an option that affects how calls are made or paid for, never their answers."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `tables` are the structs that its value may be a table of."""

    name: str
    meaning: str
    type: Any = Any
    required: bool = False
    default: Any = None
    tables: tuple[type[msgspec.Struct], ...] = ()
    range: msgspec.Meta = COUNT
    transport: bool = False

    @property
    def type_words(self) -> str:
        """Its type in TOML terms."""
        return type_words(self.type)

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values, if they can be listed."""
        return choices_of(self.type)

    @property
    def default_words(self) -> str:
        """The default as text."""
        if self.required:
            return "required"
        if isinstance(self.default, msgspec.Struct):
            return "as below"
        return toml_words(self.default)


def options_of(declared: Any, given: collections.abc.Collection[str] = ()) -> list[Option]:
    """The options of a struct, class or function, in order. `given` names parameters that users don't set."""
    if isinstance(declared, type) and issubclass(declared, msgspec.Struct):
        return [option for option in _of_struct(declared) if option.name not in given]
    options: dict[str, Option] = {}
    rest: Option | None = None
    for callable_ in _callables(declared):
        rest = None
        hints = _hints(declared if is_dataclass(declared) else callable_)
        for parameter in inspect.signature(callable_).parameters.values():
            hint = hints.get(parameter.name, Any)
            if parameter.kind is parameter.VAR_KEYWORD:
                rest = _option(REST, hint)
            elif parameter.name not in ("self", *given, *options) and parameter.kind is not parameter.VAR_POSITIONAL:
                missing = parameter.default is parameter.empty
                options[parameter.name] = _option(parameter.name, hint, missing, None if missing else parameter.default)
        if rest is None or rest.meaning or rest.tables:
            break
    if rest is not None and rest.tables:
        inner = [option for table in rest.tables for option in options_of(table, {*given, *options})]
        return [*options.values(), *inner]
    return [*options.values(), *([rest] if rest is not None else [])]


def choices_of(hint: Any) -> tuple[str, ...]:
    """The values of a Literal or an Enum, also within a union or list."""
    hint = bare(hint)
    if get_origin(hint) is Literal:
        return tuple(str(value) for value in get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple(str(member.value) for member in hint)
    if is_union(hint) or get_origin(hint) in (list, tuple, collections.abc.Sequence):
        return tuple(dict.fromkeys(choice for part in get_args(hint) for choice in choices_of(part)))
    return ()


def type_words(hint: Any) -> str:
    """A type in TOML terms. Choices are listed."""
    hint = bare(hint)
    if hint in _WORDS:
        return _WORDS[hint]
    if get_origin(hint) is Literal:
        return _either(_values(hint))
    if is_union(hint):
        parts = [part for part in get_args(hint) if part is not type(None)]
        lists = [part for part in parts if get_origin(part) is list]
        single = [part for part in parts if part not in lists]
        if single and lists and type_words(get_args(lists[0])[0]) == _either(map(type_words, single)):
            values = [word for part in single for word in _values(part) or [type_words(part)]]
            return _either([*values, "a list of these"])
        return _either(map(type_words, parts))
    origin, arguments = get_origin(hint) or hint, [part for part in get_args(hint) if part is not ...]
    if origin in (list, tuple, collections.abc.Sequence):
        return f"list of {_plural(arguments[0])}" if arguments else "list"
    if origin in (dict, collections.abc.Mapping):
        inner = "" if not arguments or bare(arguments[1]) is Any else f" of {_plural(arguments[1])}"
        return f"table{inner}"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return "table"
    if isinstance(hint, type) and issubclass(hint, PurePath):
        return "string"
    return "any value"


def toml_words(value: Any) -> str:
    """A default in TOML spelling; `none` for nothing."""
    if value is None or value in ("", (), [], {}):
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, collections.abc.Mapping):
        return "{ " + ", ".join(f"{key} = {toml_words(part)}" for key, part in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_words, value)) + "]"
    return str(value)


def _of_struct(struct: type[msgspec.Struct]) -> Iterator[Option]:
    hints = _hints(struct)
    for field in msgspec.structs.fields(struct):
        made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        default = None if field.required else made
        yield _option(field.encode_name, hints.get(field.name, Any), field.required, default)


def _option(name: str, hint: Any, required: bool = False, default: Any = None) -> Option:
    notes = hint.__metadata__ if get_origin(hint) is Annotated else ()
    meaning = next((note for note in notes if isinstance(note, str)), "")
    noted = [note for note in notes if isinstance(note, type) and issubclass(note, msgspec.Struct)]
    tables = tuple(dict.fromkeys([*noted, *_structs(hint)]))
    said = next((note for note in notes if isinstance(note, msgspec.Meta)), None)
    return Option(name, meaning, bare(hint), required, default, tables, said or _usual_range(hint), Transport in notes)


def _usual_range(hint: Any) -> msgspec.Meta:
    hint = bare(hint)
    return AMOUNT if float in (get_args(hint) if is_union(hint) else (hint,)) else COUNT


def _callables(declared: Any) -> Iterator[Any]:
    """A function, or the constructors of a class and its bases, which share options passed on by **."""
    if not isinstance(declared, type):
        yield declared
        return
    yield from (base.__init__ for base in declared.__mro__ if "__init__" in vars(base) and base is not object)  # type: ignore[misc]


def _hints(declared: Any) -> dict[str, Any]:
    """The annotated types; plain ones if a name in them can't be resolved."""
    try:
        return get_type_hints(declared, include_extras=True)
    except NameError:
        return {}


def _structs(hint: Any) -> Iterator[type[msgspec.Struct]]:
    hint = bare(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for part in get_args(hint):
        yield from _structs(part)


def bare(hint: Any) -> Any:
    """The type without its annotations."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def is_union(hint: Any) -> bool:
    """Whether it is a union of types."""
    return get_origin(hint) in (Union, types.UnionType)


def _values(hint: Any) -> list[str]:
    hint = bare(hint)
    return [toml_words(value) for value in get_args(hint) if value != ""] if get_origin(hint) is Literal else []


def _either(words: collections.abc.Iterable[str]) -> str:
    *others, last = dict.fromkeys(words)
    return f"{', '.join(others)} or {last}" if others else last


def _plural(hint: Any) -> str:
    words = type_words(hint)
    return _PLURALS.get(words, words)


T = TypeVar("T")

_ARTICLES = {"string": "a string", "integer": "an integer", "number": "a number", "table": "a table"}
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
