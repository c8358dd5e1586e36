"""From entries of a line-up to rows, and back. One table may give rows of several types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

import msgspec
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import TEXT
from bakeoff_providers.cards import FAMILIES, check_prompt, family_prompts
from bakeoff_providers.code import file_reference
from bakeoff_providers.errors import BrokenPlugin, InputError
from bakeoff_providers.keys import is_secret_name, variables_in
from bakeoff_providers.options import REST
from bakeoff_providers.own import Own
from bakeoff_providers.registry import nearest
from bakeoff_providers.secrets import is_secret_variable

from bakeoff.embedding.chunking import ContenderChunking
from bakeoff.lineup.checks import (
    ADDRESSES,
    check_label,
    check_no_password,
    check_no_secrets,
    name_without_marks,
    safe_label,
)
from bakeoff.lineup.entries import ContenderEntry, FusionEntry, Prompt, PromptName, RerankEntry, StoreEntry
from bakeoff.search.fusion import Fusion
from bakeoff.search.rankers import RANKERS
from bakeoff.search.rerankers import RERANKERS
from bakeoff.search.retrievers import RETRIEVERS
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import HybridStore
from bakeoff.search.stores.existing import EXISTING
from bakeoff.search.variants import Variant
from bakeoff.systems import SYSTEMS
from bakeoff.systems.base import FieldRow, System, given_name
from bakeoff.systems.dense import Dense
from bakeoff.systems.embedding import EmbeddingRow, StoreRow
from bakeoff.systems.existing import ExistingRow
from bakeoff.systems.fused import Fused
from bakeoff.systems.given import GivenRow
from bakeoff.systems.hybrid import HYBRID, Hybrid
from bakeoff.systems.lexical import Lexical
from bakeoff.systems.reranked import Rerank, RerankedRow
from bakeoff.systems.retriever import RetrieverRow

SEED = "{seed}"

Stored = Mapping[str, Any]  # a row as a result stores it


@dataclass(frozen=True, slots=True)
class Key:
    """A setting that decides what rows a [[contender]] has; `takes` are the settings it allows.

    `entry_of` turns a stored row back into an entry.
    """

    about: str
    takes: frozenset[str]
    rows_of: Callable[[ContenderEntry], Sequence[System]]
    entry_of: Callable[[Stored], dict[str, Any]]


def contenders_of(entry: ContenderEntry) -> list[System]:
    """The rows of one [[contender]]; settings that its key does not allow are refused."""
    name = _key_of(entry)
    key, defaults = KEYS[name], ContenderEntry()
    for setting in msgspec.structs.fields(ContenderEntry):
        given = getattr(entry, setting.name) != getattr(defaults, setting.name)
        if given and setting.name not in key.takes | {name, "label"}:
            raise InputError(f"a {key.about} has no {setting.name}", place=setting.name, remedy="remove it")
    check_no_secrets(entry.options, "options")
    try:
        return list(key.rows_of(entry))
    except BrokenPlugin as error:
        return _broken_rows(entry, name, str(error))


def _broken_rows(entry: ContenderEntry, key: str, reason: str) -> list[System]:
    """A broken plug-in fails only the rows that use it; the entry's other stores are built."""
    if isinstance(entry.store, list) and len(entry.store) > 1:
        alone = (msgspec.structs.replace(entry, store=[store]) for store in entry.store)
        return [row for one in alone for row in contenders_of(one)]
    given = getattr(entry, key)
    name = entry.label or entry.model or (given if isinstance(given, str) else key)
    stores = entry.store if isinstance(entry.store, list) else [entry.store]
    named = [store if isinstance(store, str) else store.label or store.name for store in stores]
    return [unset_row("+".join([name, *named]), reason)]


def unset_rows(entry: ContenderEntry, reason: str) -> list[System]:
    """Placeholder rows, one per store, of a [[contender]] with an unset variable."""
    key = _key_of(entry)
    check_no_secrets(entry.options, "options")
    given = getattr(entry, key)
    name = name_without_marks(entry.label or entry.model or (given if isinstance(given, str) else key))
    if key != "provider" or variables_in(entry.provider) or entry.provider.startswith("file:"):
        return [unset_row(name, reason)]
    PROVIDERS.get(entry.provider)
    stores = [str(store) for store in (entry.store if isinstance(entry.store, list) else [entry.store])]
    return [
        Dense(
            f"{name}+{name_without_marks(store)}",
            name,
            provider=entry.provider,
            model=entry.model,
            options=entry.options,
            store=store,
            unset=reason,
        )
        for store in stores or ["exact"]
    ]


