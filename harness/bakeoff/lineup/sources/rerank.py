"""A row that reranks the candidates of another: a [[rerank]] table, or `rerank` in a contender."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from bakeoff_providers.code import file_reference
from bakeoff_providers.errors import InputError
from bakeoff_providers.keys import filled
from bakeoff_providers.registry import nearest

from bakeoff.lineup.contender import Contender, Rerank
from bakeoff.lineup.entries import RerankEntry
from bakeoff.lineup.sources.base import RowSource
from bakeoff.search.rerankers import RERANKERS


def rerank_of(entry: RerankEntry, contenders: Sequence[Contender]) -> Contender:
    """The row whose candidates it takes, by its label or a name that only one row has."""
    matching = [c for c in contenders if c.label == entry.of] or [c for c in contenders if entry.of in c.names]
    if len(matching) != 1:
        several = f"{entry.of!r} fits {len(matching)} contenders"
        problem = several if matching else f"no contender is called {entry.of!r}"
        raise InputError(problem, place="of", remedy=nearest(entry.of, [contender.label for contender in contenders]))
    if entry.depth < 1:
        raise InputError("must be at least 1", place="depth")
    provider, options = entry.provider, dict(entry.options)
    if reference := file_reference(provider):
        provider, options = "own", {"file": reference[0], "function": reference[1], **options}
    if entry.vectors:
        provider, options = "maxsim", {"provider": provider, **options}
    RERANKERS.check_options(provider, options)
    first = matching[0]
    name = entry.model.rstrip("/").rpartition("/")[2] or options.get("function") or entry.vectors or provider
    label = entry.label or f"{first.label}+{name}"
    return Contender(label, label, rerank=Rerank(first.label, provider, entry.model, entry.depth, options))


def within(entry: RerankEntry, rows: Sequence[Contender]) -> list[RerankEntry]:
    """`rerank` in a contender, spelled out for each of its rows; a label is for one of them."""
    if entry.of:
        raise InputError("of is the contender that it stands in", place="rerank", remedy="remove it")
    if entry.label and len(rows) > 1:
        raise InputError(f"one label for {len(rows)} rows", place="rerank", remedy="leave it out")
    return [msgspec.structs.replace(entry, of=row.label) for row in rows]


def _missing(contender: Contender) -> str | None:
    assert contender.rerank is not None
    return RERANKERS.get(contender.rerank.provider).missing(**filled(contender.rerank.options, secret=False))


RERANK = RowSource(
    key="rerank",
    table="rerank",
    row_type=lambda _: "reranked",
    missing=_missing,
    entry_of=lambda row: {"label": row["name"], **row["rerank"]},
)
