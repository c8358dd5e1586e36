"""A marker for fields with names. Results are scrubbed for secrets, but names link their parts."""

from __future__ import annotations

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
