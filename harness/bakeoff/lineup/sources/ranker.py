"""A row of a lexical ranker, which compares words and needs neither vectors nor a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.sources.base import Source
from bakeoff.search.rankers import RANKERS


def _rows_of(entry: ContenderEntry) -> list[Contender]:
    RANKERS.check_options(entry.ranker, entry.options)
    name = entry.label or entry.ranker
    return [Contender(name, name, ranker=entry.ranker, field=entry.field, options=dict(entry.options))]


def _entry_of(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"label": row["name"], "ranker": row["ranker"], "field": row.get("field"), "options": row.get("options")}


RANKER = Source(
    key="ranker",
    about="lexical ranker",
    example='ranker = "bm25"',
    takes=frozenset({"field", "options"}),
    rows_of=_rows_of,
    entry_of=_entry_of,
)
