"""Weights of queries that `bakeoff log sample` drew: read from its columns, checked together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError

from bakeoff.core.task import Drawn, Query
from bakeoff.tasks.formats.cells import Rows

WEIGHT, STRATUM_SIZE = "weight", "stratum_queries"  # a weight alone may mean anything; both are of a sample
REMEDY = "take the rows as log sample wrote them, or remove the columns weight and stratum_queries"


def drawn_of(row: Mapping[str, Any], category: str, table: Rows, place: str) -> Drawn | None:
    """What a row stands for; nothing where it has not both columns."""
    if row.get(WEIGHT) in (None, "") or row.get(STRATUM_SIZE) in (None, ""):
        return None
    try:
        weight, size = float(row[WEIGHT]), float(row[STRATUM_SIZE])
    except (TypeError, ValueError):
        weight = size = 0.0
    if not 0 < weight <= 1 or size < 1 or not size.is_integer():
        raise InputError(
            f"weight {row[WEIGHT]!r} of a stratum of {row[STRATUM_SIZE]!r} queries is not a share of traffic",
            file=table.source,
            place=place,
            remedy=REMEDY,
        )
    return Drawn(weight=weight, stratum=category, of=int(size))


def checked_draw(queries: Sequence[Query], source: Path | str) -> None:
    """All queries have weights or none, they make the whole traffic, and no stratum has more than it has."""
    drawn = [query.drawn for query in queries if query.drawn is not None]
    if not drawn:
        return
    problem = ""
    if len(drawn) < len(queries):
        problem = f"{len(queries) - len(drawn)} of {len(queries)} queries have no weight"
    elif abs((total := sum(each.weight for each in drawn)) - 1) > 1e-6:
        problem = f"the weights of the queries sum to {total:.6g}, not to 1"
    for name in dict.fromkeys(each.stratum for each in drawn):
        sizes = [each.of for each in drawn if each.stratum == name]
        if min(sizes) != max(sizes) or len(sizes) > sizes[0]:
            problem = problem or f"stratum {name!r} has {len(sizes)} queries, of {min(sizes)} to {max(sizes)}"
    if problem:
        raise InputError(problem, file=source, remedy=REMEDY)
