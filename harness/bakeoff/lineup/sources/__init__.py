"""Where rows come from. A new source of a [[contender]] is one module here, one line below and its setting's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.lineup.checks import check_no_secrets
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.sources.answers import ANSWERS
from bakeoff.lineup.sources.base import Source
from bakeoff.lineup.sources.provider import PROVIDER
from bakeoff.lineup.sources.ranker import RANKER
from bakeoff.lineup.sources.retriever import RETRIEVER

SOURCES: dict[str, Source] = {source.key: source for source in (PROVIDER, RANKER, ANSWERS, RETRIEVER)}
_DEFAULTS = ContenderEntry()


def contenders_of(entry: ContenderEntry) -> list[Contender]:
    """The rows of one [[contender]]; a setting that its source does not take is refused."""
    named = [source for source in SOURCES.values() if getattr(entry, source.key)]
    if len(named) != 1:
        raise InputError(
            "name one of provider, ranker, retriever and answers",
            remedy=f"for example {PROVIDER.example}",
        )
    (source,) = named
    for setting in msgspec.structs.fields(ContenderEntry):
        name = setting.name
        given = getattr(entry, name) != getattr(_DEFAULTS, name)
        if given and name not in source.takes | {source.key, "label"}:
            raise InputError(f"a {source.about} has no {name}", place=name, remedy="remove it")
    check_no_secrets(entry.options, "options")
    rows = source.rows_of(entry)
    for row in rows:
        check_no_secrets(row.store_options, "store.options")
    return rows


def contender_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """The [[contender]] that gives exactly this row, as a result stores it."""
    for source in SOURCES.values():
        if row.get(source.key):
            return source.entry_of(row)
    return {"label": row["name"], "answers": f"runs/{row['label']}.trec"}  # rankings from Python: a result keeps them
