"""Rows of a provider: its vectors in each store, in each size and precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import msgspec
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import TEXT
from bakeoff_providers.cards import FAMILIES, check_prompt, family_prompts
from bakeoff_providers.code import file_reference
from bakeoff_providers.errors import InputError
from bakeoff_providers.keys import is_secret_name, variables_in
from bakeoff_providers.options import REST
from bakeoff_providers.own import Own
from bakeoff_providers.registry import nearest
from bakeoff_providers.secrets import is_secret_variable

from bakeoff.embedding.chunking import ContenderChunking
from bakeoff.lineup.checks import ADDRESSES, check_no_password, check_no_secrets
from bakeoff.lineup.entries import ContenderEntry, Prompt, PromptName, StoreEntry
from bakeoff.lineup.labels import safe_label
from bakeoff.search.stores import STORES
from bakeoff.search.stores.existing import EXISTING
from bakeoff.search.token_stores import TOKEN_STORES
from bakeoff.search.variants import Variant
from bakeoff.systems.base import given_name
from bakeoff.systems.dense import HYBRID, Dense
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.systems.existing import ExistingRow
from bakeoff.systems.tokens import Tokens


def provider_rows(entry: ContenderEntry) -> list[EmbeddingRow]:
    """A row for each prompt, chunking, store, search and variant."""
    entry, own = _own_code(entry)
    name = entry.label or f"{entry.model or own or entry.provider}{'-tokens' * (entry.vectors == 'tokens')}"
    rows = []
    if entry.prompt and not {"query_prompt", REST} & {option.name for option in PROVIDERS.options(entry.provider)}:
        raise InputError(f"provider {entry.provider!r} takes no prompt", place="prompt", remedy="remove it")
    for prompted, prompt_options in named_prompts(entry, name):
        options = {**entry.options, **prompt_options}
        PROVIDERS.check_options(entry.provider, options)
        if not issubclass(PROVIDERS.get(entry.provider), Own):
            _check_no_secret_cached(options)
        prompted_entry = msgspec.structs.replace(entry, options=options)
        for called, chunking in named_chunkings(entry, prompted):
            for store, search, variant in product(_stores(entry), _searches(entry), _variants(entry)):
                rows.append(_row(prompted_entry, called, chunking, store, search, variant))
                check_no_secrets(store.options, "store.options")
    return rows


def _check_no_secret_cached(options: Mapping[str, Any]) -> None:
    """Options are part of the cache key, which is stored. It leaves the secrets of addresses out."""
    for option, value in options.items():
        secret = next(filter(is_secret_variable, variables_in(value)), None)
        if secret and option not in ADDRESSES and not is_secret_name(option):
            raise InputError(
                f"{secret} is the name of a secret, and the cache keeps this option",
                place=f"options.{option}",
                remedy="a provider takes its key from the environment by itself (key_env names the variable)",
            )


def _own_code(entry: ContenderEntry) -> tuple[ContenderEntry, str]:
    """`file:mine.py:embed` is the provider `own` with these options; the function's name is its default label."""
    if not (reference := file_reference(entry.provider)):
        return entry, ""
    options = {"file": reference[0], "function": reference[1], **entry.options}
    provider = "own_hosted" if options.pop("hosted", False) else "own"
    return msgspec.structs.replace(entry, provider=provider, options=options), reference[1]


def _row(
    entry: ContenderEntry,
    name: str,
    chunking: ContenderChunking | None,
    store: StoreEntry,
    search: str,
    variant: Variant,
) -> EmbeddingRow:
    if search == HYBRID:
        _check_hybrid(store)
    name = f"{name}@{variant}" if str(variant) else name
    common: dict[str, Any] = {
        "label": f"{name}+{store.label or store.name}{f'-{HYBRID}' if search == HYBRID else ''}",
        "name": name,
        "field": entry.field,
        "provider": entry.provider,
        "model": entry.model,
        "store": store.name,
        "options": dict(entry.options),
        "chunking": chunking,
    }
    if entry.vectors:
        return Tokens(**common, store_options=dict(store.options))
    if reading := store.reading():
        return ExistingRow(**common, existing=reading)
    return Dense(
        **common,
        store_options=dict(store.options),
        variant=variant,
        search="" if search == "vectors" else search,
    )


