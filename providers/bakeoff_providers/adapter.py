"""Adapters whose answers are cached, and the parts of the cache key that cover their code and options."""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import PurePath
from typing import Any, Self

from bakeoff_providers.code import code_identity
from bakeoff_providers.keys import is_secret_name
from bakeoff_providers.options import options_of
from bakeoff_providers.secrets import redact_url, without_known


class Adapter:
    """Records the constructor's arguments, in case an author forgets an option in `identity`.

    Our own adapters are tested for this. For all others, every option enters the key, except those declared as
    `Transport` and those with secret names.
    """

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *values: Any, **options: Any) -> Self:
        """Records the constructor's arguments."""
        made = super().__new__(cls)
        object.__setattr__(made, "_made_with", (values, options))
        return made

    def code(self) -> dict[str, str] | None:
        """What the cache key adds to `identity`: nothing for our own adapters; None if nothing may be cached."""
        if not (code := code_identity(type(self))):
            return code
        try:
            return {**code, **self._options_identity()}
        except TypeError:  # a Python object that only its address could identify
            return None

    def _options_identity(self) -> dict[str, str]:
        values, given = self._made_with
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        options = {**dict(zip(names, values, strict=False)), **given}
        transport = {option.name for option in options_of(type(self)) if option.transport}
        kept = (name for name in sorted(options) if name not in transport and not is_secret_name(name))
        return {f"option {name}": _value_identity(options[name]) for name in kept}


def cache_key(adapter: Any, *about: Any) -> dict[str, str | int | float | bool | None] | None:
    """Everything but the text that shapes this adapter's answers; None if nothing may be cached."""
    code = adapter.code()
    return None if code is None else {**adapter.identity(*about), **code}


def _value_identity(value: Any) -> str:
    """The value as JSON. Addresses lose their password, and other secrets are hashed."""
    if isinstance(value, str) and "://" in value:
        value = redact_url(value)
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=_path_text)
    if without_known(text) != text:
        return f"sha256 {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"
    return text


def _path_text(value: object) -> str:
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no name")
