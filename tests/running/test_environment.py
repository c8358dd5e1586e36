"""A result names the versions of what it was made with."""

from importlib.metadata import version

from bakeoff.core.machine import after_work
from bakeoff.running.settings import this_machine


def test_the_adapters_packages_are_recorded() -> None:
    machine = this_machine()
    assert {name: version(name) for name in ("bakeoff", "numpy", "faiss-cpu", "chromadb", "bm25s")}.items() <= (
        machine.versions.items()
    )
    assert machine.threads["faiss"] == "1"


def test_the_load_afterwards_is_all_that_changes() -> None:
    before = this_machine()
    after = after_work(before)
    assert (after.cpu, after.versions, after.load_before) == (before.cpu, before.versions, before.load_before)
    assert before.load_after == 0.0
