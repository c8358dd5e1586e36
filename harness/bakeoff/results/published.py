"""A result as JSON without secrets of the environment.

Marked names (`core/facts.py`) are not scrubbed, because they link the parts of a result.
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
    """The JSON of a value. Texts are scrubbed one by one only if a secret occurs."""
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
    """Escapes lone surrogates, which JSON can't hold."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
