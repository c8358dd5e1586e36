"""`bakeoff doctor`: which providers work."""

from __future__ import annotations

from typing import Annotated

import typer

from bakeoff.cli.shared_options import say

DASH = "–"


def doctor(
    provider: Annotated[
        list[str] | None, typer.Option(help="Check this provider; exit 1 if it fails. Repeatable.")
    ] = None,
) -> None:
    """Check every provider: library, key, server, model, and one test embedding."""
    from bakeoff_providers import PROVIDERS

    from bakeoff.report.brief_notes import needs_sentence
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.groups import shorten
    from bakeoff.report.numbers import milliseconds
    from bakeoff.report.words import failure_words
    from bakeoff.running.validation import examine

    findings = list(examine(provider or PROVIDERS.names()))
    ready = [finding for finding in findings if not finding.failure]
    lacking = [(finding, finding.failure) for finding in findings if finding.failure]
    rest = f"; {needs_sentence([failure for _, failure in lacking])}" if lacking else ""
    say(f"{len(ready)} of {len(findings)} providers are ready{rest}")
    table = Grid(["provider", "model", Figures("dimensions"), Figures("one query, ms")])
    for finding in ready:
        time = DASH if finding.milliseconds is None else milliseconds(finding.milliseconds)
        table.add_row(finding.provider, shorten(finding.model), str(finding.dimensions or DASH), time)
    console().print(table)
    for finding, failure in lacking:
        say(f"  {finding.provider:<22}{failure_words(failure)}")
    if provider and lacking:
        raise typer.Exit(1)
