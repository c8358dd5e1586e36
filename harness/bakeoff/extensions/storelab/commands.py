"""`bakeoff sweep`, `bakeoff loadtest` and `bakeoff footprint`: measure stores over one set of vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bakeoff_providers.errors import InputError, StoreError, Unavailable

from bakeoff.cli.shared_options import (
    MOST_ROUNDS,
    DryRun,
    LineupArgument,
    MaxCost,
    OutOption,
    check_folder,
    lineup_path,
    parse_repeated,
    say,
)
from bakeoff.cli.streams import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff_providers.base import Provider

    from bakeoff.extensions.storelab.tables import Sheet
    from bakeoff.extensions.storelab.vector_sample import VectorSample
    from bakeoff.report.charts import Chart


def write_sheet(
    out: Path,
    what: str,
    content: object,
    sheet: Sheet,
    charts: Sequence[Chart] = (),
    palette: dict[str, str] | None = None,
) -> None:
    """Write all files of one result. The folder gets its name only once it is complete."""
    import datetime

    from bakeoff.core.drawing import DrawingFailed
    from bakeoff.core.files import write_atomic, write_folder, write_json
    from bakeoff.extensions.storelab.page import page
    from bakeoff.extensions.storelab.tables import markdown, terminal
    from bakeoff.report.charts import bundle, pictures
    from bakeoff.report.console import console

    folder = out / f"{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M%S}-{what}"
    try:
        files, problems = pictures(charts)
        if charts:
            bundle()
    except DrawingFailed as error:
        files, problems, charts = {}, [f"The charts could not be drawn: {error}"], ()

    def fill(draft: Path) -> None:
        write_json(draft / f"{what}.json", content)
        for name, picture in files.items():
            write_atomic(draft / name, picture)
        write_atomic(draft / f"{what}.md", markdown(sheet, [name for name in files if name.endswith(".png")]))
        write_atomic(draft / f"{what}.html", page(sheet, charts, palette))

    folder = write_folder(folder, fill)
    for problem in problems:
        say(f"warning: {problem}", err=True)
    console().print(terminal(sheet))
    echo(f"\nWritten to {folder}/; the page is {what}.html")


BATCHES, CLIENTS, LENGTHS = (1, 16, 64), (1, 4), (20, 200)


def load_endpoint(
    name: str,
    model: str,
    options: list[str],
    *,
    batches: list[int],
    clients: list[int],
    words: list[int],
    requests: int,
    documents: int,
    max_cost: float | None,
    dry_run: bool,
    out: Path,
) -> None:
    """Print the expected cost, then run the test. Refuse a test above --max-cost before sending anything."""
    from bakeoff.calls.budget import Budget
    from bakeoff.extensions.storelab.provider_load import check_provider, estimate, load_provider, settings_of
    from bakeoff.extensions.storelab.provider_table import provider_sheet
    from bakeoff.report.console import Bars
    from bakeoff.report.words import words as words_of

    provider = _provider(name, model, options)
    try:
        check_provider(provider)
        settings = settings_of(batches or BATCHES, clients or CLIENTS, words or LENGTHS)
        expected = estimate(provider, settings, requests)
        cost = "no price is known" if expected.usd is None else f"about ${expected.usd:.4f}"
        echo(
            f"{len(settings)} settings, {expected.requests:,} requests, about {expected.tokens:,.0f} tokens: "
            f"{'local, free' if provider.local else cost}",
            err=True,
        )
        if max_cost is not None and expected.usd is None and not provider.local:
            raise InputError("no price is known", place="--max-cost", remedy="give it: --set price=0.02")
        if max_cost is not None and expected.usd is not None and expected.usd > max_cost:
            raise InputError(
                f"the test would cost about ${expected.usd:.4f}, more than ${max_cost:g}",
                place="--max-cost",
                remedy="ask for fewer --requests or smaller batches",
            )
        if dry_run:
            return
        budget = Budget(max_cost) if max_cost is not None else None
        measured = load_provider(
            provider, settings, requests=requests, documents=documents, budget=budget, progress=Bars()
        )
    finally:
        provider.close()
    if not any(level.requests for level in measured.levels):
        raise StoreError(f"no request was answered; nothing was written\n  {words_of(measured.facts[-1])}")
    write_sheet(out, "provider", measured, provider_sheet(measured))


def _provider(name: str, model: str, texts: list[str]) -> Provider:
    from bakeoff_providers import PROVIDERS

    options = {}
    for key, values in parse_repeated(texts).items():
        if len(values) > 1:
            raise InputError(f"{key} is set {len(values)} times", place="--set", remedy="give it once")
        options[key] = values[0]
    PROVIDERS.check_options(name, options)
    if reason := PROVIDERS.get(name).missing(**options):
        raise Unavailable(f"{name}: {reason}")
    return PROVIDERS.create(name, **({"model": model} if model else {}), **options)


StoreOption = Annotated[list[str] | None, typer.Option(help="Measure this store; repeatable. Default: faiss.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set ef=64, or faiss.ef=64 for one store; repeatable."),
]
ContenderOption = Annotated[list[str] | None, typer.Option(help="Use this contender's vectors.")]
SyntheticOption = Annotated[int | None, typer.Option(min=100, help="Draw this many clustered vectors instead.")]
DimensionsOption = Annotated[int, typer.Option(min=2, help="Set the dimensions of the drawn vectors.")]
VectorsOption = Annotated[Path | None, typer.Option(help="Read documents from a .npy file, one vector per row.")]
QueriesOption = Annotated[Path | None, typer.Option(help="Read queries from a .npy file. Default: held-out documents.")]
KOption = Annotated[int, typer.Option("-k", min=1, help="Retrieve this many neighbours.")]


def sweep(
    lineup: LineupArgument = None,
    store: StoreOption = None,
    set_: SetOption = None,
    k: KOption = 10,
    rounds: Annotated[int, typer.Option(min=1, max=MOST_ROUNDS, help="Repeat every query this many times.")] = 3,
    target: Annotated[float, typer.Option(min=0, max=1, help="Set the target recall.")] = 0.99,
    contender: ContenderOption = None,
    synthetic: SyntheticOption = None,
    dimensions: DimensionsOption = 384,
    vectors: VectorsOption = None,
    queries: QueriesOption = None,
    out: OutOption = Path("results"),
) -> None:
    """Sweep build and query parameters of stores: recall against time and size.

    A parameter that is set several times takes each value in turn; the others use the store's own grid.
    """
    from bakeoff.extensions.storelab.page import store_colours, sweep_charts
    from bakeoff.extensions.storelab.sweep import StoreGrid
    from bakeoff.extensions.storelab.sweep import sweep as sweep_stores
    from bakeoff.extensions.storelab.tables import sweep_sheet
    from bakeoff.report.console import Bars

    stores = _stores(store, out)
    given = _parse_parameters(set_ or [], stores)
    grids = [
        StoreGrid(
            name,
            {key: values[0] for key, values in given[name].items() if len(values) == 1},
            {key: values for key, values in given[name].items() if len(values) > 1},
        )
        for name in stores
    ]
    sample = _sample(stores, lineup, contender, synthetic, dimensions, vectors, queries)
    swept = sweep_stores(sample, grids, k=k, rounds=rounds, target=target, progress=Bars())
    if not swept.points:
        reasons = "".join(f"\n  {label}: {reason}" for label, reason in swept.not_run.items())
        raise StoreError(f"no setting could be measured; nothing was written{reasons}")
    write_sheet(out, "sweep", swept, sweep_sheet(swept), sweep_charts(swept), store_colours(swept))


def loadtest(
    lineup: LineupArgument = None,
    store: StoreOption = None,
    set_: SetOption = None,
    k: KOption = 10,
    clients: Annotated[
        list[int] | None, typer.Option(min=1, max=1000, help="Run this many concurrent clients; repeatable.")
    ] = None,
    rate: Annotated[
        list[float] | None, typer.Option(min=0.1, max=1e6, help="Add an open loop at this many requests/s; repeatable.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=86_400, help="Apply each load for this long.")] = 5.0,
    writes: Annotated[
        float, typer.Option(min=0, max=25, help="Insert, delete and update this % each during searches.")
    ] = 0.0,
    filters: Annotated[
        bool, typer.Option("--filters", help="Test filters that 50% down to 0.01% of documents pass.")
    ] = False,
    tenants: Annotated[int, typer.Option(min=0, max=1_000_000, help="Number of tenants in one collection.")] = 0,
    cold: Annotated[
        bool, typer.Option("--cold", help="Time the first answer of a new process, cold and warm.")
    ] = False,
    provider: Annotated[str, typer.Option(help="Load-test this provider's endpoint instead of a store.")] = "",
    model: Annotated[str, typer.Option(help="Choose the provider's model.")] = "",
    batch: Annotated[
        list[int] | None, typer.Option(min=1, max=10_000, help="Send this many texts per request; repeatable.")
    ] = None,
    words: Annotated[
        list[int] | None, typer.Option(min=1, max=100_000, help="Send texts of this many words; repeatable.")
    ] = None,
    requests: Annotated[int, typer.Option(min=1, max=1_000_000, help="Send this many requests per setting.")] = 20,
    documents: Annotated[int, typer.Option(min=1, help="Estimate time and cost for this many texts.")] = 1_000_000,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    contender: ContenderOption = None,
    synthetic: SyntheticOption = None,
    dimensions: DimensionsOption = 384,
    vectors: VectorsOption = None,
    queries: QueriesOption = None,
    out: OutOption = Path("results"),
) -> None:
    """Load-test a store: throughput against p95, the knee, late and dropped requests.

    With --writes, --filters, --tenants or --cold: recall and latency under that condition, for one or more stores.
    With --provider: throughput of an embedding endpoint by batch size, concurrency and text length.
    """
    from bakeoff.extensions.storelab.conditions import ConditionSettings, conditions
    from bakeoff.extensions.storelab.loadtest import loadtest_store
    from bakeoff.extensions.storelab.page import load_charts
    from bakeoff.extensions.storelab.tables import conditions_sheet, loadtest_sheet
    from bakeoff.report.console import Bars

    if provider:
        check_folder(out)
        load_endpoint(
            provider, model, set_ or [], batches=batch or [], clients=clients or [], words=words or [],
            requests=requests, documents=documents, max_cost=max_cost, dry_run=dry_run, out=out,
        )  # fmt: skip
        return
    stores = _stores(store, out)
    given = _parse_parameters(set_ or [], stores)
    if asked := ConditionSettings(writes=writes, filters=filters, tenants=tenants, cold=cold):
        if rate or len(clients or ()) > 1:
            raise InputError("--rate and several --clients are for searches only", remedy="run these separately")
        sample = _sample(stores, lineup, contender, synthetic, dimensions, vectors, queries)
        measured = conditions(
            sample, [(name, _single(given[name])) for name in stores], asked, k=k, clients=(clients or [1])[0],
            seconds=seconds, progress=Bars(),
        )  # fmt: skip
        write_sheet(out, "conditions", measured, conditions_sheet(measured))
        return
    if len(stores) > 1:
        raise InputError("one store at a time", place="--store", remedy="run it again for the other")
    options = _single(given[stores[0]])
    sample = _sample(stores, lineup, contender, synthetic, dimensions, vectors, queries)
    tested = loadtest_store(
        stores[0], options, sample, k=k, clients=sorted(clients or [1, 2, 4, 8]), rates=rate or (), seconds=seconds,
        progress=Bars(),
    )  # fmt: skip
    write_sheet(out, "loadtest", tested, loadtest_sheet(tested), load_charts(tested))


def footprint(
    lineup: LineupArgument = None,
    store: StoreOption = None,
    set_: SetOption = None,
    contender: ContenderOption = None,
    synthetic: SyntheticOption = None,
    dimensions: DimensionsOption = 384,
    vectors: VectorsOption = None,
    out: OutOption = Path("results"),
) -> None:
    """Measure build time, disk and memory of stores, with estimates for 1 M and 100 M documents."""
    from bakeoff.extensions.storelab.footprint import footprints
    from bakeoff.extensions.storelab.tables import footprint_sheet
    from bakeoff.report.console import Bars

    stores = _stores(store, out)
    given = _parse_parameters(set_ or [], stores)
    sample = _sample(stores, lineup, contender, synthetic, dimensions, vectors, None)
    measured = footprints(sample, [(name, _single(given[name])) for name in stores], progress=Bars())
    write_sheet(out, "footprint", measured, footprint_sheet(measured))


def _stores(names: list[str] | None, out: Path) -> list[str]:
    """Check the store names, and --out before any work."""
    from bakeoff.search.stores import STORES

    check_folder(out)
    chosen = list(dict.fromkeys(names or ["faiss"]))
    for name in chosen:
        STORES.get(name)
    return chosen


def _parse_parameters(texts: list[str], stores: list[str]) -> dict[str, dict[str, list[Any]]]:
    """Parse the parameters of each store: `name=value` is for all, `store.name=value` for one."""
    from bakeoff.search.stores import STORES

    parameters: dict[str, dict[str, list[Any]]] = {name: {} for name in stores}
    for name, values in parse_repeated(texts).items():
        owner, dot, parameter = name.partition(".")
        if dot and owner not in parameters:
            raise InputError(f"--set {name}: {owner!r} is not among the stores", remedy=f"add --store {owner}")
        for store in [owner] if dot else stores:
            parameters[store][parameter if dot else name] = values
    for store, given in parameters.items():
        for option, values in given.items():
            for value in values:
                STORES.check_options(store, {option: value})
    _check_any(parameters)
    return parameters


def _check_any(parameters: dict[str, dict[str, list[Any]]]) -> None:
    """Stop before any work if no store can run. If only some can't, only their rows fail."""
    from bakeoff.search.stores import STORES

    reasons = {}
    for store, given in parameters.items():
        reasons[store] = STORES.get(store).missing(**{option: values[0] for option, values in given.items()})
    if all(reasons.values()):
        raise Unavailable("; ".join(f"{store}: {reason}" for store, reason in reasons.items()))


