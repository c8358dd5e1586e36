"""Where rows come from. A new source of a [[contender]] is one module here, one line below and its setting's name.

Its rows may be of a new type; how these are made ready is a module of `running/preparers/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.lineup.checks import check_addresses
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.sources.answers import ANSWERS
from bakeoff.lineup.sources.base import RowSource, Source
from bakeoff.lineup.sources.fusion import FUSION
from bakeoff.lineup.sources.provider import PROVIDER
from bakeoff.lineup.sources.ranker import RANKER
from bakeoff.lineup.sources.rerank import RERANK
from bakeoff.lineup.sources.retriever import RETRIEVER

SOURCES: dict[str, Source] = {source.key: source for source in (PROVIDER, RANKER, ANSWERS, RETRIEVER)}
_EVERY: tuple[RowSource, ...] = (FUSION, RERANK, *SOURCES.values())  # with the rows that are made of others
_DEFAULTS = ContenderEntry()


def row_type_of(contender: Contender) -> str:
    """How its rankings come about, as results name it."""
    return _source_of(partial(getattr, contender)).row_type(contender)


def missing_of(contender: Contender) -> str | None:
    """What keeps this contender from running here, without asking any server."""
    if contender.chunking and (reason := contender.chunking.missing()):
        return reason
    return _source_of(partial(getattr, contender)).missing(contender)


def table_of(row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The entry of a line-up that gives exactly this row, as a result stores it, and what its table is called."""
    source = _source_of(row.get)
    if not row.get(source.key):  # rankings from Python: a result keeps them
        return source.table, {"label": row["name"], source.key: f"runs/{row['label']}.trec"}
    return source.table, source.entry_of(row)


def _source_of(setting: Callable[[str], Any]) -> RowSource:
    """By the setting that a row has; one that has none holds rankings from Python."""
    return next((source for source in _EVERY if setting(source.key)), ANSWERS)


def contenders_of(entry: ContenderEntry) -> list[Contender]:
    """The rows of one [[contender]]; a setting that its source does not take is refused."""
    named = [source for source in SOURCES.values() if getattr(entry, source.key)]
    if len(named) != 1:
        raise InputError(
            f"name one of {', '.join(SOURCES)}",
            remedy=f"for example {PROVIDER.example}",
        )
    (source,) = named
    for setting in msgspec.structs.fields(ContenderEntry):
        name = setting.name
        given = getattr(entry, name) != getattr(_DEFAULTS, name)
        if given and name not in source.takes | {source.key, "label"}:
            raise InputError(f"a {source.about} has no {name}", place=name, remedy="remove it")
    check_addresses(entry.options, "options")
    rows = source.rows_of(entry)
    for row in rows:
        check_addresses(row.store_options, "store.options")
    return rows
