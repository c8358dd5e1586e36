"""A second stage: query + candidates → a new order. A new one is a file here and a line below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.search.rerankers.base import Reranker

RERANKERS: Registry[Reranker] = Registry(
    "reranker",
    "bakeoff.rerankers",
    {
        "fake": "bakeoff.search.rerankers.fake:Fake",
        "own": "bakeoff.search.rerankers.own:Own",
        "maxsim": "bakeoff.search.rerankers.maxsim:MaxSim",
        "cross_encoder": "bakeoff.search.rerankers.cross_encoder:CrossEncoder",
        "cohere": "bakeoff.search.rerankers.hosted:CohereReranker",
        "voyage": "bakeoff.search.rerankers.hosted:VoyageReranker",
    },
)
