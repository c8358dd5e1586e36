"""A gate in your own tests: `def test_search(bakeoff): bakeoff.gate("lineup.toml", baseline="results/main")`.

pytest loads this in every project with Bakeoff installed, so it imports only what pytest needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from bakeoff.results.gate import Gate


class BakeoffFixture:
    """Runs a line-up and compares it with a stored result."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def gate(
        self,
        lineup: str | Path,
        *,
        baseline: str | Path,
        max_drop: float = 0.02,
        measure: str | None = None,
        contenders: Sequence[str] = (),
        alpha: float = 0.05,
        undecided: Literal["warn", "fail", "pass"] = "warn",
        out: str | Path | None = None,
    ) -> Gate:
        """Runs the line-up. The test fails if a drop beyond `max_drop` is shown.

        Paths are relative to pytest's root. For a folder of results, the newest is the baseline. `out` stores the new
        result.
        """
        __tracebackhide__ = True
        from bakeoff_providers.errors import InputError

        from bakeoff.core.paths import vectors_folder
        from bakeoff.lineup.lineup import Lineup
        from bakeoff.report.gate import headline, reason
        from bakeoff.report.words import words
        from bakeoff.results.gate import gate
        from bakeoff.results.result import load
        from bakeoff.results.save import save
        from bakeoff.results.schema import find
        from bakeoff.running.runner import run
        from bakeoff.running.settings import Settings
        from bakeoff.search.stores.scratch import scratch

        folder = self._root / baseline
        kept = find(folder)
        if not kept:
            raise InputError("holds no result", file=folder, remedy="make one with bakeoff run and commit its folder")
        outcome = run(Lineup.read(self._root / lineup).narrow(contenders), Settings(cache=vectors_folder()))
        with scratch("gate") as place:
            result = load(save(outcome, self._root / out if out else place), "this run")
        old = load(kept[-1], "baseline")
        checked = gate(result, old, measure, max_drop, contenders, alpha=alpha, undecided=undecided)
        if checked.refused:
            pytest.fail("can't be compared with the baseline: " + "; ".join(map(words, checked.refused)), pytrace=False)
        if checked.exit_code:
            failed = [
                f"{check.contender}: {reason(checked, check)}" for check in checked.checks if checked.fails(check)
            ]
            pytest.fail("\n".join([headline(checked), *failed]), pytrace=False)
        return checked


@pytest.fixture
def bakeoff(request: pytest.FixtureRequest) -> BakeoffFixture:
    """A fixture for gates, with paths relative to pytest's root."""
    return BakeoffFixture(request.config.rootpath)
