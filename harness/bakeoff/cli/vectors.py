"""`bakeoff vectors`: vectors that exist, from a file into the cache and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bakeoff.cli.shared_options import (
    ColumnOption,
    Force,
    LineupOption,
    check_file,
    check_folder,
    lineup_path,
    parse_columns,
)
from bakeoff.cli.streams import echo

vectors = typer.Typer(help="Vectors from and to Parquet, Lance, .npy and FAISS files.", no_args_is_help=True)

ContenderOption = Annotated[
    str | None, typer.Option(help="Whose: a label, provider or model; needed where several have vectors.")
]
RoleOption = Annotated[Literal["document", "query"], typer.Option(help="Vectors of the documents, or of the queries.")]


@vectors.command()
def export(
    out: Annotated[Path, typer.Argument(help="The file: .parquet, .lance, .npy or .faiss.")],
    lineup: LineupOption = None,
    contender: ContenderOption = None,
    role: RoleOption = "document",
    force: Force = False,
) -> None:
    """Write a contender's cached vectors with ids and text hashes; asks for nothing."""
    from bakeoff_providers.base import Role
    from bakeoff_providers.errors import InputError

    from bakeoff.core.paths import vectors_folder
    from bakeoff.core.progress import showing
    from bakeoff.embedding.vector_files import vector_file
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.settings import Settings
    from bakeoff.running.vectors import export_vectors, one_embedding, texts_of

    file = vector_file(out)
    if out.suffix == ".lance" and out.is_dir():
        if not force:
            raise InputError("exists already", file=out, remedy="--force writes over it")
        check_folder(out.parent)
    else:
        check_file(out, force=force)
    chosen = Lineup.read(lineup_path(lineup))
    whose = one_embedding(chosen, contender)
    settings = Settings(cache=vectors_folder(), offline=True, progress=Bars())
    with showing(settings.progress), texts_of(chosen, whose, Role(role), settings) as texts:
        count = export_vectors(texts, file)
    echo(f"{count} {role} vectors of {whose.label} written to {out}")


@vectors.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="The file: .parquet, .lance, .npy or .faiss.")],
    lineup: LineupOption = None,
    contender: ContenderOption = None,
    role: RoleOption = "document",
    column: ColumnOption = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Take what the file and the task share, though each may have more.")
    ] = False,
    trust_ids: Annotated[
        bool, typer.Option("--trust-ids", help="Go by ids alone, where the file has no texts and no hashes.")
    ] = False,
) -> None:
    """Put vectors that exist into the cache, checked against the texts of the task: a run does not ask for them."""
    from bakeoff_providers.base import Role

    from bakeoff.core.paths import vectors_folder
    from bakeoff.core.progress import showing
    from bakeoff.embedding.vector_files import vector_file
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.settings import Settings
    from bakeoff.running.vectors import import_vectors, one_embedding, texts_of

    source = vector_file(file, parse_columns(column))
    chosen = Lineup.read(lineup_path(lineup))
    whose = one_embedding(chosen, contender)
    settings = Settings(cache=vectors_folder(), offline=True, progress=Bars())
    with showing(settings.progress), texts_of(chosen, whose, Role(role), settings) as texts:
        done = import_vectors(texts, source, partial=partial, trust_ids=trust_ids)
    echo(f"{done.written} {role} vectors of {whose.label} are new in the cache, {done.present} were there")
    if done.lacking:
        echo(f"{done.lacking} texts have no vector in {file}: a run asks for them")
