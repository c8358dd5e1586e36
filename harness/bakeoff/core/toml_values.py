"""TOML values, written as TOML and carried by JSON.

JSON has no dates, no infinity and no integers beyond 64 bits. `json_safe` stores such a value as `{"$toml": its text}`.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

VERBATIM = "$toml"
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


def toml_value(value: Any) -> str:
    """A value on one line of TOML 1.0."""
    match value:
        case None:
            raise InputError("TOML has no null", remedy="leave it out")
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case datetime.date() | datetime.time():  # includes datetime
            return value.isoformat()
        case float():
            return repr(value)  # TOML spells inf and nan as Python does
        case {"$toml": str(spelling)} if len(value) == 1:
            return spelling
        case Mapping():
            return "{ " + ", ".join(f"{_text(key)} = {toml_value(part)}" for key, part in value.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(toml_value, value)) + "]"
    return str(int(value))


def _text(text: str) -> str:
    """JSON escapes everything that TOML requires, except one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def json_safe(value: Any) -> Any:
    """The value in a form that JSON can carry; TOML text for the rest."""
    match value:
        case None | bool() | str():
            return value
        case datetime.date() | datetime.time():
            return {VERBATIM: toml_value(value)}
        case int():
            return value if _SMALLEST <= value <= _LARGEST else {VERBATIM: str(value)}
        case float():
            return value if math.isfinite(value) else {VERBATIM: repr(value)}
        case Mapping() if set(value) == {VERBATIM}:
            return {VERBATIM: "{ " + f"{_text(VERBATIM)} = {toml_value(json_safe(value[VERBATIM]))}" + " }"}
        case Mapping():
            return {key: json_safe(part) for key, part in value.items()}
        case list() | tuple():
            return [json_safe(part) for part in value]
    return msgspec.to_builtins(value)
