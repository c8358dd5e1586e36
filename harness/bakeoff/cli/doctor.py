"""`bakeoff doctor`: which providers work."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    provider: Annotated[
        list[str] | None, typer.Option(help="Only this one; may be repeated. Then a provider that fails ends with 1.")
    ] = None,
) -> None:
    """Check every provider: library, key, server, model, and one test embedding."""
    from bakeoff_providers import PROVIDERS

    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid
    from bakeoff.running.doctor import examine

    table = Grid(["provider", "model", "state", Figures("dimensions"), Figures("one query, ms")])
    troubled = False
    for finding in examine(provider or PROVIDERS.names()):
        ready = finding.milliseconds is not None
        troubled |= not ready
        table.add_row(
            finding.provider,
            finding.model,
            finding.trouble or "ready",
            str(finding.dimensions or "–"),
            f"{finding.milliseconds:.2f}" if finding.milliseconds is not None else "–",
        )
    console().print(table)
    if provider and troubled:
        raise typer.Exit(1)
