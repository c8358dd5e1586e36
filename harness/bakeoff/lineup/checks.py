"""Labels, and checks before a run: what would fail on writing the result, or leak secrets with it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bakeoff_providers.errors import InputError
from bakeoff_providers.keys import find_secret
from bakeoff_providers.registry import nearest
from bakeoff_providers.secrets import passwords_in, secret_in_url

from bakeoff.systems.base import System

Row = TypeVar("Row", bound=System)


def match_labels(wanted: Sequence[str], names: Mapping[str, set[str]]) -> list[str]:
    """Labels of contenders with any of these names, as for `--contender`; all where none is given."""
    for name in wanted:
        if not any(name in known for known in names.values()):
            every = sorted(set[str]().union(*names.values()))
            raise InputError(f"--contender {name!r} matches no contender", remedy=nearest(name, every))
    return [label for label, known in names.items() if not wanted or known & set(wanted)]


def match_label(name: str, names: Mapping[str, set[str]], place: str = "baseline") -> str:
    """The label of the only contender that has this name."""
    if name in names:
        return name
    found = [label for label, known in names.items() if name in known]
    if not found:
        every = sorted(set[str]().union(*names.values()))
        raise InputError(f"no contender is called {name!r}", place=place, remedy=nearest(name, every))
    if len(found) > 1:
        raise InputError(f"{name!r} is {len(found)} contenders", place=place, remedy=f"name one: {', '.join(found)}")
    return found[0]


def safe_label(text: str) -> str:
    """A label as part of a file name: unsafe characters become dashes."""
    return re.sub(r"[^\w.+@-]+", "-", text)


def with_unique_labels(contenders: Sequence[Row]) -> list[Row]:
    """Rows with unique, path-safe labels."""
    seen: set[str] = set()
    safe = [replace(contender, label=safe_label(contender.label)) for contender in contenders]
    for contender in safe:
        if contender.label in seen:
            raise InputError(f"two contenders are called {contender.label!r}", remedy="give one of them a label")
        seen.add(contender.label)
    return safe


def short_names(contenders: Sequence[System]) -> dict[str, str]:
    """By label: the name without the store where only one contender has it, else the label."""
    names = [safe_label(contender.name or contender.label) for contender in contenders]
    return {
        contender.label: name if names.count(name) == 1 else contender.label
        for contender, name in zip(contenders, names, strict=True)
    }


LONGEST_NAME = 200  # bytes; file systems allow 255, with a date and an extension
MOST = {"depth": 1_000_000, "rounds": 10_000}
LARGEST_SEED = 2**63 - 1
ADDRESSES = ("base_url", "url")


def check_name(name: str, place: str) -> None:
    """The name becomes part of a folder name and a page heading."""
    check_label(name, place)
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        raise InputError("has a control character in it", place=place, remedy="leave it out")


def check_label(name: str, place: str) -> None:
    """Labels become file names and may be too long. Forbidden characters are already replaced."""
    if len(name.encode(errors="surrogatepass")) > LONGEST_NAME:
        raise InputError(f"is longer than {LONGEST_NAME} bytes", place=place, remedy="choose a shorter one")


def check_labels(contenders: Iterable[System]) -> None:
    """Check the final labels of rows."""
    for contender in contenders:
        check_label(contender.label, f"label {contender.label[:40]}…")


def check_settings(name: str, depth: int | None, rounds: int, seed: int) -> None:
    """Check the settings of every line-up, from a file or from Python."""
    check_number(depth, "depth")
    check_number(rounds, "rounds")
    check_seed(seed, "seed")
    check_name(name, "name")


def check_number(value: int | None, place: str) -> None:
    """A count of at least one, within reason."""
    if value is not None and value < 1:
        raise InputError("must be at least 1", place=place)
    if value is not None and value > MOST[place]:
        raise InputError(f"must be at most {MOST[place]}", place=place)


def check_seed(seed: int, place: str) -> None:
    """A seed that every random generator takes."""
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError("must be a whole number from 0 to 2^63 - 1", place=place)


def check_no_secrets(options: Mapping[str, Any], place: str) -> None:
    """Refuse secrets in addresses and options, as results hold the line-up."""
    if secret := find_secret(options, place):
        raise InputError(
            "a key or a password is written down here",
            place=secret,
            remedy="results hold the line-up: put it into an environment variable and write ${NAME}, all of it, where "
            "the code is your own; providers and stores take theirs from the environment (key_env names the variable)",
        )
    _check_addresses(options, place)


def _check_addresses(options: Mapping[str, Any], place: str) -> None:
    for key, value in options.items():
        where = f"{place}.{key}" if place else key
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, Mapping):
                _check_addresses(entry, where)
            elif isinstance(entry, str) and _is_address(key, entry) and (secret := secret_in_url(entry)):
                raise _build_error(secret, where)


def _is_address(key: object, value: str) -> bool:
    """By its name (`url`, `qdrant.url`) or its form."""
    return str(key).rpartition(".")[2] in ADDRESSES or "://" in value.partition(" ")[0]


def check_no_password(address: str, place: str) -> None:
    """Addresses may name a user, but no password or key."""
    if passwords_in(address):
        raise _build_error("a password", place)
    if address.startswith(("http://", "https://")) and (secret := secret_in_url(address)):
        raise _build_error(secret, place)


def _build_error(secret: str, place: str) -> InputError:
    return InputError(
        f"the address has {secret} in it",
        place=place,
        remedy="results hold the line-up: put a key into the variable that key_env or ${NAME} in a header names, "
        "and an address with a password into the provider's or store's environment variable",
    )
