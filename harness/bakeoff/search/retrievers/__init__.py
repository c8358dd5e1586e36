"""Rankings that are asked for elsewhere. A new one is a file here and a line below (others: `bakeoff.retrievers`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.search.retrievers.base import Retriever

RETRIEVERS: Registry[Retriever] = Registry(
    "retriever",
    "bakeoff.retrievers",
    {
        "function": "bakeoff.search.retrievers.function:Function",
        "http": "bakeoff.search.retrievers.http:Http",
    },
    given=("target", "policy"),
)