def _check_hybrid(store: StoreEntry) -> None:
    """Only some engines rank by words as well, and an index that exists may hold no texts."""
    if store.reading():
        raise InputError("an index that exists is searched by vectors alone", place="search", remedy="remove it")
    if HYBRID not in STORES.get(store.name).search_kinds:
        able = [name for name, known in STORES.loaded() if HYBRID in known.search_kinds]
        raise InputError(
            f"{store.name} does no hybrid search of its own",
            place="search",
            remedy=f"use {', '.join(able)}, or fuse this row with one of BM25 in a [[fusion]]",
        )


def _stores(entry: ContenderEntry) -> list[StoreEntry]:
    named = entry.store if isinstance(entry.store, list) else [entry.store]
    if entry.vectors:
        return _token_stores(entry, named)
    if not named:
        raise InputError("names no store", place="store", remedy='for example store = "faiss"')
    stores = [StoreEntry(store) if isinstance(store, str) else store for store in named]
    for store in stores:
        if store.reading():
            _check_existing(store, entry)
        else:
            STORES.check_options(store.name, store.options)
    return stores


def _token_stores(entry: ContenderEntry, named: list[str | StoreEntry]) -> list[StoreEntry]:
    """Stores of their own; exact where none is named."""
    stores = [StoreEntry(store) if isinstance(store, str) else store for store in named or ["exact"]]
    built = entry.dimensions or entry.precision != "float32" or _searches(entry) != ["vectors"]
    if built or any(store.reading() for store in stores):
        raise InputError(
            "vectors of tokens take no dimensions, no precision, no search and no index that exists",
            place="vectors",
            remedy="remove them",
        )
    for store in stores:
        TOKEN_STORES.check_options(store.name, store.options)
    return stores


def _check_existing(store: StoreEntry, entry: ContenderEntry) -> None:
    """An index that exists has its options already, its dimensions and its precision too."""
    EXISTING.get(store.name)
    if not store.existing:
        raise InputError(
            f"{next(iter(store.reading()))} says how to read an index, but none is named",
            place="store",
            remedy='existing = "./chroma_db"',
        )
    check_no_password(store.existing, "store.existing")
    if store.options or entry.dimensions or entry.precision != "float32":
        raise InputError(
            "an index that exists takes no options, dimensions or precision", place="store", remedy="remove them"
        )


def _variants(entry: ContenderEntry) -> list[Variant]:
    """Every size in every precision; no size named means the model's own."""
    named = entry.dimensions if isinstance(entry.dimensions, list) else [entry.dimensions]
    if any(size < 1 for size in named):
        raise InputError("must be at least 1", place="dimensions")
    sizes: list[int | None] = [*named] or [None]
    precisions = entry.precision if isinstance(entry.precision, list) else [entry.precision]
    if not precisions:
        raise InputError("names no precision", place="precision", remedy='for example precision = "float32"')
    return [Variant(size, precision) for size, precision in product(sizes, precisions)]


def _searches(entry: ContenderEntry) -> list[str]:
    """By vectors, by words and vectors in the engine, or a row for each."""
    named = entry.search if isinstance(entry.search, list) else [entry.search]
    if not named:
        raise InputError("names no search", place="search", remedy='for example search = "hybrid"')
    return list(named)


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


def provider_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """Variant and store are part of the row's names: the label is what is left without them."""
    variant = msgspec.convert(row.get("variant", {}), Variant)
    name, ending = row["name"], f"-{row['search']}" if row.get("search") else ""
    return {
        "label": given_name(row),
        "provider": row["provider"],
        "model": row.get("model"),
        "field": row.get("field"),
        "store": _store_entry(row, row["label"].removeprefix(safe_label(name) + "+").removesuffix(ending)),
        "search": row.get("search"),
        "dimensions": variant.dimensions,
        "vectors": row.get("vectors"),
        "precision": None if variant.precision == "float32" else variant.precision,
        "options": row.get("options"),
        "chunking": row.get("chunking"),
    }


def _store_entry(row: Mapping[str, Any], label: str) -> str | dict[str, Any]:
    name = row["store"]
    settings = {} if label == name else {"label": label}
    if options := row.get("store_options"):
        settings["options"] = options
    settings |= row.get("existing", {})
    return {"name": name, **settings} if settings else str(name)
