"""Facts about figures, without prose: ids with arguments, errors by their parts, tables of values.

`report/words.py` and `report/sections.py` turn them into text. Extensions define text for their own facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Literal, TypeVar, get_args, get_origin

import msgspec

T = TypeVar("T")

PUBLIC = msgspec.Meta(extra={"public": True})
Public = Annotated[T, PUBLIC]  # Public[str]: never scrubbed, even if it looks like a secret


@cache
def public_fields(struct: type[msgspec.Struct]) -> frozenset[str]:
    """The marked fields, and those with a fixed set of values."""
    return frozenset(field.name for field in msgspec.structs.fields(struct) if _is_public(field.type))


def _is_public(kind: object) -> bool:
    if get_origin(kind) is Annotated:
        inner, *marks = get_args(kind)
        return PUBLIC in marks or _is_public(inner)
    return get_origin(kind) is Literal or (get_origin(kind) is list and all(map(_is_public, get_args(kind))))


Argument = str | bool | int | float | Sequence[str | int | float] | None
SOME = 5  # names listed beside their count


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact about figures. Ids of extensions' facts start with the extension's name: `kinds.no_label`."""

    id: Public[str]
    arguments: dict[str, Argument] = {}


def fact(id_: str, /, **arguments: Argument) -> Fact:
    """A fact with named arguments."""
    return Fact(id_, arguments)


def quote(text: str) -> Fact:
    """Text from elsewhere: from a library, a user's file, or an older result."""
    return fact("quote", text=text)


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a contender has no figures: the error that stopped it, in parts.

    `kind` is Bakeoff's category, `error` the type's name. `lacks`: ids of `bakeoff_providers.errors.LACKS`; `text` is
    the message of an error that has none.
    """

    kind: Literal["input", "unavailable", "failed", "raised", "quoted"]  # by a library; from a result with sentences
    error: Public[str]
    text: str = ""
    lacks: list[Fact] = []
    file: str = ""
    place: str = ""
    remedy: str = ""


Form = Literal["text", "count", "fixed", "significant", "percent", "spread", "ratio"]


class TableColumn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column's heading and number format.

    `fixed` has a number of decimals, `significant` a number of digits, `percent` shows a share of 1. `spread` is a mean
    with its standard deviation, `ratio` several numbers. `count` and `text` have no digits.
    """

    head: Fact | str  # a name is shown as it is
    form: Form = "text"
    digits: int = 3
    signed: bool = False
    unit: str = ""


def column(head: str, form: Form = "text", digits: int = 3, *, signed: bool = False, unit: str = "") -> TableColumn:
    """A column whose heading is a fact without arguments."""
    return TableColumn(head=fact(head), form=form, digits=digits, signed=signed, unit=unit)


TableCell = str | int | float | Sequence[float] | Fact | None  # None: unknown


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A table in addition to the matrix."""

    title: Fact
    head: Sequence[TableColumn] = ()
    rows: Sequence[Sequence[TableCell]] = ()
    notes: Sequence[Fact] = ()
