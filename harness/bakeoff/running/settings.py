"""How to run, as opposed to what, and the machine that a result records."""

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
    fetch: Callable[[str], object] | None = None  # where the cache is a copy: brings a space up to date, by its name
    offline: bool = False
    max_cost: float | None = None
    time_hosted: int = 0  # calls to each paid model that only serve to time it
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    progress: Progress = silent
    notice: Callable[[Fact | NotRun], None] = lambda _said: None  # for what must be heard before money is spent
    tune_weights: bool = False
    vectors: tuple[Path, ...] = ()  # shards that are complete: documents are in these and are never asked for
    sample_documents: int | None = None  # every document with a grade, the rest drawn by the line-up's seed
    engine: EngineEntry | None = None  # instead of the line-up's
    graded: bool = True  # False where rankings are wanted and grades are not there yet
    recorded: bool = True  # False where no result is written, so that nobody reads which libraries there were
    drafts: Drafts | None = None  # where what was measured is kept until its result is written; None: nowhere
    budget: Budget | None = None  # made of max_cost where none is given

    def __post_init__(self) -> None:
        """A copy keeps the budget and its spending, unless the limit changes."""
        if self.max_cost is None:
            object.__setattr__(self, "budget", None)
        elif self.budget is None or self.budget.limit != self.max_cost:
            object.__setattr__(self, "budget", Budget(self.max_cost))


def this_machine() -> Machine:
    """The machine with the versions of all adapters' packages that are installed, whether they run or not.

    What another package registers as an adapter may be none.
    """
    stores = dict(STORES.load_all())
    adapters = [*stores.values(), *dict(PROVIDERS.load_all()).values(), *dict(RANKERS.load_all()).values()]
    return machine(
        distributions=[name for adapter in adapters for name in getattr(adapter, "distributions", ())],
        threads={name: threads for name, store in stores.items() if (threads := getattr(store, "threads", None))},
    )
