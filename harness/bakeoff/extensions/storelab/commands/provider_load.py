"""`bakeoff loadtest --provider`: an embedding endpoint in place of a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff_providers.errors import InputError, StoreError, Unavailable

from bakeoff.cli.shared_options import parse_repeated
from bakeoff.cli.streams import echo
from bakeoff.extensions.storelab.commands.store_files import write_sheet

if TYPE_CHECKING:
    from bakeoff_providers.base import Provider

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
    """Says what the test costs, then sends it; more than --max-cost is refused before anything is sent."""
    from bakeoff.calls.budget import Budget
    from bakeoff.extensions.storelab.provider_load import check_provider, estimate, load_provider, settings_of
    from bakeoff.extensions.storelab.provider_table import provider_sheet
    from bakeoff.report.console import Bars

    provider = _provider(name, model, options)
    try:
        check_provider(provider)
        settings = settings_of(batches or BATCHES, clients or CLIENTS, words or LENGTHS)
        expected = estimate(provider, settings, requests)
        cost = "no price is known" if expected.usd is None else f"about ${expected.usd:.4f}"
        echo(
            f"{len(settings)} settings, {expected.requests:,} requests, about {expected.tokens:,.0f} tokens: "
            f"{'runs here, for free' if provider.local else cost}",
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
        raise StoreError(f"no request was answered, so nothing was written\n  {measured.sentences[-1]}")
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
