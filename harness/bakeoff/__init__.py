"""Compares embedding providers and vector stores on your corpus, and says how sure it is.

The names in `__all__` are the public API (docs/python.md); everything else may change. They are imported when they are
first used, so that `import bakeoff` is quick and needs none of the libraries behind them.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role
    from bakeoff_providers.errors import BakeoffError, CallFailed, EmbeddingFailed, InputError, StoreError, Unavailable

    from bakeoff.core.task import Document, Query, Task
    from bakeoff.evaluation.measures import Measure
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.compare import compare_results as compare
    from bakeoff.results.gate import gate
    from bakeoff.results.record import record as save
    from bakeoff.results.result import load
    from bakeoff.results.score import score
    from bakeoff.run.runner import run
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
    "run": "bakeoff.run.runner:run",
    "save": "bakeoff.results.record:record",
    "load": "bakeoff.results.result:load",
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
    "BakeoffError": f"{_ERRORS}:BakeoffError",
    "InputError": f"{_ERRORS}:InputError",
    "Unavailable": f"{_ERRORS}:Unavailable",
    "EmbeddingFailed": f"{_ERRORS}:EmbeddingFailed",
    "StoreError": f"{_ERRORS}:StoreError",
    "CallFailed": f"{_ERRORS}:CallFailed",
}

__all__ = [
    "BakeoffError",
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
    "gate",
    "load",
    "run",
    "save",
    "score",
]


class _Package(ModuleType):
    """Keeps `bakeoff.run` the function: importing the subpackage of that name would put itself in its place."""

    @property
    def run(self) -> Any:
        """The function that runs a line-up."""
        return _public("run")

    @run.setter
    def run(self, module: ModuleType) -> None:
        """Leaves the subpackage to `sys.modules`, where every import finds it."""


sys.modules[__name__].__class__ = _Package
logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the application listens


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first asked for."""
    value = _public(name)
    globals()[name] = value
    return value


def _public(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("bakeoff")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
