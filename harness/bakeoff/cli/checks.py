"""What every check of production shares on the command line: its options, its output, its exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from bakeoff_providers.errors import CallFailed, EmbeddingFailed, InputError, StoreError, Unavailable

from bakeoff.cli.shared_options import check_file, say
from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from bakeoff.results.check import Check

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")]
MetricsOption = Annotated[
    Path | None, typer.Option("--metrics-file", help="Write the figures here as OpenMetrics text, for a monitor.")
]


def deliver(command: str, check: Callable[[], Check], *, as_json: bool, metrics_file: Path | None) -> NoReturn:
    """Runs the check, prints it and ends: 0 fine, 1 changed or worse, 2 bad input, 3 could not reach the service."""
    from bakeoff.core.files import write_atomic
    from bakeoff.results.check import UNREACHABLE, unreachable

    if metrics_file is not None and not metrics_file.absolute().parent.is_dir():
        raise InputError("its folder does not exist", file=metrics_file, place="--metrics-file", remedy="make it first")
    check_file(metrics_file, force=True)
    try:
        outcome = check()
    except (Unavailable, CallFailed, EmbeddingFailed, StoreError) as error:
        cause = error.__cause__
        while cause is not None and not isinstance(cause, InputError):
            cause = cause.__cause__
        if cause is not None:  # a disk that is full, an option: nothing was asked
            raise cause from None
        if metrics_file is not None:
            write_atomic(metrics_file, unreachable(command))
        say(f"error: {error}", err=True)
        raise typer.Exit(UNREACHABLE) from None
    if metrics_file is not None:
        write_atomic(metrics_file, outcome.to_openmetrics())
    if as_json:
        echo(outcome.to_json().decode())
    else:
        for sentence in outcome.sentences:
            say(sentence)
    raise typer.Exit(outcome.exit_code)