def _single(parameters: dict[str, list[Any]]) -> dict[str, Any]:
    for name, values in parameters.items():
        if len(values) > 1:
            raise InputError(
                f"{name} is set {len(values)} times", place="--set", remedy="several values: bakeoff sweep"
            )
    return {name: values[0] for name, values in parameters.items()}


def _sample(
    stores: list[str], lineup: Path | None, contender: list[str] | None, synthetic: int | None, dimensions: int,
    vectors: Path | None, queries: Path | None,
) -> VectorSample:  # fmt: skip
    """Load the vectors. Name the line-up's stores that are not tested."""
    from bakeoff.extensions.storelab import vector_sample
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.runner import Settings, vectors_folder
    from bakeoff.search.stores import STORES

    if queries is not None and vectors is None:
        raise InputError("--queries needs --vectors", remedy="give both")
    if synthetic is not None and vectors is not None:
        raise InputError("--synthetic and --vectors exclude each other", remedy="give one of them")
    if vectors is not None:
        return vector_sample.from_files(vectors, queries)
    if synthetic is not None:
        _check_memory(synthetic, dimensions)
        return vector_sample.synthetic(synthetic, dimensions, min(vector_sample.HELD_OUT, synthetic // 2))
    chosen = Lineup.read(lineup_path(lineup)).narrow(contender or ())
    named = {row.identity.store for row in chosen.contenders} - set(stores)
    if others := [name for name in STORES.names() if name in named]:
        add = " ".join(f"--store {name}" for name in others)
        say(f"Of the line-up's stores {', '.join(others)} {'is' if len(others) == 1 else 'are'} not tested here: {add}")
    return vector_sample.from_lineup(chosen, Settings(cache=vectors_folder(), progress=Bars()))


def _check_memory(documents: int, dimensions: int) -> None:
    """Refuse vectors that do not fit in memory."""
    import psutil

    needed, free = 4 * documents * dimensions, psutil.virtual_memory().available
    if needed > free:
        raise InputError(
            f"{documents:,} × {dimensions} numbers take {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are free",
            place="--synthetic",
            remedy=f"at most {free // (4 * dimensions):,} fit",
        )
