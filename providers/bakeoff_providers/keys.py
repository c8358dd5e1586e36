"""Keys from environment variables. A value that can't be sent as a header is reported, not sent."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from functools import partial
from typing import Any

from bakeoff_providers.errors import Lack, Unavailable, lack
from bakeoff_providers.secrets import passwords_in, remember

VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
_VARIABLE_ALONE = re.compile(
    r"(?:(?:Bearer|Basic|ApiKey|Api-Key|Key|Token) +)?\$\{[A-Z][A-Z0-9_]*\}", re.IGNORECASE
)  # HTTP schemes
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset(
    {
        *("apikey", "auth", "authorization", "bearer", "cookie", "credential", "credentials", "dsn", "key", "pass"),
        *("passphrase", "passwd", "password", "passwords", "pwd", "secret", "secrets", "token"),
    }
)
# Other names with key or token: data fields, and tokenizers' special tokens.
_OTHER_KEYS = frozenset(
    {
        *("bos", "cache", "cls", "document", "end", "eos", "field", "foreign", "group", "id", "idempotency", "item"),
        *("join", "label", "mask", "name", "object", "pad", "partition", "primary", "profile", "query", "result"),
        *("sep", "sort", "special", "start", "stop", "text", "title", "unk"),
        *("content", "date", "doc", "embedding", "hash", "image", "pooling", "score", "url", "value", "vector"),
    }
)

_BEFORE_PASS = frozenset({"admin", "db", "login", "user", "x"})  # db_pass is a password, first_pass is not


def is_secret_name(name: str) -> bool:
    """Whether an option or header of this name is secret: api_key and X-Pass are, id_key and max_tokens are not."""
    words = [word.lower() for word in _WORD.findall(name)] or [""]
    if len(words) > 1 and words[-1] in ("key", "token"):
        return words[-2] not in _OTHER_KEYS
    if len(words) > 1 and words[-1] == "pass":
        return words[-2] in _BEFORE_PASS
    return words[-1] in _SECRET_WORDS or words[-2:] in (["api", "keys"], ["access", "keys"], ["access", "tokens"])


def names_variable(value: str) -> bool:
    """Whether a text is just `${NAME}`, optionally after a scheme."""
    return _VARIABLE_ALONE.fullmatch(value.strip()) is not None


def find_secret(options: Mapping[str, Any], path: str = "") -> str | None:
    """The path of a literal secret in options; None if all are given as `${NAME}`."""
    for name, value in options.items():
        where = f"{path}.{name}" if path else str(name)
        for entry in value if isinstance(value, list | tuple) else [value]:
            if isinstance(entry, Mapping):
                if inner := find_secret(entry, where):
                    return inner
            elif isinstance(entry, str) and entry and is_secret_name(str(name)) and not names_variable(entry):
                return where
    return None


def key_in(name: str) -> str:
    """A variable's value without surrounding whitespace; empty if unset."""
    value = os.environ.get(name, "").strip()
    if reason := _unusable(name, value):
        raise Unavailable(reason)
    return value


def missing_key(name: str) -> Lack | None:
    """Why a variable holds no usable key; None if it does. Never quotes the value."""
    value = os.environ.get(name, "").strip()
    return _unusable(name, value) if value else lack("variable_unset", variable=name)


def fill_in(value: Any, *, secret: bool = True) -> Any:
    """Replaces `${NAME}` at any depth and registers the values with the scrubber.

    If `secret` is false, only a password within an address is scrubbed, since other values are plain words.
    """
    if isinstance(value, str):
        return VARIABLE.sub(partial(_value_of, secret=secret), value)
    if isinstance(value, Mapping):
        return {key: fill_in(entry, secret=secret) for key, entry in value.items()}
    return [fill_in(entry, secret=secret) for entry in value] if isinstance(value, list | tuple) else value


def variables_in(value: Any) -> list[str]:
    """The names of all variables in a value, at any depth."""
    if isinstance(value, str):
        return VARIABLE.findall(value)
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [name for entry in entries for name in variables_in(entry)]


def missing_variables(value: Any) -> Lack | None:
    """The variables in a value that are unset or unusable."""
    facts = [fact for reason in map(missing_key, dict.fromkeys(variables_in(value))) if reason for fact in reason.facts]
    return Lack(*facts) if facts else None


def _value_of(named: re.Match[str], *, secret: bool) -> str:
    if not (value := key_in(named[1])):
        raise Unavailable(lack("variable_unset", variable=named[1]))
    for hidden in {value} if secret else passwords_in(value):
        remember(hidden)
    return value if secret else os.environ[named[1]].strip("\r\n")  # a prompt may end in a space


def _unusable(name: str, value: str) -> Lack | None:
    """A client would reject such a header and quote it in its error."""
    control = [character for character in value if unicodedata.category(character) == "Cc"]
    if not control:
        return None
    sign = "a line break" if set(control) & {"\r", "\n"} else "a control character"
    return lack("key_unusable", variable=name, sign=sign)
