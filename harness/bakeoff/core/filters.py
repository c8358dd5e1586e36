"""The filter language: a field equals a value, or is one of several; all conditions must hold.

    where = {"language": "de", "year": [2023, 2024]}

Values are texts, whole numbers and truth values, and equal only to their own kind: 1 is neither "1" nor true. A
document that lacks a field does not pass a condition on it. That is all: what every store can do, no more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bakeoff_providers.errors import InputError

Scalar = str | int | bool
Metadata = Mapping[str, Scalar]
Where = Mapping[str, Scalar | Sequence[Scalar]]

_EXAMPLE = '{"language": "de", "year": [2023, 2024]}'


@dataclass(frozen=True, slots=True)
class Condition:
    """A field and its allowed values, all of one type."""

    field: str
    values: tuple[Scalar, ...]

    def tokens(self) -> list[str]:
        """Tokens, at least one of which a document must have."""
        return [token(self.field, value) for value in self.values]


def conditions(where: Where | None) -> tuple[Condition, ...]:
    """A filter in its checked form; empty if there is none."""
    return tuple(_condition(field, wanted) for field, wanted in (where or {}).items())


def parse_where(cell: Any) -> dict[str, Any]:
    """A filter from a table cell: an object or its JSON text. An empty cell means no filter."""
    if isinstance(cell, str):
        try:
            cell = json.loads(cell) if cell.strip() else {}
        except (RecursionError, ValueError):
            raise InputError(f"{cell[:60]!r} is not a filter", remedy=f"write it as {_EXAMPLE}") from None
    if cell is not None and not isinstance(cell, Mapping):
        raise InputError(f"{cell!r} is not a filter", remedy=f"write it as {_EXAMPLE}")
    where = {str(field): wanted for field, wanted in (cell or {}).items() if wanted is not None}
    conditions(where)
    return where


def _condition(field: str, wanted: Any) -> Condition:
    values = tuple(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else (wanted,)
    if not field or not values:
        raise InputError(f"the filter on {field!r} allows nothing", remedy="name a field and at least one value")
    for value in values:
        if not isinstance(value, (str, int)):
            raise InputError(
                f"the filter on {field!r} has {value!r}",
                remedy=f"a field has one value or a list, of texts, whole numbers, true and false, as in {_EXAMPLE}",
            )
    if len({type(value) for value in values}) > 1:
        raise InputError(f"the filter on {field!r} mixes kinds of values: {list(values)}", remedy="use one kind")
    return Condition(field, values)


def passes(metadata: Mapping[str, Any], filters: Sequence[Condition]) -> bool:
    """Whether a document with this metadata meets all conditions."""
    return all(
        condition.field in metadata
        and any(
            type(metadata[condition.field]) is type(value) and metadata[condition.field] == value
            for value in condition.values
        )
        for condition in filters
    )


def find_unmatched(filters: Mapping[str, Where], documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of filters that no document passes. Such queries find nothing."""
    left = {name: conditions(where) for name, where in filters.items() if where}
    for metadata in documents if left else ():
        left = {name: wanted for name, wanted in left.items() if not passes(metadata, wanted)}
    return list(left)


def filterable(metadata: Mapping[str, Any]) -> dict[str, Scalar]:
    """The fields that filters can use. Not every store can compare lists, fractions and missing values."""
    return {field: value for field, value in metadata.items() if field and isinstance(value, (str, int))}


def is_text(text: str) -> bool:
    """Whether a string can be encoded as UTF-8. Half a surrogate pair, which JSON can spell, can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def token(field: str, value: Scalar) -> str:
    """A field and its value as one string, for stores that index lists of strings. Types stay distinct."""
    return json.dumps([field, value], ensure_ascii=False)


def tokens(metadata: Metadata) -> list[str]:
    """All fields of a document as tokens."""
    return [token(field, value) for field, value in metadata.items()]
