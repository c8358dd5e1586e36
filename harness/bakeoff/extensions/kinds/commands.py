"""`bakeoff snapshot`: write a dated catalogue as Parquet or JSON, with keys in place of vectors."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.shared_options import check_folder, parse_day
from bakeoff.cli.streams import echo


def snapshot(
    source: Annotated[Path, typer.Argument(help="Read items from a JSON list or a Parquet file.")],
    out: Annotated[Path, typer.Option(help="Write into this folder.")] = Path(),
    date: Annotated[str | None, typer.Option(help="Date the snapshot YYYY-MM-DD. Default: today.")] = None,
    id_key: Annotated[str, typer.Option(help="Take the id from this key.")] = "id",
    title_key: Annotated[str, typer.Option(help="Take the title from this key.")] = "title",
    text_key: Annotated[str, typer.Option(help="Take the text from this key.")] = "description",
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, which needs no pyarrow.")] = False,
) -> None:
    """Write <source>_snapshot_YYYYMMDD.parquet (or .json) for a profiles task."""
    from bakeoff.extensions.kinds.snapshot import write_snapshot

    check_folder(out)
    when = parse_day(date, "--date") or datetime.date.today()
    suffix = "json" if as_json else "parquet"
    echo(write_snapshot(source, out, when, id_key=id_key, title_key=title_key, text_key_=text_key, suffix=suffix))
