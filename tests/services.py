"""The services that are asked over HTTP, from the registries: no test and no attack can leave a newcomer out."""

from __future__ import annotations

from bakeoff.extensions.rerankers.hosted import HostedReranker
from bakeoff.search.rerankers import RERANKERS
from bakeoff_providers import PROVIDERS
from bakeoff_providers.answers import IndexedRows
from bakeoff_providers.chat import CHATS
from bakeoff_providers.hosted import Hosted

HOSTED: dict[str, type[Hosted]] = {
    name: kind for name in PROVIDERS.builtin if issubclass(kind := PROVIDERS.get(name), Hosted)
}
RANKING = tuple(name for name in RERANKERS.builtin if issubclass(RERANKERS.get(name), HostedReranker))
TALKING = tuple(CHATS.builtin)
NUMBERED = tuple(name for name, kind in HOSTED.items() if kind.shape is IndexedRows)  # whose answers number their rows
KEYS = tuple(dict.fromkeys(key for kind in HOSTED.values() for key in (*kind.keys, *kind.optional_keys)))
ADDRESSES = {name: str(kind.url_variable) for name, kind in HOSTED.items()}
