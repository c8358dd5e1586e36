"""Systems of a line-up → rows that can be asked; what fails for a reason of its own becomes `not run`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bakeoff_providers.errors import InputError, StoreError, Unavailable

from bakeoff.core.clock import TimeLimits
from bakeoff.core.progress import steps
from bakeoff.running.embeddings import Embeddings
from bakeoff.systems.base import Given, NotRun, Prepared, System
from bakeoff.systems.failures import attempt

log = logging.getLogger(__name__)


def check(contenders: Iterable[System], embeddings: Embeddings) -> dict[str, NotRun]:
    """The rows that can't run as the line-up has them, by label: found before any contender costs anything."""
    wrong = {}
    for contender in contenders:
        checked = attempt(contender, partial(_check, contender, embeddings))
        if isinstance(checked, NotRun):
            wrong[contender.label] = checked
            embeddings.settings.notice(checked)
    return wrong


def check_models(models: Iterable[System], embeddings: Embeddings) -> None:
    """What the judgments need stops the run where it is wrong: without judgments there is nothing to compare."""
    for model in models:
        _check(model, embeddings)


def _check(contender: System, embeddings: Embeddings) -> None:
    if contender.unset:
        raise Unavailable(contender.unset)
    try:
        contender.check(embeddings)
    except InputError:
        raise
    except Exception as error:  # the adapter's own failure: it is met again, and costs its row, when it is prepared
        log.debug("%s: check failed", contender.label, exc_info=error)


class Preparation:
    """All rows of a run on their way to being asked, and the things that have to be let go afterwards."""

    def __init__(self, contenders: Sequence[System], embeddings: Embeddings, scratch: Path, limits: TimeLimits) -> None:
        self._contenders, self._embeddings, self._scratch, self._limits = contenders, embeddings, scratch, limits
        self._ready: dict[str, Prepared | Given | NotRun] = {}

    def leave_out(self, wrong: Mapping[str, NotRun]) -> None:
        """Rows that are known not to run: nothing is spent on them."""
        self._ready.update(wrong)

    def given(self) -> list[Given]:
        """The rows whose answers are there already."""
        rows = [self._prepared(contender) for contender in self._contenders if not contender.asked]
        return [row for row in rows if isinstance(row, Given)]

    def all(self) -> list[Prepared | Given | NotRun]:
        """Every row, in the order of the line-up."""
        with self._embeddings.settings.progress("preparing", len(self._contenders)) as advance:
            for contender in self._contenders:
                self._prepared(contender)
                advance(1)
        return [self._ready[contender.label] for contender in self._contenders]

    def close(self) -> None:
        """Lets go of what the searchers hold."""
        for row in self._ready.values():
            if isinstance(row, Prepared):
                with contextlib.suppress(Exception):  # a server that is gone must not take the result with it
                    row.searcher.close()

    def _prepared(self, contender: System) -> Prepared | Given | NotRun:
        if contender.label not in self._ready:
            scratch = self._scratch / str(self._contenders.index(contender))
            with steps(contender.label, 0):
                self._ready[contender.label] = attempt(contender, partial(self._prepare, contender, scratch))
        return self._ready[contender.label]

    def _prepare(self, contender: System, scratch: Path) -> Prepared | Given:
        row = contender.prepare(self._embeddings, scratch, dict(self._ready))
        if isinstance(row, Prepared) and row.build.seconds > self._limits.build:
            row.searcher.close()
            raise StoreError(f"took {row.build.seconds:.3g} s to build, {self._limits.build:g} s are allowed")
        return row
