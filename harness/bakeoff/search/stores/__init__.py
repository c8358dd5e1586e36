"""Vectors → nearest ids. FAISS and Chroma are here; others are in extensions or come by `bakeoff.stores`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries

if TYPE_CHECKING:
    from bakeoff.search.stores.base import Store

BUILTIN = {
    "faiss": "bakeoff.search.stores.faiss:Faiss",
    "chroma": "bakeoff.search.stores.chroma:Chroma",
    **collect_entries("STORES"),
}

STORES: Registry[Store] = Registry("store", "bakeoff.stores", BUILTIN, given=("dimensions", "folder"))
