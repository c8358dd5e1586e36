"""`bakeoff canary`: detect a change of a provider's model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.cli.command_table import Family
from bakeoff.cli.shared_options import (
    DryRun,
    Force,
    JsonOption,
    MaxCost,
    MetricsOption,
    check_file,
    deliver,
    parse_settings,
    say,
)

if TYPE_CHECKING:
    from bakeoff_providers.base import Provider

    from bakeoff.core.task import Task
    from bakeoff.extensions.production.canary import CanaryText
    from bakeoff.results.check import Check

canary = Family(help="Record a provider's vectors; later, check for changes.", no_args_is_help=True)

TaskOption = Annotated[str | None, typer.Option(help="Also compare a task's rankings (folder or built-in name).")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="An option of the provider, as key=value.")]


@canary.command()
def record(
    provider: Annotated[str, typer.Argument(help="As in a line-up, such as openai.")],
    model: Annotated[str | None, typer.Option(help="Default: the provider's own.")] = None,
    set_: SetOption = None,
    out: Annotated[Path | None, typer.Option(help="Default: PROVIDER-MODEL.canary.")] = None,
    texts: Annotated[Path | None, typer.Option(help="Your own texts: JSONL with text and role.")] = None,
    calls: Annotated[int, typer.Option(min=2, help="Number of calls; more measure noise better.")] = 5,
    task: TaskOption = None,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Embed pinned texts several times and record the vectors."""
    from bakeoff.core.facts import fact
    from bakeoff.extensions.production import canary as recordings
    from bakeoff.extensions.production.canary import file_for
    from bakeoff.results.check import Check

    options = parse_settings(set_, "dimensions=512")
    wanted = recordings.read_texts(texts) if texts else recordings.DEFAULT_TEXTS
    watched = _task(task)

    def check() -> Check:
        asked = _provider(provider, model, options)
        documents = len(watched.documents) if watched else 0
        _announce(asked, [*(wanted * calls), *_texts_of(watched)], max_cost)
        if dry_run:
            return Check(command="canary", worse=False, facts=[fact("production.dry_run")])
        path = out or file_for(asked.name, asked.card.name)
        check_file(path, force=force)
        try:
            recording = recordings.record(asked, wanted, options, calls, watched)
        finally:
            asked.close()
        recordings.save(recording, path)
        written = fact(
            "production.canary_recorded", texts=len(wanted), calls=calls, documents=documents, task=task, file=str(path)
        )
        return Check(command="canary", worse=False, facts=[written])

    deliver("canary", check, as_json=as_json, metrics_file=metrics_file)


@canary.command()
def check(
    recording: Annotated[Path, typer.Argument(help="A file written by `bakeoff canary record`.")],
    set_: SetOption = None,
    calls: Annotated[int, typer.Option(min=2, help="Number of calls.")] = 3,
    task: TaskOption = None,
    max_cost: MaxCost = None,
    as_json: JsonOption = False,
    metrics_file: MetricsOption = None,
) -> None:
    """Embed the texts again; exit code 1 if the model changed."""
    from bakeoff.extensions.production.canary import check as compare
    from bakeoff.extensions.production.canary import load

    known, watched = load(recording), _task(task)
    options = {**known.head.options, **parse_settings(set_, "base_url=http://127.0.0.1:8080/v1")}

    def run() -> Check:
        asked = _provider(known.head.provider, known.head.model, options)
        most = 2 * calls  # an alarm is confirmed by a second attempt
        _announce(asked, [*(list(known.head.texts) * most), *_texts_of(watched, documents=False)], max_cost, "at most ")
        try:
            return compare(known, asked, calls=calls, task=watched)
        finally:
            asked.close()

    deliver("canary", run, as_json=as_json, metrics_file=metrics_file)


def _task(name: str | None) -> Task | None:
    from bakeoff.tasks.load import load_task

    return load_task(name, Path()) if name else None


def _texts_of(task: Task | None, *, documents: bool = True) -> list[CanaryText]:
    from bakeoff_providers.base import Role

    from bakeoff.extensions.production.canary import CanaryText

    if task is None:
        return []
    queries = [CanaryText(query.text, Role.QUERY) for query in task.queries]
    return [*queries, *(CanaryText(document.whole()) for document in task.documents if documents)]


def _provider(name: str, model: str | None, options: dict[str, Any]) -> Provider:
    from bakeoff_providers import PROVIDERS
    from bakeoff_providers.base import Fitted

    PROVIDERS.check_options(name, options)
    kind = PROVIDERS.get(name)
    if kind.by_id or issubclass(kind, Fitted):
        raise InputError(f"{name} has no model that could change", remedy="name an embedding provider")
    if reason := kind.missing(**options):
        raise Unavailable(reason)
    return PROVIDERS.create(name, **({"model": model} if model else {}), **options)


def _announce(provider: Provider, texts: list[CanaryText], max_cost: float | None, most: str = "") -> None:
    """Print the cost before it is spent."""
    from bakeoff.extensions.production.canary import estimate

    tokens, dollars = estimate(texts, provider.card, 1)
    price = "price unknown" if dollars is None else f"about ${dollars:.4f}"
    say(
        f"embedding {most}{len(texts)} texts, about {tokens:.0f} tokens: {'free' if provider.local else price}",
        err=True,
    )
    if max_cost is not None and dollars is None and not provider.local:
        raise InputError("the price is unknown", place="--max-cost", remedy="give it as --set price=0.02")
    if max_cost is not None and dollars is not None and dollars > max_cost:
        raise InputError(
            f"this would cost about ${dollars:.4f}", place="--max-cost", remedy="raise the limit, or lower --calls"
        )
