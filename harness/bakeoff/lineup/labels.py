"""Labels of rows: unique, and safe as file names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.systems.base import System

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
