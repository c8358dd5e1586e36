"""Eligibility rules from a file, each with a reason code for exclusions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest


def _same(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def _among(value: Any, values: Any) -> bool:
    listed = values if isinstance(values, list | tuple) else [values]
    return _same(value) in {_same(one) for one in listed}


# The profile's value comes first, the item's second.
OPERATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "at_least": lambda mine, asked: bool(mine >= asked),
    "at_most": lambda mine, asked: bool(mine <= asked),
    "equals": lambda mine, asked: bool(_same(mine) == _same(asked)),
    "one_of": _among,
    "includes": lambda mine, asked: _among(asked, mine),
}


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`profile` op `item`, both attribute names. `boost` is for rules that promote instead of excluding."""

    profile: Annotated[str, "attribute of the profile"]
    op: Annotated[str, "at_least, at_most, equals, one_of or includes"]
    item: Annotated[str, "attribute of the item"]
    reason: Annotated[str, "reason code for excluding an item"] = ""
    boost: Annotated[float, "amount added to the score, for boosts"] = 0.0

    def __post_init__(self) -> None:
        if self.op not in OPERATIONS:
            raise ValueError(f"unknown operation {self.op!r}; {nearest(self.op, list(OPERATIONS))}")

    def holds(self, profile: Mapping[str, Any], item: Mapping[str, Any]) -> bool | None:
        """None if the item has no requirement. A missing profile attribute fails the rule."""
        asked, mine = item.get(self.item), profile.get(self.profile)
        if asked is None or asked == "" or (isinstance(asked, list) and not asked):
            return None
        if mine is None or mine == "":
            return False
        try:
            return OPERATIONS[self.op](mine, asked)
        except TypeError:
            raise InputError(
                f"{self.profile} = {mine!r} can't be compared to {self.item} = {asked!r} by {self.op}", place="rules"
            ) from None


def reasons(rules: Sequence[Rule], profile: Mapping[str, Any], item: Mapping[str, Any]) -> list[str]:
    """Codes of all rules that exclude this profile from this item; empty if eligible."""
    return [rule.reason for rule in rules if rule.holds(profile, item) is False]


def matches(rules: Sequence[Rule], profile: Mapping[str, Any], item: Mapping[str, Any]) -> list[bool]:
    """Rules that the item requires and the profile satisfies. An item without a requirement is no match."""
    return [rule.holds(profile, item) is True for rule in rules]


def overlap(mine: Sequence[str], theirs: Sequence[str]) -> float:
    """The share of the profile's keywords that the item has."""
    for words in (mine, theirs):
        if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
            problem = f"keywords must be a list of strings, not {str(words)[:80]}"
            raise InputError(problem, place="keywords", remedy='write them as ["one", "two"]')
    wanted = {_same(word) for word in mine}
    return len(wanted & {_same(word) for word in theirs}) / len(wanted) if wanted else 0.0
