"""`bakeoff vectors` imports and exports vectors; `bakeoff embed` embeds one shard of a corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import (
    ColumnOption,
    ContendersOption,
    Force,
    LineupArgument,
    LineupOption,
    MaxCost,
    check_file,
    check_folder,
    lineup_path,
    parse_columns,
    parse_settings,
    warn,
)
from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from bakeoff.embedding.cache import Space

vectors = Family(help="Import or export Parquet, Lance, .npy and FAISS files.", no_args_is_help=True)

ContenderOption = Annotated[str | None, typer.Option(help="Choose a contender by label, provider or model.")]
RoleOption = Annotated[Literal["document", "query"], typer.Option(help="Take document vectors or query vectors.")]


@vectors.command()
def export(
    out: Annotated[Path, typer.Argument(help="Write to a .parquet, .lance, .npy or .faiss file.")],
    lineup: LineupOption = None,
    contender: ContenderOption = None,
    role: RoleOption = "document",
    force: Force = False,
) -> None:
    """Write a contender's cached vectors with ids and text hashes; send no requests."""
    from bakeoff_providers.base import Role
    from bakeoff_providers.errors import InputError

    from bakeoff.core.paths import vectors_folder
    from bakeoff.core.progress import showing
    from bakeoff.extensions.vectors.files import vector_file
    from bakeoff.extensions.vectors.transfer import export_vectors, one_embedding, texts_of
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.settings import Settings

    file = vector_file(out)
    if out.suffix == ".lance" and out.is_dir():
        if not force:
            raise InputError("exists already", file=out, remedy="--force overwrites it")
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
    file: Annotated[Path, typer.Argument(help="Read a .parquet, .lance, .npy or .faiss file.")],
    lineup: LineupOption = None,
    contender: ContenderOption = None,
    role: RoleOption = "document",
    column: ColumnOption = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Import the ids that file and task share; ignore others.")
    ] = False,
    trust_ids: Annotated[
        bool, typer.Option("--trust-ids", help="Match only by id if the file has no texts or hashes.")
    ] = False,
) -> None:
    """Import existing vectors into the cache, checked against the task's texts, so that a run need not embed them."""
    from bakeoff_providers.base import Role

    from bakeoff.core.paths import vectors_folder
    from bakeoff.core.progress import showing
    from bakeoff.extensions.vectors.files import vector_file
    from bakeoff.extensions.vectors.transfer import import_vectors, one_embedding, texts_of
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.settings import Settings

    source = vector_file(file, parse_columns(column))
    chosen = Lineup.read(lineup_path(lineup))
    whose = one_embedding(chosen, contender)
    settings = Settings(cache=vectors_folder(), offline=True, progress=Bars())
    with showing(settings.progress), texts_of(chosen, whose, Role(role), settings) as texts:
        done = import_vectors(texts, source, partial=partial, trust_ids=trust_ids)
    echo(f"{done.written} {role} vectors of {whose.label} added to the cache, {done.present} were cached already")
    if done.lacking:
        echo(f"{done.lacking} texts have no vector in {file}; a run will request them")


def embed(
    out: Annotated[str, typer.Option(help="Write to a shared folder or a URL (s3://bucket/shards).")],
    lineup: LineupArgument = None,
    shard: Annotated[str, typer.Option(help="Embed this part of how many, from 1/64 to 64/64.")] = "1/1",
    contender: ContendersOption = None,
    queries: Annotated[bool, typer.Option("--queries", help="Embed the queries too.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Set a task option, as k=5.")] = None,
    max_cost: MaxCost = None,
) -> None:
    """Embed one shard of the documents for `bakeoff run --vectors`. A restarted job continues where it stopped."""
    from pathlib import Path

    from bakeoff.core.progress import showing
    from bakeoff.core.remote import SharedFolder
    from bakeoff.extensions.vectors.embed_shard import embed_shard
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.settings import Settings
    from bakeoff.running.shard_folders import ShardNumber
    from bakeoff.tasks.load import task_options

    number, shared = ShardNumber.parse(shard), SharedFolder(out)
    chosen = Lineup.read(lineup_path(lineup)).narrow(contender or ())
    options = task_options(chosen.task, chosen.folder, parse_settings(set_, "k=5"), Path.cwd())
    chosen = replace(chosen, overrides={**chosen.overrides, **options})
    bars = Bars()
    with showing(bars):
        folder = shared.fetch(number.folder)
    settings = Settings(cache=folder, max_cost=max_cost, progress=bars, notice=warn)
    failed = False

    def send(space: Space) -> None:
        if shared.remote:
            space.end_shard()
            shared.send(space.folder)

    for one in chosen.per_task():
        for done in embed_shard(one, number, settings, queries=queries, saved=send):
            failed |= bool(done.failed)
            said = done.failed or f"{done.texts} texts, {done.asked} requested now"
            echo(f"shard {number}, {', '.join(done.labels)}: {said}", err=bool(done.failed))
    if failed:
        raise typer.Exit(1)
