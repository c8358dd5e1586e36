"""Compares embedding providers and vector stores on your corpus, and says how sure it is.

The names in `__all__` and those that extensions add (`API`) are public; everything else may change.
They are imported on first use, so that `import bakeoff` is quick and needs no other library.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role
    from bakeoff_providers.errors import (
        AnswerUnusable,
        BakeoffError,
        BrokenPlugin,
        CallFailed,
        EmbeddingFailed,
        InputError,
        StoreError,
        Unavailable,
    )

    from bakeoff.core.task import Document, Query, Task
    from bakeoff.evaluation.measures import Measure
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.evaluation import evaluate, load
    from bakeoff.results.compare import compare_results as compare
    from bakeoff.results.gate import gate
    from bakeoff.results.save import save
    from bakeoff.results.score import score
    from bakeoff.running.runner import run
    from bakeoff.search.hits import Hits
    from bakeoff.search.stores.base import Capabilities, Store

    __version__: str

_PROVIDER, _ERRORS, _STORE = "bakeoff_providers.base", "bakeoff_providers.errors", "bakeoff.search.stores.base"
_PLACES = {
    "Lineup": "bakeoff.lineup.lineup:Lineup",
    "Task": "bakeoff.core.task:Task",
    "Document": "bakeoff.core.task:Document",
    "Query": "bakeoff.core.task:Query",
    "Measure": "bakeoff.evaluation.measures:Measure",
    "evaluate": "bakeoff.report.evaluation:evaluate",
    "run": "bakeoff.running.runner:run",
    "save": "bakeoff.results.save:save",
    "load": "bakeoff.report.evaluation:load",
    "score": "bakeoff.results.score:score",
    "compare": "bakeoff.results.compare:compare_results",
    "gate": "bakeoff.results.gate:gate",
    "Provider": f"{_PROVIDER}:Provider",
    "Role": f"{_PROVIDER}:Role",
    "EmbeddingBatch": f"{_PROVIDER}:EmbeddingBatch",
    "ModelCard": f"{_PROVIDER}:ModelCard",
    "Store": f"{_STORE}:Store",
    "Hits": "bakeoff.search.hits:Hits",
    "Capabilities": f"{_STORE}:Capabilities",
    "AnswerUnusable": f"{_ERRORS}:AnswerUnusable",
    "BakeoffError": f"{_ERRORS}:BakeoffError",
    "BrokenPlugin": f"{_ERRORS}:BrokenPlugin",
    "InputError": f"{_ERRORS}:InputError",
    "Unavailable": f"{_ERRORS}:Unavailable",
    "EmbeddingFailed": f"{_ERRORS}:EmbeddingFailed",
    "StoreError": f"{_ERRORS}:StoreError",
    "CallFailed": f"{_ERRORS}:CallFailed",
}

__all__ = [
    "AnswerUnusable",
    "BakeoffError",
    "BrokenPlugin",
    "CallFailed",
    "Capabilities",
    "Document",
    "EmbeddingBatch",
    "EmbeddingFailed",
    "Hits",
    "InputError",
    "Lineup",
    "Measure",
    "ModelCard",
    "Provider",
    "Query",
    "Role",
    "Store",
    "StoreError",
    "Task",
    "Unavailable",
    "__version__",
    "compare",
    "evaluate",
    "gate",
    "load",
    "run",
    "save",
    "score",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the application configures logging


def __getattr__(name: str) -> Any:
    """Imports a public name on first use."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("bakeoff")
    else:
        from bakeoff.core.extensions import collect_entries, load_place

        if (place := _PLACES.get(name) or collect_entries("API").get(name)) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = load_place(place)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
