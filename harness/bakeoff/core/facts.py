"""Facts that belong to figures, without words: ids with arguments, errors by their parts, tables of values.

`report/words.py` and `report/sections.py` say them. An extension has the words of its own facts (`core/extensions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from bakeoff.core.public import Public

Argument = str | bool | int | float | Sequence[str | int] | None
SOME = 5  # names in an argument beside their number


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something to know about figures. The id of an extension's fact begins with its name: `kinds.no_label`."""

    id: Public[str]
    arguments: dict[str, Argument] = {}


def fact(id_: str, /, **arguments: Argument) -> Fact:
    """A fact with its arguments by name."""
    return Fact(id_, arguments)


def quote(text: str) -> Fact:
    """Words that are not ours: of a library, of a user's file, or of a result that held sentences."""
    return fact("quote", text=text)


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a contender has no figures: the error that ended it, by its parts.

    `kind` is ours, `error` the name of its type. `lacks` are ids of `bakeoff_providers.errors.LACKS`; `text` is what an
    error says that has none.
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
    """The head of a column and how its numbers are to be shown.

    `fixed` has so many decimals, `significant` so many digits, `percent` shows a share of 1; `spread` is a mean and its
    standard deviation, `ratio` several numbers. `count` and `text` have no digits.
    """

    head: Fact | str  # a name is shown as it is
    form: Form = "text"
    digits: int = 3
    signed: bool = False
    unit: str = ""


def column(head: str, form: Form = "text", digits: int = 3, *, signed: bool = False, unit: str = "") -> TableColumn:
    """A column whose head is a fact without arguments."""
    return TableColumn(head=fact(head), form=form, digits=digits, signed=signed, unit=unit)


TableCell = str | int | float | Sequence[float] | Fact | None  # None: not known


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A table beside the matrix."""

    title: Fact
    head: Sequence[TableColumn] = ()
    rows: Sequence[Sequence[TableCell]] = ()
    notes: Sequence[Fact] = ()
