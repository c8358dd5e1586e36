"""`${NAME}` in a line-up. Options keep it until use, as results hold them; other strings are filled in here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bakeoff_providers.errors import InputError
from bakeoff_providers.keys import VARIABLE, fill_in, missing_variables, variables_in
from bakeoff_providers.secrets import is_secret_variable

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
