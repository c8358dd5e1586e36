"""Standard output and standard error, whatever a shell, a container or a locale made of them."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import typer
from bakeoff_providers.secrets import without_secrets

from bakeoff.core.printable import printable


def ready() -> None:
    """A closed stream leads nowhere; output is UTF-8, as our files are, unless PYTHONIOENCODING says otherwise.

    What an encoding lacks is shown as `?`: no table, and no result, is lost over a dash.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open as long as we run
        elif isinstance(stream, io.TextIOWrapper):
            asked = os.environ.get("PYTHONIOENCODING")
            stream.reconfigure(encoding=stream.encoding if asked else "utf-8", errors="replace")


def echo(message: Any = None, *, err: bool = False, nl: bool = True) -> None:
    """Print. Data gives the terminal no orders, and stderr, often a log, gets no secret."""
    if isinstance(message, str):
        message = printable(without_secrets(message) if err else message)
    typer.echo(message, err=err, nl=nl)
