"""`bakeoff probe`: recall of a live index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.cli.shared_options import JsonOption, MetricsOption, deliver, parse_settings
from bakeoff.search.stores.existing import EXISTING

if TYPE_CHECKING:
    from bakeoff.extensions.production.probe import ProbeQueries
    from bakeoff.results.check import Check
    from bakeoff.search.stores.existing import ExistingIndex

OWN_ARGUMENTS = ("existing", "collection", "metric")  # not settable by --set


def _one_of(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def probe(
    store: Annotated[str, typer.Argument(help=f"{_one_of(EXISTING.names())}.")],
    existing: Annotated[str, typer.Argument(help="A folder, file or URL; env for PostgreSQL's settings.")],
    collection: Annotated[str, typer.Option(help="The collection or table, if there are several.")] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another option (`bakeoff options STORE`), as key=value."),
    ] = None,
    metric: Annotated[
        Literal["cosine", "l2", "ip"] | None, typer.Option(help="Its distance, if the index does not name it.")
    ] = None,
    vectors: Annotated[Path | None, typer.Option(help="Query vectors (.npy); default: stored ones.")] = None,
    provider: Annotated[str | None, typer.Option(help="The provider that embeds --task or --log queries.")] = None,
    model: Annotated[str | None, typer.Option(help="Default: the provider's own.")] = None,
    task: Annotated[str | None, typer.Option(help="Use the queries of this task.")] = None,
    log: Annotated[Path | None, typer.Option(help="Sample queries from this log by traffic.")] = None,
    size: Annotated[int, typer.Option(min=2, help="Largest number of queries.")] = 200,
    k: Annotated[int, typer.Option("-k", min=1, help="Measure recall at K.")] = 10,
    min_recall: Annotated[float, typer.Option(min=0, max=1, help="Exit with 1 if recall is lower.")] = 0.95,
    seed: Annotated[int, typer.Option(help="The same seed draws the same queries.")] = 42,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Compare a live index with exact search; read-only."""
    if sum(source is not None for source in (vectors, task, log)) > 1:
        raise InputError("--vectors, --task and --log exclude each other", remedy="give one of them")
    if (task or log) and not provider:
        raise InputError(
            "queries must be embedded", place="--provider", remedy="name the provider that filled the index"
        )
    where = parse_settings(set_, "id=metadata.page_id")

    def check() -> Check:
        from bakeoff.extensions.production.probe import draw_queries, report_client_errors
        from bakeoff.extensions.production.probe import probe as compare

        with report_client_errors(store):
            index = _index(store, existing, collection, metric, where)
        try:
            if vectors or task or log:
                queries = _queries(vectors, task, log, provider or "", model, size, seed)
            else:
                with report_client_errors(store):
                    queries = draw_queries(index, size, seed)
            return compare(index, queries, k=k, min_recall=min_recall)
        finally:
            index.close()

    deliver("probe", check, as_json=as_json, metrics_file=metrics_file)


def _index(store: str, existing: str, collection: str, metric: str | None, where: dict[str, Any]) -> ExistingIndex:
    from bakeoff.lineup.checks import check_no_password

    index = EXISTING.get(store)
    check_no_password(existing, "EXISTING")
    if reason := index.missing():
        raise Unavailable(reason)
    settings = [option.name for option in EXISTING.options(store) if option.name not in OWN_ARGUMENTS]
    if wrong := set(where) - set(settings):
        raise InputError(f"{min(wrong)!r} can't be set", place="--set", remedy=_one_of(settings))
    return EXISTING.create(store, existing=existing, collection=collection, metric=metric or "", **where)


def _queries(
    vectors: Path | None, task: str | None, log: Path | None, provider: str, model: str | None, size: int, seed: int
) -> ProbeQueries:
    from bakeoff_providers import PROVIDERS
    from bakeoff_providers.base import Role

    from bakeoff.embedding.embed import Embedder
    from bakeoff.extensions.production.probe import ProbeQueries

    if vectors is not None:
        from bakeoff_providers.arrays import read_vectors

        return ProbeQueries(vectors.name, read_vectors(vectors)[:size])
    texts, source = _texts(task, log, size, seed)
    kind = PROVIDERS.get(provider)
    if reason := kind.missing():
        raise Unavailable(reason)
    embedder = Embedder(PROVIDERS.create(provider, **({"model": model} if model else {})))
    try:
        return ProbeQueries(source, embedder.embed_raw(list(dict.fromkeys(texts)), Role.QUERY, lambda _: None)[0])
    finally:
        embedder.close()


def _texts(task: str | None, log: Path | None, size: int, seed: int) -> tuple[list[str], str]:
    from collections import Counter

    from bakeoff.core.task import normalise
    from bakeoff.extensions.production.log_sample import draw
    from bakeoff.extensions.production.search_log import LogColumns, read_log
    from bakeoff.tasks.load import load_task

    if task is not None:
        return [query.text for query in load_task(task, Path()).queries][:size], f"task {task}"
    assert log is not None
    counts = Counter(normalise(row.query) for row in read_log(log, LogColumns(), ("query",)))
    return [query.text for query in draw(counts, size, seed)], log.name
