"""What a result records of this machine: the adapters say which packages they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bakeoff_providers import PROVIDERS
from bakeoff_providers.registry import Registry

from bakeoff.core.machine import Machine, machine
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES


def this_machine() -> Machine:
    """The machine with the versions of all adapters' packages that are installed, whether they run or not."""
    stores = dict(_adapters(STORES))
    others = [adapter for registry in (PROVIDERS, RANKERS) for _, adapter in _adapters(registry)]
    return machine(
        distributions=[name for adapter in (*stores.values(), *others) for name in adapter.distributions],
        threads={name: store.threads for name, store in stores.items() if store.threads},
    )


def _adapters(registry: Registry[Any]) -> Iterator[tuple[str, type[Any]]]:
    """Another package's adapter that can't be imported is no reason to record nothing of the others."""
    for name in registry.names():
        try:
            yield name, registry.get(name)
        except ImportError:
            continue
