"""Names in a line-up: labels, `${NAME}`, and checks of what would fail on writing the result or leak secrets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bakeoff_providers.errors import InputError
from bakeoff_providers.keys import VARIABLE, fill_in, find_secret, missing_variables, variables_in
from bakeoff_providers.registry import nearest
from bakeoff_providers.secrets import is_secret_variable, passwords_in, secret_in_url

from bakeoff.systems.base import System

Path = tuple[str | int, ...]
Unset = dict[tuple[str, int], str]  # table and number of an entry → its unset variables

# The tables whose entries are rows, and the settings that a row keeps which can't run for want of a variable.
_ROWS = {
    "contender": ("provider", "ranker", "answers", "retriever", "system", "model", "label", "options"),
    "fusion": ("of", "label"),
    "rerank": ("provider", "of", "model", "label"),
}
_RETRIEVER = ("url", "ids", "scores", "method", "unknown", "file", "function")  # others may hold a secret


def fill_lineup(content: Mapping[str, Any], unset: Unset) -> dict[str, Any]:
    """Fill in variables. Rows with an unset one go into `unset`; elsewhere it raises."""
    return {key: _fill_table(key, value, unset) for key, value in content.items()}


def name_without_marks(text: str) -> str:
    """A row name in which `${NAME}` becomes NAME."""
    return VARIABLE.sub(r"\1", text)


def _fill_table(key: str, value: Any, unset: Unset) -> Any:
    if key not in _ROWS or not isinstance(value, list):
        return _change_texts(value, (key,), _fill, lambda _: False)
    return [
        _fill_entry(key, number, entry, unset) if isinstance(entry, Mapping) else entry
        for number, entry in enumerate(value)
    ]


def _fill_entry(table: str, number: int, entry: Mapping[str, Any], unset: Unset) -> dict[str, Any]:
    def later(path: Path) -> bool:
        _, _, setting, *rest = path
        if setting in ("options", "retriever") and rest:
            return "retriever" not in entry or rest[0] not in _RETRIEVER
        return path[-1] == "options" and setting != "options"

    place: Path = (table, number)
    texts: list[str] = []
    _change_texts(entry, place, lambda text, _: texts.append(text), later)
    if reason := missing_variables(texts):
        unset[table, number] = reason
        return _reduce(table, entry)
    done: dict[str, Any] = _change_texts(entry, place, _fill, later)
    return done


def _reduce(table: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The settings kept of a row that can't run; a value such as "${PRECISION}" would fail validation."""
    kept = {key: entry[key] for key in _ROWS[table] if key in entry}
    if "store" in entry:
        stores = entry["store"] if isinstance(entry["store"], list) else [entry["store"]]
        kept["store"] = [
            store.get("label") or store.get("name") if isinstance(store, Mapping) else store for store in stores
        ]
    return kept


def _fill(text: str, path: Path) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    if secret := next(filter(is_secret_variable, variables_in(text)), None):
        raise InputError(
            f"{secret} is the name of a secret, and results hold this text",
            place=place,
            remedy="options may name it; a provider reads its key from the environment (key_env)",
        )
    if reason := missing_variables(text):
        raise InputError(reason, place=place, remedy="set it, or write the text itself")
    return str(fill_in(text, secret=False))


def _change_texts(value: Any, path: Path, change: Callable[[str, Path], Any], later: Callable[[Path], bool]) -> Any:
    """Apply `change` to every string, except those filled in later."""
    if len(path) > 2 and later(path):
        return value
    if isinstance(value, str):
        return change(value, path)
    if isinstance(value, Mapping):
        return {key: _change_texts(part, (*path, key), change, later) for key, part in value.items()}
    if isinstance(value, list):
        return [_change_texts(part, (*path, number), change, later) for number, part in enumerate(value)]
    return value


Row = TypeVar("Row", bound=System)


def match_labels(wanted: Sequence[str], names: Mapping[str, set[str]]) -> list[str]:
    """Labels of contenders with any of these names, as for `--contender`; all if none is given."""
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
    """Maps each label to its name without the store if that is unique, else to itself."""
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