def unset_row(label: str, reason: str) -> System:
    """A placeholder row with a label and a reason."""
    name = name_without_marks(label)
    return GivenRow(name, name, unset=reason)


def table_of(row: Stored) -> tuple[str, dict[str, Any]]:
    """The table name and the entry that give exactly this stored row."""
    for table in ("fusion", "rerank"):
        if row.get(table):
            return table, {"label": row["name"], **row[table], "isolate": row.get("isolate")}
    key = next((key for name, key in KEYS.items() if row.get(name)), None)
    if key is None:  # rankings from Python: a result keeps them
        return "contender", {"label": row["name"], "answers": f"runs/{row['label']}.trec"}
    return "contender", {**key.entry_of(row), "isolate": row.get("isolate")}


def _key_of(entry: ContenderEntry) -> str:
    named = [key for key in KEYS if getattr(entry, key)]
    if len(named) != 1:
        raise InputError(f"name one of {', '.join(KEYS)}", remedy='for example provider = "minilm"')
    return named[0]


def _provider_rows(entry: ContenderEntry) -> list[EmbeddingRow]:
    """A row for each prompt, chunking, store, search and variant."""
    entry, own = _resolve_own_code(entry)
    name = entry.label or f"{entry.model or own or entry.provider}{'-tokens' * (entry.vectors == 'tokens')}"
    rows = []
    if entry.prompt and not {"query_prompt", REST} & {option.name for option in PROVIDERS.options(entry.provider)}:
        raise InputError(f"provider {entry.provider!r} takes no prompt", place="prompt", remedy="remove it")
    for prompted, prompt_options in _name_prompts(entry, name):
        options = {**entry.options, **prompt_options}
        PROVIDERS.check_options(entry.provider, options)
        if not issubclass(PROVIDERS.get(entry.provider), Own):
            _check_no_secret_cached(options)
        prompted_entry = msgspec.structs.replace(entry, options=options)
        for called, chunking in _name_chunkings(entry, prompted):
            for store, search, variant in product(_list_stores(entry), _list_searches(entry), _list_variants(entry)):
                rows.append(_build_row(prompted_entry, called, chunking, store, search, variant))
                check_no_secrets(store.options, "store.options")
    return rows


def _check_no_secret_cached(options: Mapping[str, Any]) -> None:
    """Options enter the stored cache key, which leaves out only secrets in addresses."""
    for option, value in options.items():
        secret = next(filter(is_secret_variable, variables_in(value)), None)
        if secret and option not in ADDRESSES and not is_secret_name(option):
            raise InputError(
                f"{secret} is the name of a secret, and the cache keeps this option",
                place=f"options.{option}",
                remedy="a provider reads its key from the environment (key_env names the variable)",
            )


def _resolve_own_code(entry: ContenderEntry) -> tuple[ContenderEntry, str]:
    """`file:mine.py:embed` is the provider `own` with these options; the function's name is its default label."""
    if not (reference := file_reference(entry.provider)):
        return entry, ""
    options = {"file": reference[0], "function": reference[1], **entry.options}
    provider = "own_hosted" if options.pop("hosted", False) else "own"
    return msgspec.structs.replace(entry, provider=provider, options=options), reference[1]


def _build_row(
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
        "isolate": entry.isolate,
    }
    if entry.vectors:
        return _row_type(entry)(**common, store_options=dict(store.options))
    if reading := store.reading():
        return ExistingRow(**common, existing=reading)
    row_type = Hybrid if search == HYBRID else Dense
    return row_type(**common, store_options=dict(store.options), variant=variant)


def _check_hybrid(store: StoreEntry) -> None:
    """Refuse stores without hybrid search, and existing indexes, which may hold no texts."""
    if store.reading():
        raise InputError("an existing index is searched only by vectors", place="search", remedy="remove it")
    if not issubclass(STORES.get(store.name), HybridStore):
        able = [name for name, known in STORES.load_all() if issubclass(known, HybridStore)]
        raise InputError(
            f"{store.name} has no hybrid search",
            place="search",
            remedy=f"use {', '.join(able)}, or fuse this row with one of BM25 in a [[fusion]]",
        )


def _list_stores(entry: ContenderEntry) -> list[StoreEntry]:
    row_type = _row_type(entry)
    named = entry.store if isinstance(entry.store, list) else [entry.store]
    named = named or [store for store in [row_type.default_store] if store]
    if not named:
        raise InputError("names no store", place="store", remedy='for example store = "faiss"')
    stores = [StoreEntry(store) if isinstance(store, str) else store for store in named]
    for store in stores:
        if entry.vectors:
            _check_plain(store, entry)
        if store.reading():
            _check_existing(store, entry)
        else:
            row_type.stores().check_options(store.name, store.options)
    return stores


