"""Facts that belong to figures, without words: ids with arguments, errors by their parts, tables of values.

`report/words.py` and `report/sections.py` say them. An extension has the words of its own facts (`core/extensions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from bakeoff_providers.errors import place_words

from bakeoff.core.public import Public

Argument = str | bool | int | float | Sequence[str | int] | None
SOME = 5  # names listed beside their count


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact about figures. Ids of extensions' facts start with the extension's name: `kinds.no_label`."""

    id: Public[str]
    arguments: dict[str, Argument] = {}


def fact(id_: str, /, **arguments: Argument) -> Fact:
    """A fact with named arguments."""
    return Fact(id_, arguments)


Remark = Fact | str  # a string is shown as is: it came from outside, or from a result of the first format


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a contender has no figures: the error that stopped it, in parts.

    `kind` is Bakeoff's category, `error` the type's name, `text` the error's own message.
    """

    kind: Literal["input", "unavailable", "failed", "raised"]  # "raised": by a library or a plug-in
    error: Public[str]
    text: str
    file: str = ""
    place: str = ""
    remedy: str = ""

    @property
    def line(self) -> str:
        """One line, as errors are printed. Errors raised by a library start with their type."""
        raised = self.error if self.kind == "raised" else ""
        said = ": ".join(part for part in (self.file, place_words(self.place), raised, self.text) if part)
        return f"{said} ({self.remedy})" if self.remedy else said


Form = Literal["text", "count", "fixed", "significant", "percent", "spread", "ratio"]


class TableColumn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column's heading and number format.

    `fixed` has a number of decimals, `significant` a number of digits, `percent` shows a share of 1. `spread` is a mean
    with its standard deviation, `ratio` several numbers. `count` and `text` have no digits.
    """

    head: Remark
    form: Form = "text"
    digits: int = 3
    signed: bool = False
    unit: str = ""


def column(head: str, form: Form = "text", digits: int = 3, *, signed: bool = False, unit: str = "") -> TableColumn:
    """A column whose heading is a fact without arguments."""
    return TableColumn(head=fact(head), form=form, digits=digits, signed=signed, unit=unit)


TableCell = str | int | float | Sequence[float] | Fact | None  # None: unknown


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A table beside the matrix. A string as heading is for columns of strings."""

    title: Remark
    head: Sequence[TableColumn | str] = ()
    rows: Sequence[Sequence[TableCell]] = ()
    notes: Sequence[Remark] = ()
