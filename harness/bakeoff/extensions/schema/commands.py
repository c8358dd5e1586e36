"""`bakeoff schema`, and the schema beside a new line-up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.streams import echo

FILE = "bakeoff.schema.json"


def schema(
    name: Annotated[str, typer.Argument(help="`lineup`, `task` or `log`.")],
) -> None:
    """Print the JSON Schema (draft 2020-12) of a line-up, a task.toml or one line of a search log.

    It knows the plug-ins that are installed here. `bakeoff init` writes the one of line-ups beside a new line-up.
    """
    from bakeoff.extensions.schema.generate import schema_text

    echo(schema_text(name), nl=False)


def add_schema(lineup: Path, *, force: bool) -> None:
    """Write the schema beside a new line-up, and name it in the first line, as taplo and other editors read it.

    The path is relative: it is true on every machine that has the folder, with and without a network.
    """
    from bakeoff.cli.shared_options import say
    from bakeoff.core.files import write_atomic
    from bakeoff.extensions.schema.generate import schema_text

    beside = lineup.parent / FILE
    if force or not beside.exists():
        write_atomic(beside, schema_text("lineup"))
        say(f"{beside}: written, for completion in editors")
    write_atomic(lineup, f"#:schema ./{FILE}\n".encode() + lineup.read_bytes())
