"""`bakeoff export-mteb`: a result in MTEB's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared_options import ResultArgument, check_folder
from bakeoff.cli.streams import echo


def export_mteb(
    result: ResultArgument,
    out: Annotated[Path, typer.Option(help="The folder to write into.")] = Path("mteb-results"),
    task: Annotated[str, typer.Option(help="MTEB's name of the task, where the line-up does not have it.")] = "",
) -> None:
    """Write a result's rows as MTEB writes its own: MODEL/LABEL/TASK.json."""
    from bakeoff.core.files import write_json
    from bakeoff.results.mteb import mteb_files
    from bakeoff.results.result import load

    check_folder(out)
    for name, content in mteb_files(load(result), task).items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)
        echo(f"Written to {path}")