def _row_type(entry: ContenderEntry) -> type[StoreRow]:
    """The row type that `vectors` names."""
    if not entry.vectors:
        return Dense
    row_type = SYSTEMS.get(entry.vectors)
    assert issubclass(row_type, StoreRow)
    return row_type


def _check_plain(store: StoreEntry, entry: ContenderEntry) -> None:
    """Token vectors are stored and searched in one way."""
    built = entry.dimensions or entry.precision != "float32" or _list_searches(entry) != ["vectors"]
    if built or store.reading():
        raise InputError(
            "vectors of tokens take no dimensions, no precision, no search and no existing index",
            place="vectors",
            remedy="remove them",
        )


def _check_existing(store: StoreEntry, entry: ContenderEntry) -> None:
    """An existing index takes no options, dimensions or precision."""
    EXISTING.get(store.name)
    if not store.existing:
        raise InputError(
            f"{next(iter(store.reading()))} configures an existing index, but none is named",
            place="store",
            remedy='existing = "./chroma_db"',
        )
    check_no_password(store.existing, "store.existing")
    if store.options or entry.dimensions or entry.precision != "float32":
        raise InputError(
            "an existing index takes no options, dimensions or precision", place="store", remedy="remove them"
        )


def _list_variants(entry: ContenderEntry) -> list[Variant]:
    """Dimensions × precisions; by default the model's own dimensions."""
    named = entry.dimensions if isinstance(entry.dimensions, list) else [entry.dimensions]
    if any(size < 1 for size in named):
        raise InputError("must be at least 1", place="dimensions")
    sizes: list[int | None] = [*named] or [None]
    precisions = entry.precision if isinstance(entry.precision, list) else [entry.precision]
    if not precisions:
        raise InputError("names no precision", place="precision", remedy='for example precision = "float32"')
    return [Variant(size, precision) for size, precision in product(sizes, precisions)]


def _list_searches(entry: ContenderEntry) -> list[str]:
    """Vector search, hybrid search, or both."""
    named = entry.search if isinstance(entry.search, list) else [entry.search]
    if not named:
        raise InputError("names no search", place="search", remedy='for example search = "hybrid"')
    return list(named)


def _name_chunkings(entry: ContenderEntry, name: str) -> Iterator[tuple[str, ContenderChunking | None]]:
    """Every chunking with its row name. A single one under a label adds nothing to the name."""
    given = entry.chunking if isinstance(entry.chunking, list) else [entry.chunking]
    if not given:
        yield name, None
    for chunking in given:
        yield (name if len(given) == 1 and entry.label else f"{name}@{chunking}"), chunking


