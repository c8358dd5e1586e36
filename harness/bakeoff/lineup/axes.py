"""Settings of a contender that may be lists: each value is a row of its own, and the row's name says which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bakeoff_providers.base import TEXT
from bakeoff_providers.cards import FAMILIES, check_prompt, family_prompts
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.embedding.contender_chunking import ContenderChunking
from bakeoff.lineup.entries import ContenderEntry, Prompt, PromptName


def named_chunkings(entry: ContenderEntry, name: str) -> Iterator[tuple[str, ContenderChunking | None]]:
    """Every way to cut, with the row's name; one that is alone under a label of its own adds nothing to the name."""
    given = entry.chunking if isinstance(entry.chunking, list) else [entry.chunking]
    if not given:
        yield name, None
    for chunking in given:
        yield (name if len(given) == 1 and entry.label else f"{name}@{chunking}"), chunking


def named_prompts(entry: ContenderEntry, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pair of prompts as options of the provider, with the row's name."""
    given = entry.prompt if isinstance(entry.prompt, list) else [entry.prompt]
    if not given:
        yield name, {}
    for number, prompt in enumerate(given, start=1):
        label, options = _options(prompt, number)
        yield (name if len(given) == 1 and entry.label else f"{name}@{label}"), options


def _options(prompt: str | Prompt, number: int) -> tuple[str, dict[str, Any]]:
    """By name: `default` is the model's own, `none` is none, else those of a family of models such as `e5-base`."""
    if isinstance(prompt, Prompt):
        return _of_table(prompt, number)
    if prompt == "default":
        return "default", {}
    if prompt == "none":
        return "no-prompt", {"query_prompt": "", "document_prompt": ""}
    if not (known := family_prompts(prompt)):
        names = ["default", "none", *(name for name, prompts in FAMILIES if prompts)]
        raise InputError(f"there are no prompts called {prompt!r}", place="prompt", remedy=nearest(prompt, names))
    return prompt, {"query_prompt": known[1], "document_prompt": known[0]}


def _of_table(prompt: Prompt, number: int) -> tuple[str, dict[str, Any]]:
    if prompt.name and (prompt.query or prompt.document):
        raise InputError(
            "name is for queries and documents alike", place="prompt", remedy='query = { name = "…" } for one of them'
        )
    query, document = (PromptName(prompt.name),) * 2 if prompt.name else (prompt.query, prompt.document)
    names = [part.name for part in (query, document) if isinstance(part, PromptName)]
    label = prompt.label or ("-".join(dict.fromkeys(names)) if names else f"prompt{number}")
    return label, {"query_prompt": _option(query, "query"), "document_prompt": _option(document, "document")}


def _option(prompt: str | PromptName, role: str) -> str | dict[str, str]:
    """As providers take it. A text at the end of a template needs no mark: equal prompts share their vectors."""
    if isinstance(prompt, PromptName):
        return {"name": prompt.name}
    check_prompt(prompt, f"prompt.{role}")
    return prompt.removesuffix(TEXT)
