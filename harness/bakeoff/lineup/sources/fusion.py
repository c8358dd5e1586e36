"""A row that fuses the rankings of others: a [[fusion]] entry, which can only be read once these are known."""

from __future__ import annotations

from collections.abc import Sequence

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import FusionEntry
from bakeoff.lineup.sources.base import RowSource
from bakeoff.search.fusion import Fusion


def fusion_of(entry: FusionEntry, contenders: Sequence[Contender]) -> Contender:
    """The parts by their labels; a shorter name will do where only one contender has it."""
    parts = tuple(_part(name, contenders).label for name in entry.of)
    fusion = Fusion(parts, tuple(entry.weights) or (1.0,) * len(parts), entry.c, entry.top_n, entry.method)
    label = entry.label or _default_label(entry)
    return Contender(label, label, fusion=fusion)


def _default_label(entry: FusionEntry) -> str:
    """The parts as they were named, and the method where it is not the usual one."""
    return "+".join(entry.of) + ("" if entry.method == "rrf" else f"@{entry.method}")


def _part(name: str, contenders: Sequence[Contender]) -> Contender:
    matching = [c for c in contenders if c.label == name] or [c for c in contenders if name in c.names]
    if len(matching) != 1:
        problem = f"{name!r} fits {len(matching)} contenders" if matching else f"no contender is called {name!r}"
        raise InputError(problem, place="of", remedy=nearest(name, [contender.label for contender in contenders]))
    return matching[0]


FUSION = RowSource(
    key="fusion",
    table="fusion",
    row_type=lambda _: "fused",
    missing=lambda _: None,
    entry_of=lambda row: {"label": row["name"], **row["fusion"]},
)
