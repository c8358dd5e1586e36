"""What a test of stores or of an endpoint leaves behind: a folder with its figures and its tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from bakeoff.extensions.storelab.tables import Sheet


def write_sheet(
    out: Path, what: str, content: object, sheet: Sheet, draw: Callable[[Path], list[str]] = lambda _folder: []
) -> None:
    """All files of one result, in a folder that appears under its name only when it is complete."""
    import datetime

    from bakeoff.core.files import write_atomic, write_folder, write_json
    from bakeoff.extensions.storelab.tables import markdown, terminal
    from bakeoff.report.console import console

    folder = out / f"{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M%S}-{what}"

    def fill(draft: Path) -> None:
        write_json(draft / f"{what}.json", content)
        write_atomic(draft / f"{what}.md", markdown(sheet, draw(draft)))

    folder = write_folder(folder, fill)
    console().print(terminal(sheet))
    echo(f"\nWritten to {folder}/")
