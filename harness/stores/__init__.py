"""Vectors → nearest ids. A new store is one file here and one line below (third parties: `bakeoff.stores`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from providers.registry import Registry

if TYPE_CHECKING:
    from harness.stores.base import Store

STORES: Registry[Store] = Registry(
    "store",
    "bakeoff.stores",
    {
        "faiss": "harness.stores.faiss:Faiss",
        "chroma": "harness.stores.chroma:Chroma",
    },
)
