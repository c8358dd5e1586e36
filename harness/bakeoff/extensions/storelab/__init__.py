"""Benchmarks of stores alone: recall against cost, behaviour under load, resources."""

from bakeoff.core.extensions import Command

_HERE = "bakeoff.extensions.storelab"
_STORES = f"{_HERE}.commands"
WORDS = {"storelab": f"{_HERE}.words:WORDS"}
COMMANDS = (
    Command("sweep", f"{_STORES}:sweep", "Stores", "Measure recall against time and size by parameter."),
    Command("loadtest", f"{_STORES}:loadtest", "Stores", "Measure throughput and latency under load."),
    Command("footprint", f"{_STORES}:footprint", "Stores", "Measure build time, disk and memory."),
)
