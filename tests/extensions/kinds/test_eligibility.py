"""Rules and their reasons, one truth table after the other."""

from __future__ import annotations

import msgspec
import pytest
from bakeoff.extensions.kinds.profiles import Rule, matches, overlap, reasons
from bakeoff_providers.errors import InputError

from tests.errors import refuses

RULES = [
    Rule(reason="GPA", profile="gpa", op="at_least", item="min_gpa"),
    Rule(reason="STATE", profile="state", op="one_of", item="states"),
]


@pytest.mark.parametrize(
    ("op", "mine", "asked", "holds"),
    [
        ("at_least", 3.0, 3.0, True),
        ("at_least", 2.9, 3.0, False),
        ("at_most", 3.0, 3.0, True),
        ("at_most", 3.1, 3.0, False),
        ("equals", "Utah", "utah", True),
        ("equals", "Utah", "Nevada", False),
        ("one_of", "Utah", ["Nevada", "utah"], True),
        ("one_of", "Utah", ["Nevada"], False),
        ("one_of", "Utah", "Utah", True),
        ("includes", ["art", "film"], "Film", True),
        ("includes", ["art"], "film", False),
        ("one_of", "Utah", [], None),
        ("at_least", 1.0, None, None),
        ("equals", "x", "", None),
        ("at_least", None, 3.0, False),
    ],
)
def test_a_rule_holds_fails_or_does_not_ask(op: str, mine: object, asked: object, holds: bool | None) -> None:
    assert Rule(profile="p", op=op, item="i").holds({"p": mine}, {"i": asked}) is holds


def test_all_reasons_are_given() -> None:
    item = {"min_gpa": 3.0, "states": ["Utah"]}
    assert reasons(RULES, {"gpa": 2.0, "state": "Ohio"}, item) == ["GPA", "STATE"]
    assert reasons(RULES, {"gpa": 3.5, "state": "Utah"}, item) == []
    assert reasons(RULES, {"gpa": 2.0, "state": "Ohio"}, {"min_gpa": None, "states": []}) == []


def test_what_is_open_to_everyone_is_no_match() -> None:
    assert matches(RULES, {"gpa": 3.5, "state": "Utah"}, {"min_gpa": None, "states": ["Utah"]}) == [False, True]


def test_overlap_is_a_share_of_the_profiles_words() -> None:
    assert overlap(["art", "Film", "jazz"], ["film", "art", "x", "y"]) == pytest.approx(2 / 3)
    assert overlap([], ["film"]) == 0
    assert overlap(["art"], []) == 0


def test_what_cannot_be_compared_is_named() -> None:
    with refuses(InputError, "'high'", "min_gpa", "3.0", "at_least", place="rules"):
        reasons(RULES, {"gpa": "high"}, {"min_gpa": 3.0})
    with refuses(msgspec.ValidationError, "'atleast'", "'at_least'"):
        msgspec.convert({"profile": "a", "op": "atleast", "item": "b"}, Rule)
