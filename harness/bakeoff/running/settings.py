"""Settings of a run: how to run, not what; and the machine that a result records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff_providers import PROVIDERS

from bakeoff.calls.budget import Budget
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.facts import Fact
from bakeoff.core.machine import Machine, machine
from bakeoff.core.progress import Progress, silent
from bakeoff.lineup.entries import EngineEntry
from bakeoff.running.draft import Drafts
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES
from bakeoff.systems.base import NotRun


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one command. All of its runs share one budget."""

    cache: Path | None = None
    fetch: Callable[[str], object] | None = None  # if the cache is a copy: updates a space by name
    offline: bool = False
    max_cost: float | None = None
    time_hosted: int = 0  # extra calls to each paid model, only for timing
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    progress: Progress = silent
    notice: Callable[[Fact | NotRun], None] = lambda _said: None  # for warnings before money is spent
    tune_weights: bool = False
    vectors: tuple[Path, ...] = ()  # folders of complete shards; documents are never embedded again
    sample_documents: int | None = None  # sample size: all graded documents, the rest drawn by seed
    engine: EngineEntry | None = None  # instead of the line-up's
    graded: bool = True  # False if rankings are wanted before grades exist
    recorded: bool = True  # False if no result is written, so versions are not needed
    drafts: Drafts | None = None  # drafts of results; None: no drafts
    budget: Budget | None = None  # by default from max_cost

    def __post_init__(self) -> None:
        """A copy keeps the budget and its spending, unless the limit changes."""
        if self.max_cost is None:
            object.__setattr__(self, "budget", None)
        elif self.budget is None or self.budget.limit != self.max_cost:
            object.__setattr__(self, "budget", Budget(self.max_cost))


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
