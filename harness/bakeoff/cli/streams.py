"""Standard output and standard error, whatever the shell, container or locale."""

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
    """Replaces closed streams with devnull. Output is UTF-8 unless PYTHONIOENCODING is set.

    Characters missing from the encoding become `?`, so that a dash never loses the output.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open as long as we run
        elif isinstance(stream, io.TextIOWrapper):
            asked = os.environ.get("PYTHONIOENCODING")
            stream.reconfigure(encoding=stream.encoding if asked else "utf-8", errors="replace")


def echo(message: Any = None, *, err: bool = False, nl: bool = True) -> None:
    """Prints. Control characters are removed, and secrets too on stderr, which is often logged."""
    if isinstance(message, str):
        message = printable(without_secrets(message) if err else message)
    typer.echo(message, err=err, nl=nl)
