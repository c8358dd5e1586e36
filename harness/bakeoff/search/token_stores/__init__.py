"""Where token vectors are kept and searched by MaxSim. A new one is a file here and a line below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.search.token_stores.base import TokenStore

TOKEN_STORES: Registry[TokenStore] = Registry(
    "store of token vectors",
    "bakeoff.token_stores",
    {
        "exact": "bakeoff.search.token_stores.exact:Exact",
        "lancedb": "bakeoff.search.token_stores.lancedb:LanceTokens",
    },
    given=("folder",),
)
