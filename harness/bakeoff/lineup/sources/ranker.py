"""A row of a lexical ranker, which compares words and needs neither vectors nor a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bakeoff.lineup.axes import named_chunkings
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.sources.base import Source
from bakeoff.search.rankers import RANKERS


def _rows_of(entry: ContenderEntry) -> list[Contender]:
    RANKERS.check_options(entry.ranker, entry.options)
    plain = Contender("", ranker=entry.ranker, field=entry.field, options=dict(entry.options))
    names = named_chunkings(entry, entry.label or entry.ranker)
    return [replace(plain, label=name, name=name, chunking=chunking) for name, chunking in names]


def _entry_of(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: row.get(key) for key in ("ranker", "field", "options", "chunking")}
    return {"label": row["name"], **kept}


RANKER = Source(
    key="ranker",
    about="lexical ranker",
    example='ranker = "bm25"',
    takes=frozenset({"field", "options", "chunking", "rerank"}),
    row_type=lambda _: "lexical",
    missing=lambda contender: RANKERS.get(contender.ranker).missing(),
    rows_of=_rows_of,
    entry_of=_entry_of,
)
