"""Chat models at the command line: how they are named and set, and what they used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.shared_options import parse_settings, say
from bakeoff.core.printable import counted

if TYPE_CHECKING:
    from bakeoff.calls.ask import Asker
    from bakeoff.calls.paid import Usage

ModelOption = Annotated[
    list[str] | None, typer.Option("--model", help="A chat model: ollama:llama3.1, gemini:…, openai:…")
]
ChatOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="An option of the model, as temperature=0.7 or price_in=0.15; may be repeated."),
]


def chat_askers(specs: list[str], given: list[str] | None, max_cost: float | None, offline: bool) -> list[Asker]:
    """The models behind one budget and the cache of answers."""
    from bakeoff_providers.weights import home

    from bakeoff.calls.ask import make_asker
    from bakeoff.calls.budget import Budget

    budget: Budget | None = Budget(max_cost) if max_cost is not None else None
    options = parse_settings(given, "temperature=0.7")
    return [make_asker(spec, options, answers=home() / "answers", budget=budget, offline=offline) for spec in specs]


def echo_usage(usage: Usage) -> None:
    """What the answers took, in one line."""
    say(
        f"{counted(usage.asked, 'answer')}: {usage.cached} from the cache, {counted(usage.requests, 'request')} "
        f"({usage.unusable} unusable), {usage.tokens:.0f} + {usage.answer_tokens:.0f} tokens, {_dollars(usage)}"
    )


def echo_estimate(usage: Usage) -> None:
    """What asking would take."""
    say(
        f"dry run: {counted(usage.asked, 'answer')}, {usage.cached} in the cache, {usage.requests} to ask for: about "
        f"{usage.tokens:.0f} + {usage.answer_tokens:.0f} tokens, {_dollars(usage)}"
    )


def _dollars(usage: Usage) -> str:
    if usage.usd is None:
        return "price unknown (give price_in and price_out)"
    return f"${usage.usd:.4f}" if usage.usd else "free"
