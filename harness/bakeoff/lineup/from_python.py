"""Line-ups from Python values: functions, objects, names and dicts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Provider
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import convert
from bakeoff_providers.own import embeds
from bakeoff_providers.registry import nearest

from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure, primary_measure
from bakeoff.lineup.checks import check_labels, check_settings, safe_label, with_unique_labels
from bakeoff.lineup.entries import DEFAULT_MEASURES, ContenderEntry
from bakeoff.lineup.keys import contenders_of
from bakeoff.lineup.lineup import Lineup
from bakeoff.search.rankers import RANKERS
from bakeoff.systems.base import System
from bakeoff.systems.dense import Dense
from bakeoff.systems.given import GivenRow
from bakeoff.systems.retriever import RetrieverRow

_ROLES = ("role", "input_type", "kind")


def lineup_of(
    contenders: Mapping[str, Any],
    task: str | Path | Task | Mapping[str, Any],
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    primary: str = "",
    store: str = "faiss",
    rounds: int = 3,
    depth: int | None = None,
    seed: int = 42,
    baseline: str = "",
    name: str = "evaluation",
) -> Lineup:
    """A checked line-up of these values; each key is the label of its row."""
    if not contenders:
        raise InputError("there is not a contender", remedy='for example {"mine": my_embed, "bm25": "bm25"}')
    rows = [row for label, value in contenders.items() for row in _rows(str(label), value, store)]
    check_settings(name, depth, rounds, seed)
    rows = with_unique_labels(rows)
    check_labels(rows)
    chosen = tuple(dict.fromkeys(map(Measure.parse, measures)))
    if not chosen:
        raise InputError("there is no measure", remedy=f"for example {list(DEFAULT_MEASURES)}")
    lineup = Lineup(
        name=name,
        task=task_from_python(task),
        contenders=tuple(rows),
        measures=chosen,
        primary=primary_measure(chosen, primary),
        depth=depth,
        rounds=rounds,
        seed=seed,
        folder=Path(),
    )
    return lineup.with_baseline(baseline)


def _rows(label: str, value: Any, store: str) -> list[System]:
    try:
        if isinstance(value, str):
            return _build_rows(label, value, store)
        if isinstance(value, Mapping):
            return _from_mapping(label, value, store)
        return [_live(label, value, store)]
    except InputError as error:
        raise InputError(error.problem, place=f"{label} {error.place}".strip(), remedy=error.remedy) from None


def _build_rows(label: str, name: str, store: str) -> list[System]:
    """A provider, a ranker or a file by its name."""
    if name in RANKERS.names():
        return contenders_of(ContenderEntry(ranker=name, label=label))
    if name.startswith("file:") or name in PROVIDERS.names():
        rows = contenders_of(ContenderEntry(provider=name, label=label, store=store))
        return [_rename(row, label) for row in rows]
    raise InputError(f"unknown provider or ranker {name!r}", remedy=nearest(name, PROVIDERS.names() + RANKERS.names()))


def _from_mapping(label: str, value: Mapping[Any, Any], store: str) -> list[System]:
    """Scores by query and document are a run; other mappings are a [[contender]]."""
    if value and all(isinstance(scores, Mapping) for scores in value.values()):
        return [GivenRow(safe_label(label), label, live=value)]
    entry = convert(label, {"label": label, "store": store, **value}, ContenderEntry)
    if not entry.provider:
        entry = msgspec.structs.replace(entry, store=[])
    rows = contenders_of(entry)
    return [_rename(rows[0], label)] if len(rows) == 1 else rows


def _live(label: str, value: Any, store: str) -> System:
    """The parameters decide: `(texts)` and `(texts, role)` embed, `(text, k)` searches."""
    if embeds(value):
        provider = value.name if isinstance(value, Provider) and value.name in PROVIDERS.names() else "own"
        return Dense(safe_label(label), label, provider=provider, store=store, live=value)
    if not callable(value):
        raise InputError(
            f"{type(value).__name__} is not a contender",
            remedy="give a name, embed(texts), search(text, k), an embeddings object, or a dict of runs",
        )
    try:
        parameters = [p for p in inspect.signature(value).parameters.values() if p.kind is not p.VAR_KEYWORD]
    except (TypeError, ValueError):
        parameters = []
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    if len(parameters) < 2 or (len(required) < 2 and parameters[1].name != "k") or parameters[1].name in _ROLES:
        return Dense(safe_label(label), label, provider="own", store=store, live=value)
    if len(required) > 2:
        raise InputError(f"a function of {len(required)} parameters", remedy="embed(texts) or search(text, k)")
    return RetrieverRow(safe_label(label), label, retriever={"kind": "function"}, live=value)


def _rename(row: System, label: str) -> System:
    """A single row takes its key as label, without the store."""
    return replace(row, label=safe_label(label))


def task_from_python(given: str | Path | Task | Mapping[str, Any]) -> str | dict[str, Any] | Task:
    """A task, its name or folder, a BEIR folder without a task.toml, or BEIR's three dicts."""
    if isinstance(given, Task):
        return given
    if isinstance(given, Mapping):
        if set(given) >= {"corpus", "queries", "qrels"}:
            return Task.from_dicts(given["corpus"], given["queries"], given["qrels"])
        return dict(given)
    folder = Path(given)
    if (folder / "task.toml").is_file():
        return str(folder)
    if any((folder / f"corpus.jsonl{packed}").is_file() for packed in ("", ".gz")):
        return {"name": folder.resolve().name, "format": "beir", "folder": str(folder)}
    return str(given)
