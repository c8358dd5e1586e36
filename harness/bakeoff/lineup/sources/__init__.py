"""Where rows come from. A new source of a [[contender]] is one module here, one line below and its setting's name.

Its rows may be of a new type; how these are made ready is a module of `running/preparers/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from bakeoff_providers import PROVIDERS
from bakeoff_providers.errors import InputError
from bakeoff_providers.keys import missing_variables, variables_in

from bakeoff.lineup.checks import check_no_secrets
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.sources.answers import ANSWERS
from bakeoff.lineup.sources.base import RowSource, Source
from bakeoff.lineup.sources.fusion import FUSION
from bakeoff.lineup.sources.provider import PROVIDER
from bakeoff.lineup.sources.ranker import RANKER
from bakeoff.lineup.sources.rerank import RERANK
from bakeoff.lineup.sources.retriever import RETRIEVER
from bakeoff.lineup.variables import name_without_marks

SOURCES: dict[str, Source] = {source.key: source for source in (PROVIDER, RANKER, ANSWERS, RETRIEVER)}
_EVERY: tuple[RowSource, ...] = (FUSION, RERANK, *SOURCES.values())  # with the rows that are made of others
_DEFAULTS = ContenderEntry()


def row_type_of(contender: Contender) -> str:
    """How its rankings come about, as results name it."""
    return _source_of(partial(getattr, contender)).row_type(contender)


def missing_of(contender: Contender) -> str | None:
    """What keeps this contender from running here, without asking any server."""
    if reason := unset_in(contender):
        return reason
    if contender.chunking and (reason := contender.chunking.missing()):
        return reason
    return _source_of(partial(getattr, contender)).missing(contender)


def unset_in(contender: Contender) -> str | None:
    """The variables that its settings name and that are not set."""
    second = contender.rerank.options if contender.rerank else {}
    return contender.unset or missing_variables(
        [contender.options, contender.store_options, contender.retriever, second]
    )


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
    source = _named_source(entry)
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


def unset_rows(entry: ContenderEntry, reason: str) -> list[Contender]:
    """The rows of a [[contender]] that names a variable that is not set, one for each store: they only say so."""
    source = _named_source(entry)
    check_no_secrets(entry.options, "options")
    given = getattr(entry, source.key)
    name = name_without_marks(entry.label or entry.model or (given if isinstance(given, str) else source.key))
    row = Contender(name, name, unset=reason)
    if source is not PROVIDER or variables_in(entry.provider) or entry.provider.startswith("file:"):
        return [row]
    PROVIDERS.get(entry.provider)
    row = replace(row, provider=entry.provider, model=entry.model, options=entry.options)
    stores = [str(store) for store in (entry.store if isinstance(entry.store, list) else [entry.store])]
    return [replace(row, label=f"{name}+{name_without_marks(store)}", store=store) for store in stores or ["exact"]]


def _named_source(entry: ContenderEntry) -> Source:
    named = [source for source in SOURCES.values() if getattr(entry, source.key)]
    if len(named) != 1:
        raise InputError(f"name one of {', '.join(SOURCES)}", remedy=f"for example {PROVIDER.example}")
    return named[0]
