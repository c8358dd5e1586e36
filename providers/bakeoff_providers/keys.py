"""Keys from the environment, by the name of their variable: a value that no header can carry is said, not sent."""

from __future__ import annotations

import os
import re
import unicodedata

from bakeoff_providers.errors import Unavailable

VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


def key_in(name: str) -> str:
    """The value of a variable without the blanks and line breaks around it; empty where it is not set."""
    value = os.environ.get(name, "").strip()
    if reason := _unusable(name, value):
        raise Unavailable(reason)
    return value


def missing_key(name: str) -> str | None:
    """Why a variable holds no key, in words; None where it does. Never quotes its value."""
    value = os.environ.get(name, "").strip()
    return _unusable(name, value) if value else f"{name} is not set"


def filled(text: str) -> str:
    """The text with the values of the variables that it names as `${NAME}`."""

    def value(named: re.Match[str]) -> str:
        if not (found := key_in(named[1])):
            raise Unavailable(f"{named[1]} is not set")
        return found

    return VARIABLE.sub(value, text)


def _unusable(name: str, value: str) -> str | None:
    """A client would refuse such a header and quote it whole in its error."""
    control = [character for character in value if unicodedata.category(character) == "Cc"]
    if not control:
        return None
    what = "a line break" if set(control) & {"\r", "\n"} else "a control character"
    return f"{name} holds {what}: no key has one"
