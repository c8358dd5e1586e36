"""Model cards: what is known about a model, overridden by the line-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bakeoff_providers.base import TEXT, ModelCard, Price
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

Prompt = str | Mapping[str, str]  # a template, or {"name": one of the model's own}

FREE = Price(usd_per_million_tokens=0.0, seen="2026-11", source="runs on your own machine")

# Open models whose authors require prompts, by a part of the name: (document, query).
# The first match counts, so specific names come first. None: the model wants no prompt.
FAMILIES: tuple[tuple[str, tuple[str, str] | None], ...] = (
    ("nomic-embed-text", ("search_document: ", "search_query: ")),
    ("mxbai-embed-large", ("", "Represent this sentence for searching relevant passages: ")),
    ("e5-large-instruct", None),
    ("e5-mistral", None),
    ("e5-small", ("passage: ", "query: ")),
    ("e5-base", ("passage: ", "query: ")),
    ("e5-large", ("passage: ", "query: ")),
    ("embeddinggemma", ("title: none | text: ", "task: search result | query: ")),
    ("snowflake-arctic-embed2", ("", "query: ")),
    ("snowflake-arctic-embed-l-v2", ("", "query: ")),
    ("snowflake-arctic-embed-m-v2", ("", "query: ")),
    ("snowflake-arctic-embed", ("", "Represent this sentence for searching relevant passages: ")),
    ("bge-small-en", ("", "Represent this sentence for searching relevant passages: ")),
    ("bge-base-en", ("", "Represent this sentence for searching relevant passages: ")),
    ("bge-large-en", ("", "Represent this sentence for searching relevant passages: ")),
)

# Further prompts they were trained with, by their authors' names (from the models' cards).
_NAMED: tuple[tuple[str, dict[str, str]], ...] = (
    ("nomic-embed-text", {"clustering": "clustering: ", "classification": "classification: "}),
    (
        "embeddinggemma",
        {
            "question answering": "task: question answering | query: ",
            "fact checking": "task: fact checking | query: ",
            "code retrieval": "task: code retrieval | query: ",
            "classification": "task: classification | query: ",
            "clustering": "task: clustering | query: ",
            "sentence similarity": "task: sentence similarity | query: ",
        },
    ),
)


def price(usd: float, seen: str, source: str) -> Price:
    """A list price, with the month it was looked up."""
    return Price(usd_per_million_tokens=usd, seen=seen, source=source)


def family_prompts(model: str) -> tuple[str, str] | None:
    """The (document, query) prompts that an open model was trained with; None if unknown."""
    name = model.lower()
    return next((prompts for part, prompts in FAMILIES if part in name), None)


def find_card(model: str, cards: Sequence[ModelCard], otherwise: ModelCard) -> ModelCard:
    """The card of that name (ignoring a tag such as `:latest`), or an open one without dimensions."""
    for name in (model, model.partition(":")[0]):
        for card in cards:
            if card.name == name:
                return msgspec.structs.replace(card, name=model)
    document, query = family_prompts(model) or ("", "")
    named = next((prompts for part, prompts in _NAMED if part in model.lower()), {})
    return msgspec.structs.replace(
        otherwise, name=model, document_prompt=document, query_prompt=query, prompts={**otherwise.prompts, **named}
    )


def check_prompt(prompt: object, option: str) -> None:
    """Checks that a template has the text at most once, and that a table names one prompt."""
    if isinstance(prompt, str):
        if prompt.count(TEXT) > 1:
            raise InputError(f"has {TEXT} more than once", place=option, remedy="use it once")
    elif not (isinstance(prompt, Mapping) and set(prompt) == {"name"} and isinstance(prompt["name"], str)):
        raise InputError("is not a prompt", place=option, remedy=f'a text such as "query: {TEXT}", or {{ name = "…" }}')


def find_prompt(name: str, known: Mapping[str, str], model: str, option: str) -> str:
    """One of the model's own prompts, by name."""
    if name not in known:
        remedy = nearest(name, list(known)) if known else "give the text itself"
        raise InputError(f"{model} has no prompt called {name!r}", place=option, remedy=remedy)
    return known[name]


def _prompt_text(card: ModelCard, prompt: Prompt | None, option: str) -> str | None:
    if prompt is None:
        return None
    check_prompt(prompt, option)
    if isinstance(prompt, str):
        return prompt
    roles = (
        {"document": card.document_prompt, "query": card.query_prompt}
        if card.document_prompt or card.query_prompt
        else {}
    )
    return find_prompt(prompt["name"], {**roles, **card.prompts}, card.name, option)


def override_card(
    card: ModelCard,
    *,
    dimensions: int | None = None,
    context: int | None = None,
    document_prompt: Prompt | None = None,
    query_prompt: Prompt | None = None,
    batch_items: int | None = None,
    batch_tokens: int | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    price: float | None = None,
) -> ModelCard:
    """The card with the line-up's values. Impossible values are InputErrors."""
    counts = {
        "dimensions": dimensions,
        "context": context,
        "batch_items": batch_items,
        "batch_tokens": batch_tokens,
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
    }
    for option, value in counts.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InputError(f"{option} = {value!r} is not a whole number above 0")
    if price is not None and not 0 <= price < float("inf"):
        raise InputError(f"price = {price!r} is not an amount of USD per million tokens")
    _check_dimensions(card, dimensions)
    changes: dict[str, object] = {
        **counts,
        "document_prompt": _prompt_text(card, document_prompt, "document_prompt"),
        "query_prompt": _prompt_text(card, query_prompt, "query_prompt"),
    }
    if price is not None:
        changes["price"] = Price(usd_per_million_tokens=float(price), seen="given", source="line-up")
    return msgspec.structs.replace(card, **{name: value for name, value in changes.items() if value is not None})


def _check_dimensions(card: ModelCard, asked: int | None) -> None:
    if asked is None:
        return
    if card.output_dimensions and asked not in card.output_dimensions:
        known = ", ".join(str(value) for value in sorted(card.output_dimensions))
        raise InputError(f"{card.name} has no output of {asked} dimensions", remedy=f"choose from {known}")
    if not card.output_dimensions and card.dimensions is not None and asked > card.dimensions:
        raise InputError(
            f"{card.name} has {card.dimensions} dimensions, not {asked}", remedy=f"ask for {card.dimensions} or fewer"
        )
