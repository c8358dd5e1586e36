"""A result as JSON that may be shown to everybody: no secret of the environment is in any text of it.

Names are left as they are (`core/facts.py` marks them): by them the parts of a result find each other, and a password
may be a word like any other. Numbers and keys are no texts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from bakeoff_providers.secrets import HIDDEN, collect_spellings

from bakeoff.core.facts import public_fields

LINEUP = "lineup"  # plain mappings whose keys are fields
OPEN = frozenset({"headers", "options", "overrides", "store_options"})  # in a line-up: what people call as they like


def published(content: msgspec.Struct) -> bytes:
    """The JSON of a value. Only where something has to be struck out, it is gone through text by text."""
    spellings = collect_spellings()
    try:
        encoded = msgspec.json.encode(content)
        if not any(msgspec.json.encode(_whole(spelling))[1:-1] in encoded for spelling in spellings):
            return encoded
        return msgspec.json.encode(_without(content, spellings))
    except UnicodeEncodeError:  # half a character, as in the name of a file that is not UTF-8
        return msgspec.json.encode(_all_whole(msgspec.to_builtins(_without(content, spellings))))


def _without(content: Any, spellings: list[str]) -> Any:
    from bakeoff.lineup.entries import NAMES  # not above: a result is read without what it needs

    @lru_cache(maxsize=1 << 16)  # the same texts come again and again
    def struck(text: str) -> str:
        for spelling in spellings:
            text = text.replace(spelling, HIDDEN)
        return text

    def clean(value: Any, in_lineup: bool = False) -> Any:
        if isinstance(value, str):
            return struck(value)
        if isinstance(value, msgspec.Struct):
            private = set(value.__struct_fields__) - public_fields(type(value))
            fields = {field: getattr(value, field) for field in private}
            return msgspec.structs.replace(value, **{f: clean(part, f == LINEUP) for f, part in fields.items()})
        if isinstance(value, dict):
            return {
                key: part if in_lineup and key in NAMES else clean(part, in_lineup and key not in OPEN)
                for key, part in value.items()
            }
        return [clean(part, in_lineup) for part in value] if isinstance(value, list | tuple) else value

    return clean(content)


def _all_whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {_whole(key): _all_whole(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_all_whole(part) for part in value]
    return _whole(value) if isinstance(value, str) else value


def _whole(text: str) -> str:
    """JSON has no halves of characters: they are spelled out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
