"""A result as JSON that may be shown to everybody: no secret of the environment is in any text of it.

Names are left as they are: by them the parts of a result find each other, and a password may be a word like any other.
Numbers and keys are no texts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from bakeoff_providers.secrets import HIDDEN, known_spellings

LINEUP = "lineup"  # plain mappings whose keys are fields
OPEN = frozenset({"headers", "options", "overrides", "store_options"})  # in a line-up: what people call as they like
NAMES = frozenset(
    {
        *("a", "b", "best", "bases", "categories", "category", "challenger", "field", "figures", "fingerprint", "ids"),
        *("kind", "label", "matrix_measures", "measure", "measures", "method", "model", "name", "of", "primary"),
        *(
            "provider",
            "ranker",
            "relation",
            "role",
            "row_type",
            "search",
            "started",
            "store",
            "stratum",
            "tie_group",
            "vectors",
        ),
        *("versions", "without_relevant"),
    }
)


def published(content: msgspec.Struct) -> bytes:
    """The JSON of a value. Only where something has to be struck out, it is gone through text by text."""
    spellings = known_spellings()
    try:
        encoded = msgspec.json.encode(content)
        if not any(msgspec.json.encode(_whole(spelling))[1:-1] in encoded for spelling in spellings):
            return encoded
        return msgspec.json.encode(_without(content, spellings))
    except UnicodeEncodeError:  # half a character, as in the name of a file that is not UTF-8
        return msgspec.json.encode(_all_whole(msgspec.to_builtins(_without(content, spellings))))


def _without(content: Any, spellings: list[str]) -> Any:
    @lru_cache(maxsize=1 << 16)  # the same texts come again and again
    def struck(text: str) -> str:
        for spelling in spellings:
            text = text.replace(spelling, HIDDEN)
        return text

    def cleaned(value: Any, in_lineup: bool = False) -> Any:
        if isinstance(value, str):
            return struck(value)
        if isinstance(value, msgspec.Struct):
            fields = {field: getattr(value, field) for field in value.__struct_fields__ if field not in NAMES}
            return msgspec.structs.replace(value, **{f: cleaned(part, f == LINEUP) for f, part in fields.items()})
        if isinstance(value, dict):
            return {
                key: part if in_lineup and key in NAMES else cleaned(part, in_lineup and key not in OPEN)
                for key, part in value.items()
            }
        return [cleaned(part, in_lineup) for part in value] if isinstance(value, list | tuple) else value

    return cleaned(content)


def _all_whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {_whole(key): _all_whole(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_all_whole(part) for part in value]
    return _whole(value) if isinstance(value, str) else value


def _whole(text: str) -> str:
    """JSON has no halves of characters: they are spelled out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
