"""Prepares the rows of a line-up. A row that fails becomes `NotRun`."""

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
    """Rows that can't run because of a mistake in the line-up, by label. Checked before anything is spent."""
    wrong = {}
    for contender in contenders:
        checked = attempt(contender, partial(_check, contender, embeddings))
        if isinstance(checked, NotRun):
            wrong[contender.label] = checked
            embeddings.settings.notice(checked)
    return wrong


def check_models(models: Iterable[System], embeddings: Embeddings) -> None:
    """Checks the models that the judgments need. An error stops the run."""
    for model in models:
        _check(model, embeddings)


def _check(contender: System, embeddings: Embeddings) -> None:
    if contender.unset:
        raise Unavailable(contender.unset)
    try:
        contender.check(embeddings)
    except InputError:
        raise
    except Exception as error:  # the adapter's own failure, which fails its row during preparation
        log.debug("%s: check failed", contender.label, exc_info=error)


class Preparation:
    """All rows of a run during preparation, and the resources to release afterwards."""

    def __init__(self, contenders: Sequence[System], embeddings: Embeddings, scratch: Path, limits: TimeLimits) -> None:
        self._contenders, self._embeddings, self._scratch, self._limits = contenders, embeddings, scratch, limits
        self._ready: dict[str, Prepared | Given | NotRun] = {}

    def leave_out(self, wrong: Mapping[str, NotRun]) -> None:
        """Marks rows that can't run, so that nothing is spent on them."""
        self._ready.update(wrong)

    def given(self) -> list[Given]:
        """Rows with answers from files or from Python."""
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
        """Releases the searchers' resources."""
        for row in self._ready.values():
            if isinstance(row, Prepared):
                with contextlib.suppress(Exception):  # a lost server must not lose the result
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