def _name_prompts(entry: ContenderEntry, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every prompt as provider options, with its row name."""
    given = entry.prompt if isinstance(entry.prompt, list) else [entry.prompt]
    if not given:
        yield name, {}
    for number, prompt in enumerate(given, start=1):
        label, options = _resolve_prompt(prompt, number)
        yield (name if len(given) == 1 and entry.label else f"{name}@{label}"), options


def _resolve_prompt(prompt: str | Prompt, number: int) -> tuple[str, dict[str, Any]]:
    """`default` is the model's own, `none` is empty, others are model families such as `e5-base`."""
    if isinstance(prompt, Prompt):
        return _resolve_prompt_table(prompt, number)
    if prompt == "default":
        return "default", {}
    if prompt == "none":
        return "no-prompt", {"query_prompt": "", "document_prompt": ""}
    if not (known := family_prompts(prompt)):
        names = ["default", "none", *(name for name, prompts in FAMILIES if prompts)]
        raise InputError(f"there are no prompts called {prompt!r}", place="prompt", remedy=nearest(prompt, names))
    return prompt, {"query_prompt": known[1], "document_prompt": known[0]}


def _resolve_prompt_table(prompt: Prompt, number: int) -> tuple[str, dict[str, Any]]:
    if prompt.name and (prompt.query or prompt.document):
        raise InputError(
            "name is for queries and documents alike", place="prompt", remedy='query = { name = "…" } for one of them'
        )
    query, document = (PromptName(prompt.name),) * 2 if prompt.name else (prompt.query, prompt.document)
    names = [part.name for part in (query, document) if isinstance(part, PromptName)]
    label = prompt.label or ("-".join(dict.fromkeys(names)) if names else f"prompt{number}")
    return label, {
        "query_prompt": _format_prompt(query, "query"),
        "document_prompt": _format_prompt(document, "document"),
    }


def _format_prompt(prompt: str | PromptName, role: str) -> str | dict[str, str]:
    """A prompt as a provider option. A trailing `{text}` is dropped, so that equal prompts share vectors."""
    if isinstance(prompt, PromptName):
        return {"name": prompt.name}
    check_prompt(prompt, f"prompt.{role}")
    return prompt.removesuffix(TEXT)


def _provider_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """The label is the row's name without variant and store."""
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


def _ranker_rows(entry: ContenderEntry) -> list[System]:
    RANKERS.check_options(entry.ranker, entry.options)
    return [
        Lexical(
            name,
            name,
            ranker=entry.ranker,
            field=entry.field,
            options=dict(entry.options),
            chunking=chunking,
            isolate=entry.isolate,
        )
        for name, chunking in _name_chunkings(entry, entry.label or entry.ranker)
    ]


def _ranker_entry(row: Stored) -> dict[str, Any]:
    return {
        "label": row["name"],
        **{key: row.get(key) for key in ("ranker", "field", "options", "chunking", "isolate")},
    }


def _answers_rows(entry: ContenderEntry) -> list[System]:
    """One file, or one for each seed."""
    files = _by_seed(entry.answers, entry) if isinstance(entry.answers, dict) else _by_pattern(entry.answers, entry)
    name = entry.label or (_name_answers(entry.answers) if isinstance(entry.answers, str) else "")
    if not name:
        raise InputError("these answers need a label", place="label", remedy='for example label = "gru"')
    for seed in files:
        check_label(f"{name}-{seed}" if seed else name, f"label {name[:40]}…")  # each becomes a file of the result
    return [GivenRow(name, name, answers=files)]


def _by_pattern(pattern: str, entry: ContenderEntry) -> dict[str, str]:
    if bool(entry.seeds) != (SEED in pattern):
        raise InputError("seeds and {seed} go together", place="answers", remedy='answers = "model-{seed}.npy"')
    return {str(seed): pattern.replace(SEED, str(seed)) for seed in entry.seeds} or {"": pattern}


def _by_seed(files: Mapping[str, str], entry: ContenderEntry) -> dict[str, str]:
    if entry.seeds:
        raise InputError("the answers already have seeds", place="seeds", remedy="remove them")
    for seed in files:
        if not seed.removeprefix("-").isdecimal() or str(int(seed)) != seed:
            raise InputError(f"{seed!r} is not a seed", place="answers", remedy='answers = { 1 = "model-1.npy" }')
    return dict(files)


def _name_answers(pattern: str) -> str:
    return Path(pattern.replace(SEED, "")).stem.rstrip("-_.")


def _answers_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """A pattern that matches exactly these files, if there is one; otherwise each file with its seed."""
    files: dict[str, str] = row["answers"]
    first = next(iter(files))
    if not first:
        return {"label": row["name"], "answers": files[first]}
    head, _, tail = files[first].rpartition(first)
    for pattern in (files[first].replace(first, SEED), f"{head}{SEED}{tail}"):
        if SEED in pattern and all(pattern.replace(SEED, seed) == file for seed, file in files.items()):
            return {"label": row["name"], "answers": pattern, "seeds": [int(seed) for seed in files]}
    return {"label": row["name"], "answers": files}


def _retriever_rows(entry: ContenderEntry) -> list[System]:
    """A user's function or a search endpoint."""
    check_no_secrets({"retriever": entry.retriever}, "")
    settings, name = _read_retriever(entry.retriever)
    options = {key: value for key, value in settings.items() if key != "kind"} | entry.options
    RETRIEVERS.check_options(settings["kind"], options)
    RETRIEVERS.get(settings["kind"]).check(**options)
    label = entry.label or name
    retriever = {"kind": settings["kind"], **options}
    return [RetrieverRow(label, label, retriever=retriever, field=entry.field, isolate=entry.isolate)]


def _read_retriever(given: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The settings with the retriever's kind, and the default label."""
    if isinstance(given, str):
        if reference := file_reference(given):
            file, function = reference
            return {"kind": "function", "file": file, "function": function}, function
        if not given.startswith(("http://", "https://")):
            raise InputError(
                f"{given!r} is neither a function nor a URL",
                place="retriever",
                remedy='"file:mine.py:search" or { url = "http://…", body = …, ids = … }',
            )
        given = {"url": given}
    if "kind" in given:  # another package's
        return dict(given), str(given["kind"])
    if "url" in given:
        return {"kind": "http", **given}, _read_host(str(given["url"]))
    if "file" in given:
        return {"kind": "function", **given}, str(given.get("function") or PurePath(str(given["file"])).stem)
    forms = '"file:mine.py:search" for a function, or { url = "http://…", body = …, ids = … }'
    raise InputError("a retriever needs a url or a file", place="retriever", remedy=forms)


def _read_host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "http"
    except ValueError:  # refused by the check
        return "http"


def _retriever_entry(row: Stored) -> dict[str, Any]:
    ours = row["retriever"]["kind"] in RETRIEVERS.builtin
    retriever = {key: value for key, value in row["retriever"].items() if key != "kind" or not ours}
    return {"label": row["name"], "retriever": retriever, "field": row.get("field")}


def _system_rows(entry: ContenderEntry) -> list[System]:
    """A row of another package's type, whose fields are the options."""
    if entry.system in SYSTEMS.builtin:
        raise InputError(
            f"{entry.system!r} is a type of Bakeoff's own", place="system", remedy=f"name one of {', '.join(KEYS)}"
        )
    row_type = SYSTEMS.get(entry.system)
    SYSTEMS.check_options(entry.system, entry.options, whole=True)
    label = entry.label or entry.system
    return [row_type(label, label, **entry.options)]


def _system_entry(row: Stored) -> dict[str, Any]:
    return {"label": row["name"], "system": row["system"], "options": row.get("options")}


_OF_ADAPTERS = frozenset({"field", "options", "rerank", "isolate"})
KEYS = {
    "provider": Key(
        "provider",
        _OF_ADAPTERS | {"model", "store", "dimensions", "precision", "search", "vectors", "chunking", "prompt"},
        _provider_rows,
        _provider_entry,
    ),
    "ranker": Key("lexical ranker", _OF_ADAPTERS | {"chunking"}, _ranker_rows, _ranker_entry),
    "answers": Key("file of answers", frozenset({"seeds"}), _answers_rows, _answers_entry),
    "retriever": Key("retriever", _OF_ADAPTERS, _retriever_rows, _retriever_entry),
    "system": Key("system", frozenset({"options", "rerank"}), _system_rows, _system_entry),
}


def fusion_of(entry: FusionEntry, contenders: Sequence[System]) -> Fused:
    """The row of a [[fusion]]."""
    parts = tuple(_find_row(name, contenders).label for name in entry.of)
    fusion = Fusion(parts, tuple(entry.weights) or (1.0,) * len(parts), entry.c, entry.top_n, entry.method)
    label = entry.label or "+".join(entry.of) + ("" if entry.method == "rrf" else f"@{entry.method}")
    return Fused(label, label, fusion=fusion)


def rerank_of(entry: RerankEntry, contenders: Sequence[System]) -> System:
    """The row of a [[rerank]], or of `rerank` in a contender."""
    first = _find_row(entry.of, contenders)
    if entry.depth < 1:
        raise InputError("must be at least 1", place="depth")
    provider, options = entry.provider, dict(entry.options)
    if reference := file_reference(provider):
        provider, options = "own", {"file": reference[0], "function": reference[1], **options}
    if entry.vectors:
        provider, options = "maxsim", {"provider": provider, **options}
    try:
        RERANKERS.check_options(provider, options)
    except BrokenPlugin as error:
        return unset_row(entry.label or f"{first.label}+{provider}", str(error))
    name = entry.model.rstrip("/").rpartition("/")[2] or options.get("function") or entry.vectors or provider
    label = entry.label or f"{first.label}+{name}"
    rerank = Rerank(first.label, provider, entry.model, entry.depth, options)
    field = first.field if isinstance(first, FieldRow) else ""
    return RerankedRow(label, label, rerank=rerank, field=field, isolate=entry.isolate)


def within(entry: RerankEntry, rows: Sequence[System]) -> list[RerankEntry]:
    """One [[rerank]] entry per row of the contender. A label needs a single row."""
    if entry.of:
        raise InputError("of is the contender that it stands in", place="rerank", remedy="remove it")
    if entry.label and len(rows) > 1:
        raise InputError(f"one label for {len(rows)} rows", place="rerank", remedy="leave it out")
    return [msgspec.structs.replace(entry, of=row.label) for row in rows]


def _find_row(name: str, contenders: Sequence[System]) -> System:
    """Find a row by its label, or by an unambiguous shorter name."""
    matching = [c for c in contenders if c.label == name] or [c for c in contenders if name in c.names]
    if len(matching) != 1:
        problem = f"{name!r} fits {len(matching)} contenders" if matching else f"no contender is called {name!r}"
        raise InputError(problem, place="of", remedy=nearest(name, [contender.label for contender in contenders]))
    return matching[0]
