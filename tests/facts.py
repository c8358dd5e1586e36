"""What tests ask of facts: which there are, and with which arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bakeoff.core.facts import Fact, Section
from bakeoff.report.words import words


def ids(remarks: Iterable[object]) -> list[str]:
    """The ids of the facts, in their order."""
    return [remark.id for remark in remarks if isinstance(remark, Fact)]


def arguments(remarks: Iterable[object], id_: str) -> list[dict[str, Any]]:
    """The arguments of every fact with this id."""
    return [remark.arguments for remark in remarks if isinstance(remark, Fact) and remark.id == id_]


def section(sections: Iterable[Section], id_: str) -> Section:
    """The one table that has this title."""
    (found,) = [one for one in sections if isinstance(one.title, Fact) and one.title.id == id_]
    return found


def heads(table: Section) -> list[str]:
    """The ids of a table's heads; names as they are."""
    every = [head if isinstance(head, str) else head.head for head in table.head]
    return [head.id if isinstance(head, Fact) else head for head in every]


def sentences(facts: Iterable[Fact]) -> list[str]:
    """The facts in words; none is shown by its id."""
    facts = list(facts)
    text = [words(fact) for fact in facts]
    assert not [line for fact, line in zip(facts, text, strict=True) if line.startswith(fact.id)], text
    return text
