"""JSON files with user data: unknown keys become metadata and are reported, misspelt keys are refused."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import misfit
from bakeoff_providers.registry import closest

from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import decode_json

T = TypeVar("T")

ALIKE = 0.8  # difflib ratio from which a key counts as misspelt
_METADATA = "metadata"  # the field that takes unknown keys
_UNKNOWN = "Object contains unknown field"  # the start of msgspec's message


def read_data(path: Path, shape: type[T]) -> tuple[T, list[Fact]]:
    """The content of a file, and remarks about its unknown keys."""
    reader = _EntryReader(path)

    def decode(data: bytes | bytearray) -> T:
        try:
            return msgspec.json.decode(data, type=shape)
        except msgspec.ValidationError as error:
            if not str(error).startswith(_UNKNOWN):
                raise
        return reader.read(data, shape)

    content = decode_json(path, decode, shape)
    return content, [
        fact("unknown_key", file=path.name, key=key, entries=entries, count=number)
        for (entries, key), number in reader.unknown.items()
    ]


class _EntryReader:
    """Decodes a file with unknown keys entry by entry, so that at most one entry is in memory twice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unknown: Counter[tuple[str, str]] = Counter()  # by the entry's list and the key

    def read(self, data: bytes | bytearray, shape: type[T]) -> T:
        self.unknown.clear()
        raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        lists = {name: self._entries(raw[name], name, kind) for name, kind in _lists(shape).items() if name in raw}
        content = {name: [] if name in lists else msgspec.json.decode(value) for name, value in raw.items()}
        whole = self._convert(content, shape, "$", "")
        for name, entries in lists.items():
            setattr(whole, name, entries)
        return whole

    def _entries(self, raw: msgspec.Raw, name: str, shape: type[T]) -> list[T]:
        try:
            entries = msgspec.json.decode(raw, type=list[msgspec.Raw])
        except msgspec.ValidationError as error:
            raise misfit(error, list, f"$.{name}", self.path) from None
        return [self._entry(entry, shape, f"$.{name}[{number}]", name) for number, entry in enumerate(entries)]

    def _entry(self, raw: msgspec.Raw, shape: type[T], place: str, entries: str) -> T:
        try:
            return msgspec.json.decode(raw, type=shape)
        except msgspec.ValidationError as error:
            if not str(error).startswith(_UNKNOWN):
                raise misfit(error, shape, place, self.path) from None
        return self._convert(msgspec.json.decode(raw), shape, place, entries)

    def _convert(self, content: dict[str, Any], shape: type[T], place: str, entries: str) -> T:
        """The content as a struct, with unknown keys in its metadata."""
        own = content.get(_METADATA, {})
        for key, value in self._take_unknown(content, shape, place, entries).items():
            if not isinstance(own, dict):
                break  # the remaining keys do not fit either
            if key in own:
                raise InputError(
                    f"{key!r} is also in {_METADATA}", file=self.path, place=place, remedy="keep one of the two"
                )
            content[_METADATA] = own = {**own, key: value}
        try:
            return msgspec.convert(content, shape)
        except msgspec.ValidationError as error:
            raise misfit(error, shape, place, self.path) from None

    def _take_unknown(self, content: dict[str, Any], shape: Any, place: str, entries: str, inside: str = "") -> Any:
        """Removes unknown keys from an object and from the objects inside it."""
        known = _fields(shape)
        taken: dict[str, Any] = {}
        for key, value in list(content.items()):
            if key not in known:
                if question := _resembling(key, shape):
                    raise InputError(
                        f"there is no key {key!r}", file=self.path, place="" if place == "$" else place,
                        remedy=f"{question} Put custom keys into {_METADATA}",
                    )  # fmt: skip
                self.unknown[entries, f"{inside}{key}"] += 1
                taken[key] = content.pop(key)
            elif _is_struct(known[key]) and isinstance(value, dict):
                within = self._take_unknown(value, known[key], f"{place}.{key}", entries, f"{inside}{key}.")
                taken |= {key: within} if within else {}
        return taken


@lru_cache
def _fields(shape: Any) -> dict[str, Any]:
    """A struct's keys and their types."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(shape)}


@lru_cache
def _resembling(key: str, shape: Any) -> str:
    return closest(key, [*_fields(shape)], ALIKE)


def _lists(shape: Any) -> dict[str, Any]:
    """The fields of a file that are lists of entries."""
    return {name: get_args(kind)[0] for name, kind in _fields(shape).items() if get_origin(kind) is list}


def _is_struct(shape: Any) -> bool:
    return isinstance(shape, type) and issubclass(shape, msgspec.Struct)
