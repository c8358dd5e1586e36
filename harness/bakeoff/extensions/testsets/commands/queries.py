"""`bakeoff queries`: turn a corpus into a task without grades."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import (
    ColumnOption,
    DryRun,
    Force,
    MaxCost,
    Offline,
    check_folder,
    latest,
    parse_columns,
    parse_day,
    read_pipe,
    say,
    say_commands,
    warn,
)
from bakeoff.extensions.testsets.commands.pairs_to_grade import (
    ARTICLES,
    ChatOption,
    TaskArgument,
    chat_askers,
    echo_estimate,
    echo_usage,
    next_to_grade,
    say_list,
)

if TYPE_CHECKING:
    from bakeoff.extensions.testsets.ask import Asker
    from bakeoff.tasks.formats.native import QueryFile


queries = Family(help="Import or generate queries for a corpus.", no_args_is_help=True)


@queries.command()
def generate(
    articles: Annotated[Path, typer.Argument(help="The corpus, from `corpus import` or `select`.")],
    out: Annotated[Path, typer.Option(help="The task's folder; created if missing.")] = Path("task"),
    maker: Annotated[str, typer.Option(help="templates (offline) or llm.")] = "templates",
    n: Annotated[int, typer.Option("--n", min=1, help="Number of queries per category.")] = 4,
    model: Annotated[str, typer.Option("--model", help="For llm: ollama:llama3.1, gemini:…, openai:…")] = "ollama",
    set_: ChatOption = None,
    lineup: Annotated[Path | None, typer.Option(help="A line-up with your own [categories].")] = None,
    language: Annotated[str, typer.Option(help="Language of the queries, such as de.")] = "en",
    as_of: Annotated[str | None, typer.Option(help="For llm: make queries depend on this day (YYYY-MM-DD).")] = None,
    max_overlap: Annotated[
        float,
        typer.Option(min=0, max=1, help="Most words shared with the source, as a share."),
    ] = 0.5,
    max_similarity: Annotated[float, typer.Option(min=0, max=1, help="Drop queries this similar to another.")] = 0.6,
    seed: Annotated[int, typer.Option(help="The same seed gives the same template queries.")] = 42,
    add: Annotated[bool, typer.Option("--add", help="Add to the task's queries.")] = False,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    offline: Offline = False,
) -> None:
    """Generate queries for each category, in a task folder."""
    import inspect

    from bakeoff.core.files import write_json
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets import generate as build
    from bakeoff.extensions.testsets.generate import GenerationRequest
    from bakeoff.extensions.testsets.new_task import check_new, queries_file, write_task
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.tasks.formats.native import read_articles

    corpus, notes = read_articles(articles)
    for note in notes:
        warn(note)
    pages = corpus.articles
    check_folder(out)
    existing = _read_existing(queries_file(out), add)
    if existing is None:  # before a model is paid
        check_new(out)
    categories = build.check_categories(Lineup.read(lineup).categories if lineup else {})
    if maker == "templates" and lineup is None and not any(page.city or page.county or page.state for page in pages):
        categories = build.without_places()
        say(
            "no document names a city, county or state, so queries are made of the documents' key phrases. This "
            "favours lexical search, and --max-overlap does not apply. For other queries use --maker llm or your own "
            "categories (docs/guides/label-queries.md)."
        )
    request = GenerationRequest(categories, n, seed, language, parse_day(as_of, "--as-of"))
    asker = None
    extra: dict[str, Any] = {}
    if "asker" in inspect.signature(build.MAKERS.get(maker)).parameters:
        asker = chat_askers([model], set_, max_cost, offline)[0]
        extra = {"asker": asker}
    chosen = build.MAKERS.create(maker, **extra)
    if asker is not None and dry_run:
        _dry_run_of_queries(chosen, pages, request, asker)
        return
    try:
        if asker is not None and not offline:
            asker.model.ready()
        generated = build.generate(
            pages,
            chosen,
            request,
            most_overlap=max_overlap,
            most_alike=max_similarity,
            existing=[entry.query_text for entry in existing.queries] if existing else (),
            progress=Bars(),
        )
    finally:
        if asker is not None:
            asker.close()
    _print_queries(generated, n, "" if dry_run else f"{queries_file(out)}, metadata.dropped")
    if not generated.queries:
        raise InputError("no query passed", remedy="raise --max-overlap, or use --maker llm with another model")
    origin = {"model": asker.model.label} if asker is not None else {}
    content = build.query_file(generated, request, maker, existing, origin)
    if dry_run:
        say("dry run: nothing written")
    elif existing is not None:
        write_json(queries_file(out), content)
        say(f"{pluralise(len(generated.queries), 'query')} added: {queries_file(out)}")
    else:
        path = write_task(out, articles, content)
        say(f"{pluralise(len(generated.queries), 'query')}: {path}")
        say_commands(next_to_grade(out))
    if asker is not None:
        echo_usage(asker.usage)


@queries.command("import")
def import_queries_(
    source: Annotated[
        Path,
        typer.Argument(callback=read_pipe, help="A table of queries, .txt with one per line, or - (a pipe)."),
    ],
    articles: Annotated[Path, typer.Option(help="The corpus of a new task.")] = ARTICLES,
    out: Annotated[Path, typer.Option(help="The task's folder; created if missing.")] = Path("task"),
    column: ColumnOption = None,
    log: Annotated[bool, typer.Option("--log", help="Read a search log; most frequent queries first.")] = False,
    most: Annotated[int | None, typer.Option("--most", min=1, help="Import at most this many.")] = None,
    add: Annotated[bool, typer.Option("--add", help="Add to the task's queries.")] = False,
    force: Force = False,
) -> None:
    """Import your own queries.

    Ids, categories, languages, filters and all other columns are kept.
    """
    from bakeoff.core.facts import SOME, fact
    from bakeoff.core.files import write_json
    from bakeoff.core.filters import find_unmatched
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.corpus import LEFT_OUT
    from bakeoff.extensions.testsets.new_task import DESCRIPTION, queries_file, write_task
    from bakeoff.extensions.testsets.query_import import import_queries
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.tasks.formats.native import document as document_of
    from bakeoff.tasks.formats.native import read_articles

    check_folder(out)
    path = queries_file(out)
    existing = None if force and not add else _read_existing(path, add, "--force overwrites them, ")
    imported = import_queries(source, parse_columns(column), log=log, most=most, existing=existing)
    if (out / DESCRIPTION).exists():
        folder = TaskFolder.open(str(out / DESCRIPTION))
        folder.check_own()
        folder.check_queries({entry.query_id for entry in imported.file.queries})
        documents = folder.task.documents
        write_json(path, imported.file)
    else:
        if not articles.exists():
            raise InputError(
                "no such file", file=articles, remedy="make it with bakeoff corpus import, or set --articles"
            )
        corpus, notes = read_articles(articles)
        for note in notes:
            warn(note)
        documents = [document_of(article) for article in corpus.articles]
        write_task(out, articles, imported.file)
    say(f"{pluralise(imported.new, 'query')} {'added' if add else 'imported'}: {path}")
    if imported.taken:
        say(f"taken: {imported.taken}")
    if imported.no_filter:
        say(f"warning: {imported.no_filter}", err=True)
    filters = {entry.query_id: entry.where for entry in imported.file.queries}
    if lost := find_unmatched(filters, (document.metadata for document in documents)):
        warn(fact("testsets.filter_matches_nothing", count=len(lost), queries=lost[:SOME]))
    say_list("empty, left out", imported.empty, f"{path}, metadata.{LEFT_OUT}")
    say_list("duplicates, left out", imported.duplicates, f"{path}, metadata.{LEFT_OUT}")
    say_commands(next_to_grade(out))


def _read_existing(path: Path, add: bool, force: str = "") -> QueryFile | None:
    """Only add to an existing task, since its grades belong to query ids."""
    from bakeoff.core.data_files import read_data
    from bakeoff.tasks.formats.native import QueryFile

    if path.exists() and not add:
        remedy = f"--add adds to them, {force}or choose another --out"
        raise InputError("already has queries", file=path, remedy=remedy)
    if add and not path.exists():
        raise InputError("has no queries to add to", file=path, remedy="omit --add")
    return read_data(path, QueryFile)[0] if add else None


def _dry_run_of_queries(maker: Any, pages: Any, request: Any, asker: Asker) -> None:
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.chat_maker import ROUNDS

    questions = {
        (category, number): question
        for category in request.categories
        for number, question in enumerate(maker.questions(pages, category, request))
    }
    estimate = asker.estimate(questions)
    say(f"at most {pluralise(estimate.requests, 'prompt')} (a {ROUNDS}th of them if every query passes)")
    echo_estimate(estimate)


def _print_queries(generated: Any, n: int, all_dropped: str) -> None:
    from bakeoff.core.printable import pluralise
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid

    table = Grid(["category", "query", Figures("words shared with its source")])
    for draft, shared in zip(generated.queries, generated.overlaps, strict=True):
        table.add_row(draft.category, draft.text, f"{shared:.0%}")
    console().print(table)
    say_list("not taken", [f"{draft.category}: {draft.text}: {draft.why}" for draft in generated.dropped], all_dropped)
    for category, taken in generated.short.items():
        say(f"warning: {category}: {taken} of {pluralise(n, 'query')}; no more could be made from these documents")


@queries.command("copy")
def copy_(
    task: TaskArgument,
    out: Annotated[Path, typer.Argument(help="The new folder.")],
) -> None:
    """Copy a task with its documents and grades.

    Built-in tasks are read-only, so copy one to change it.
    """
    from bakeoff.extensions.testsets.new_task import copy_task

    say_commands(f"{copy_task(task, out)}\nnext: bakeoff annotate {out}")


def plan_queries(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RESULT...]", callback=latest, help="Results to take the spread of scores from, or `latest`."
        ),
    ] = None,
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="Such as ndcg@10.")] = None,
    width: Annotated[float | None, typer.Option(min=1e-6, help="The width of the interval of a difference.")] = None,
    difference: Annotated[float | None, typer.Option(min=1e-6, help="The smallest difference that matters.")] = None,
    power: Annotated[float, typer.Option(min=0.01, max=0.999, help="How often it should be found.")] = 0.8,
    contenders: Annotated[int | None, typer.Option(min=2, help="How many will be compared.")] = None,
    variance: Annotated[
        float | None, typer.Option(min=1e-9, help="The variance of a score, instead of results.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="For a new collection: count from no queries.")] = False,
    looks: Annotated[int | None, typer.Option(min=2, max=20, help="Plan this many looks; needs --task.")] = None,
    task: Annotated[str | None, typer.Option(help="The task that a plan of looks is written into.")] = None,
) -> None:
    """Say how many queries to label for an interval of a chosen width, or to find a chosen difference."""
    from bakeoff.extensions.testsets.plan_queries import looks_sentences, plan_looks, terminal
    from bakeoff.extensions.testsets.plan_queries import plan_queries as plan
    from bakeoff.report.console import console
    from bakeoff.results.compare import read_results

    if looks is not None and (task is None or difference is None):
        raise InputError("--looks needs --task and --difference", remedy="add --task mine --difference 0.05")
    planned = plan(
        read_results(results or []),
        measure,
        variance=variance,
        contenders=contenders,
        width=width,
        difference=difference,
        power=power,
        new=new,
    )
    console().print(terminal(planned))
    if looks is None or task is None or difference is None:
        return
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.tasks.looks import write_plan

    folder = TaskFolder.open(task)
    folder.check_own()
    if any(query.drawn or query.cluster for query in folder.task.queries):
        problem = "its queries were drawn by traffic, or share clusters"
        raise InputError(problem, file=folder.path, remedy="plan looks at a plain task")
    by_look = plan_looks(planned, looks)
    path = write_plan(folder.kind.base, folder.query_ids, by_look.queries, planned.measure, difference)
    for sentence in looks_sentences(by_look):
        say(sentence)
    say(f"Written to {path}.")
