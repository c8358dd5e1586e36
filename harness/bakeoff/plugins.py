"""Everything that plug-in authors import. examples/acme/ has a complete example of each sort.

Nothing else is stable for other packages. The names are imported on first use, because `bakeoff --help` imports
every package that offers a command. Extensions add more (`PLUGIN_API`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bakeoff.core.extensions import collect_entries, load_place

if TYPE_CHECKING:
    from bakeoff_providers.base import EmbeddingBatch as EmbeddingBatch
    from bakeoff_providers.base import ModelCard as ModelCard
    from bakeoff_providers.base import Price as Price
    from bakeoff_providers.base import Provider as Provider
    from bakeoff_providers.base import Role as Role
    from bakeoff_providers.base import TokenBatch as TokenBatch
    from bakeoff_providers.base import Vectors as Vectors
    from bakeoff_providers.errors import AnswerUnusable as AnswerUnusable
    from bakeoff_providers.errors import BakeoffError as BakeoffError
    from bakeoff_providers.errors import CallFailed as CallFailed
    from bakeoff_providers.errors import EmbeddingFailed as EmbeddingFailed
    from bakeoff_providers.errors import InputError as InputError
    from bakeoff_providers.errors import StoreError as StoreError
    from bakeoff_providers.errors import Unavailable as Unavailable
    from bakeoff_providers.needs import Needs as Needs
    from bakeoff_providers.options import Transport as Transport

    from bakeoff.core.arrays import Values as Values
    from bakeoff.core.clock import time_call as time_call
    from bakeoff.core.extensions import Command as Command
    from bakeoff.core.filters import Condition as Condition
    from bakeoff.core.filters import Metadata as Metadata
    from bakeoff.core.filters import conditions as conditions
    from bakeoff.core.filters import passes as passes
    from bakeoff.core.ranking import Ranking as Ranking
    from bakeoff.core.ranking import make_ranking as make_ranking
    from bakeoff.core.task import Document as Document
    from bakeoff.core.task import Query as Query
    from bakeoff.core.task import Task as Task
    from bakeoff.evaluation.graded_run import GradedRun as GradedRun
    from bakeoff.evaluation.measures.base import Measure as Measure
    from bakeoff.evaluation.random_order import RandomOrder as RandomOrder
    from bakeoff.search.answer import Answer as Answer
    from bakeoff.search.answer import Searcher as Searcher
    from bakeoff.search.hits import Hits as Hits
    from bakeoff.search.rankers import Ranker as Ranker
    from bakeoff.search.rerankers import Reranked as Reranked
    from bakeoff.search.rerankers import Reranker as Reranker
    from bakeoff.search.retrievers import Retriever as Retriever
    from bakeoff.search.stores.base import Capabilities as Capabilities
    from bakeoff.search.stores.base import SizeModel as SizeModel
    from bakeoff.search.stores.base import Store as Store
    from bakeoff.systems.base import Build as Build
    from bakeoff.systems.base import Prepared as Prepared
    from bakeoff.systems.base import Ready as Ready
    from bakeoff.systems.base import RunContext as RunContext
    from bakeoff.systems.base import System as System

_MODULES = {
    "bakeoff_providers.base": "EmbeddingBatch ModelCard Price Provider Role TokenBatch Vectors",
    "bakeoff_providers.errors": (
        "AnswerUnusable BakeoffError CallFailed EmbeddingFailed InputError StoreError Unavailable"
    ),
    "bakeoff_providers.needs": "Needs",
    "bakeoff_providers.options": "Transport",
    "bakeoff.core.arrays": "Values",
    "bakeoff.core.clock": "time_call",
    "bakeoff.core.extensions": "Command",
    "bakeoff.core.filters": "Condition Metadata conditions passes",
    "bakeoff.core.ranking": "Ranking make_ranking",
    "bakeoff.core.task": "Document Query Task",
    "bakeoff.evaluation.graded_run": "GradedRun",
    "bakeoff.evaluation.measures.base": "Measure",
    "bakeoff.evaluation.random_order": "RandomOrder",
    "bakeoff.search.answer": "Answer Searcher",
    "bakeoff.search.hits": "Hits",
    "bakeoff.search.rankers": "Ranker",
    "bakeoff.search.rerankers": "Reranked Reranker",
    "bakeoff.search.retrievers": "Retriever",
    "bakeoff.search.stores.base": "Capabilities SizeModel Store",
    "bakeoff.systems.base": "Build Prepared Ready RunContext System",
}
_PLACES = {name: f"{module}:{name}" for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted({*_PLACES, *collect_entries("PLUGIN_API")})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = load_place(_PLACES.get(name) or collect_entries("PLUGIN_API")[name])
    return value
