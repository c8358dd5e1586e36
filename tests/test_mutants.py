"""What `make mutants` makes of a module, by hand: a tool that changes nothing would find every test good."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SOURCE = '''"""Ünï."""
LIMIT = 3
Size = Annotated[int | None, "how large"]


@cached(size=7)
def within(values: list[int] | None, most: float = 0.5) -> bool:
    """Not 1."""
    if not values or -sum(values) >= most * 2:
        raise ValueError(f"{len(values) + 1}")
    return max(zip(values, strict=True)) < LIMIT  # ü
'''

CHANGED = {
    ("LIMIT = 3", "LIMIT = 4"),
    ("LIMIT = 3", "LIMIT = 2"),
    ("most: float = 0.5", "most: float = 1.0"),
    ("if not values", "if values"),
    ("values or -sum", "values and -sum"),
    (" -sum(values)", " sum(values)"),
    (">= most", "> most"),
    (">= most", "< most"),
    ("most * 2", "most / 2"),
    ("* 2:", "* 3:"),
    ("* 2:", "* 1:"),
    ("return max(zip(values, strict=True)) < LIMIT ", "return True "),
    ("return max(zip(values, strict=True)) < LIMIT ", "return False "),
    ("max(zip", "min(zip"),
    ("< LIMIT", "<= LIMIT"),
    ("< LIMIT", "> LIMIT"),
}


def test_every_change_is_made_once_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from mutants.points import mutants_of

    mutants = mutants_of("within.py", SOURCE)
    expected = {SOURCE.replace(before, after, 1) for before, after in CHANGED}
    assert {mutant.applied(SOURCE) for mutant in mutants} == expected
    assert len(mutants) == len(expected) == len(CHANGED)
    last = next(mutant for mutant in mutants if mutant.replacement == "min")
    assert last.lines(SOURCE)[0] == "return max(zip(values, strict=True)) < LIMIT  # ü"
    assert last.lines(SOURCE)[1] == "return min(zip(values, strict=True)) < LIMIT  # ü"
    assert last.line_number(SOURCE) == 11
    sys.modules.pop("mutants.points", None)


def test_every_mutant_of_our_modules_is_python_and_every_listed_reason_is_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from mutants.__main__ import equivalents
    from mutants.points import mutants_of
    from mutants.targets import TARGETS

    listed = {(entry["module"], entry["before"], entry["after"]) for entry in equivalents()}
    seen = set()
    for module in {module for target in TARGETS for module in target.modules(ROOT)}:
        source = (ROOT / module).read_text()
        for mutant in mutants_of(str(module), source)[::40]:
            ast.parse(mutant.applied(source))
        texts = {before for named, before, _ in listed if named == str(module)}
        if texts:
            seen |= {(str(module), *mutant.lines(source)) for mutant in mutants_of(str(module), source)}
    assert listed - seen == set()
