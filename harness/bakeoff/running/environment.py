"""The machine and package versions that a result records."""

from __future__ import annotations

from bakeoff_providers import PROVIDERS

from bakeoff.core.machine import Machine, machine
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES


def this_machine() -> Machine:
    """The machine, and the versions of all installed packages that adapters use.

    An entry point of another package may be broken; it is skipped.
    """
    stores = dict(STORES.load_all())
    adapters = [*stores.values(), *dict(PROVIDERS.load_all()).values(), *dict(RANKERS.load_all()).values()]
    return machine(
        distributions=[name for adapter in adapters for name in getattr(adapter, "distributions", ())],
        threads={name: threads for name, store in stores.items() if (threads := getattr(store, "threads", None))},
    )
