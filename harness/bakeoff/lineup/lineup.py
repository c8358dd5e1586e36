"""bakeoff.toml → a validated line-up: a task and its contenders, every name and option checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.clock import TimeLimits
from bakeoff.core.figures import STOP_WITHIN
from bakeoff.core.files import read_toml
from bakeoff.core.printable import some
from bakeoff.core.task import Task
from bakeoff.core.toml_values import json_safe, toml_value
from bakeoff.evaluation.measures import Measure, primary_measure
from bakeoff.lineup.checks import (
    Unset,
    check_labels,
    check_name,
    check_no_password,
    check_no_secrets,
    check_settings,
    fill_lineup,
    match_label,
    match_labels,
    with_unique_labels,
)
from bakeoff.lineup.entries import DEFAULT_MEASURES, Category, EngineEntry, LineupFile, RerankEntry, TaskEntry
from bakeoff.lineup.keys import contenders_of, fusion_of, rerank_of, table_of, unset_row, unset_rows, within
from bakeoff.search.stores import STORES
from bakeoff.systems.base import System

_SETTINGS = (
    "name",
    "task",
    "overrides",
    "measures",
    "primary",
    "depth",
    "rounds",
    "query_timeout",
    "build_timeout",
    "seed",
    "baseline",
    "stop_within",
    "equivalent_within",
    "role",
    "bases",
    "engine",
    "categories",
)


def read_lineup_file(path: Path) -> tuple[LineupFile, Unset]:
    """The content with variables filled in, and the rows whose variables are not set."""
    unset: Unset = {}
    return read_toml(path, LineupFile, lambda content: fill_lineup(content, unset)), unset


def lineup_text(lineup: Mapping[str, Any]) -> str:
    """The TOML of `Lineup.to_dict()`, one table per row: the same rows in the same order."""
    lines = _lines({key: lineup.get(key) for key in _SETTINGS})
    for row in lineup["contenders"]:
        heading, entry = table_of(row)
        lines += ["", f"[[{heading}]]", *_lines(entry)]
    return "\n".join(lines) + "\n"


def _lines(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {toml_value(value)}" for key, value in settings.items() if value is not None]


__all__ = ["DEFAULT_MEASURES", "Category", "Lineup"]

STANDARD_CUTS = (1, 3, 5, 10)


@dataclass(frozen=True, slots=True)
class Lineup:
    """A validated line-up."""

    name: str
    task: str | dict[str, Any] | Task
    contenders: tuple[System, ...]
    measures: tuple[Measure, ...]
    primary: Measure
    depth: int | None
    rounds: int
    seed: int
    folder: Path
    baseline: str = ""
    stop_within: float = STOP_WITHIN
    equivalent_within: float | None = None
    tasks: tuple[TaskEntry, ...] = ()
    role: str = ""
    bases: dict[str, str] = dataclasses.field(default_factory=dict)
    categories: dict[str, str | Category] = dataclasses.field(default_factory=dict)
    overrides: dict[str, Any] = dataclasses.field(default_factory=dict)  # instead of the task's own options
    engine: EngineEntry = dataclasses.field(default_factory=EngineEntry)
    limits: TimeLimits = dataclasses.field(default_factory=TimeLimits)
    file: str = ""  # file name, for suggested commands; "" if made in Python

    @classmethod
    def read(cls, path: Path | str) -> Lineup:
        """Read and check a file; errors name the file and the place."""
        path = Path(path)
        try:
            return _build_lineup(*read_lineup_file(path), path)
        except InputError as error:
            if error.file is not None:
                raise
            raise InputError(error.problem, file=path, place=error.place, remedy=error.remedy) from None

    def __repr__(self) -> str:
        return f"Lineup({self.name!r}: {some([contender.label for contender in self.contenders], 10)})"

    def narrow(self, only: Sequence[str] = (), stores: Sequence[str] = ()) -> Lineup:
        """Keep contenders that match any of these names (label, provider, ranker or model) and stores."""
        kept = self.contenders
        if only:
            labels = set(match_labels(only, {contender.label: contender.names for contender in self.contenders}))
            named = [contender for contender in kept if contender.label in labels]
            parts = _collect_parts(named, self.contenders)
            kept = tuple(contender for contender in kept if contender in named or contender.label in parts)
        if stores:
            for name in stores:
                STORES.get(name)
            kept = tuple(c for c in kept if c.made_of or c.identity.store in stores)
        kept = _whole_fusions(kept, self.contenders)
        if not kept:
            raise InputError("no contender is left", remedy="remove a restriction")
        return replace(self, contenders=kept)

    def with_baseline(self, name: str) -> Lineup:
        """Set the incumbent by name; unchanged if the name is empty."""
        if not name:
            return self
        return replace(self, baseline=match_label(name, {one.label: one.names for one in self.contenders}))

    def per_task(self) -> list[Lineup]:
        """One line-up per task."""
        if not self.tasks:
            return [self]
        return [
            replace(
                self,
                name=_result_name(self.name, _task_name(entry)),
                task=_name_task(entry),
                role=entry.role,
                tasks=(),
            )
            for entry in self.tasks
        ]

    def task_names(self) -> list[str]:
        """Names of several tasks, in the order of `per_task`; empty for one task."""
        return [_task_name(entry) for entry in self.tasks]

    def to_dict(self) -> dict[str, Any]:
        """As stored in results; `lineup_text` turns it back into a file."""
        return {
            "name": self.name,
            "task": json_safe(_task_in_result(self.task)),
            **({"overrides": json_safe(self.overrides)} if self.overrides else {}),
            "measures": [str(measure) for measure in self.measures],
            "primary": str(self.primary),
            "depth": self.depth,
            "rounds": self.rounds,
            "seed": self.seed,
            **({"query_timeout": self.limits.query} if self.limits.query != TimeLimits().query else {}),
            **({"build_timeout": self.limits.build} if self.limits.build != TimeLimits().build else {}),
            **({"role": self.role} if self.role else {}),
            **({"bases": dict(self.bases)} if self.bases else {}),
            **({"baseline": self.baseline} if self.baseline else {}),
            **({"stop_within": self.stop_within} if self.stop_within != STOP_WITHIN else {}),
            **({"equivalent_within": self.equivalent_within} if self.equivalent_within is not None else {}),
            **({"engine": json_safe(self.engine)} if self.engine != EngineEntry() else {}),
            **({"categories": json_safe(self.categories)} if self.categories else {}),
            "contenders": [contender.to_dict() for contender in self.contenders],
        }

    def all_measures(self) -> tuple[Measure, ...]:
        """All stored measures: the matrix's and the standard ones at standard cut-offs."""
        standard = [f"{name}@{k}" for name in ("p", "recall", "f1", "map", "ndcg") for k in STANDARD_CUTS]
        wanted = [*self.measures, self.primary, *map(Measure.parse, [*standard, "mrr", "map", "judged@10"])]
        return tuple(dict.fromkeys(wanted))


def _task_in_result(task: str | dict[str, Any] | Task) -> str | dict[str, Any]:
    """A task made in Python can't be loaded again; only its name is stored."""
    return {"name": task.name, "format": "memory"} if isinstance(task, Task) else task


def _task_name(entry: TaskEntry) -> str:
    """The given name, or the task folder's."""
    if isinstance(entry.task, str):
        path = Path(entry.task)
        return entry.name or (path.parent.name if path.suffix == ".toml" else path.name)
    return entry.name or str(entry.task.get("name") or entry.task.get("dataset") or entry.task.get("folder", "task"))


def _result_name(lineup: str, task: str) -> str:
    """The result's name for one of several tasks."""
    return f"{lineup}-{task}"


def _name_task(entry: TaskEntry) -> str | dict[str, Any]:
    return entry.task if isinstance(entry.task, str) else {**entry.task, "name": _task_name(entry)}


def _check_tasks(content: LineupFile, lineup: str, labels: Sequence[str]) -> None:
    """Check for one task or several with distinct names, and that bases are contenders."""
    if (content.task is not None) == bool(content.tasks):
        problem = "there is a task and [[tasks]]" if content.tasks else "there is no task"
        raise InputError(problem, place="task", remedy='write task = "wikipedia", or several [[tasks]]')
    names = [_task_name(entry) for entry in content.tasks]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two tasks are called {twice[0]!r}", place="tasks", remedy="give them names")
    for task in names:
        check_name(_result_name(lineup, task), "tasks")
    for label, base in content.bases.items():
        for name in (label, base):
            if name not in labels:
                raise InputError(f"no contender is called {name!r}", place="bases", remedy=nearest(name, list(labels)))


def _collect_parts(named: Sequence[System], everyone: Sequence[System]) -> set[str]:
    """Labels of these rows and, recursively, of those they are built on."""
    labels = {contender.label for contender in named}
    while more := {part for c in everyone if c.label in labels for part in c.made_of} - labels:
        labels |= more
    return labels


def _whole_fusions(kept: Sequence[System], everyone: Sequence[System]) -> tuple[System, ...]:
    """Keep a composite row exactly if all of its parts are kept."""
    labels = {contender.label for contender in kept if not contender.made_of}
    for contender in everyone:
        if contender.made_of and set(contender.made_of) <= labels:
            labels.add(contender.label)
    return tuple(contender for contender in everyone if contender.label in labels)


@contextmanager
def _within(place: str) -> Iterator[None]:
    """Prefix errors with their place in the file."""
    try:
        yield
    except InputError as error:
        inner = f"{place}, {error.place}" if error.place else place
        raise InputError(error.problem, place=inner, remedy=error.remedy) from None


def _build_lineup(content: LineupFile, unset: Unset, path: Path) -> Lineup:
    if not content.contender:
        raise InputError("no [[contender]]", place="contender", remedy="name at least one")
    name = content.name or path.stem
    check_settings(name, content.depth, content.rounds, content.seed)
    if content.engine.workers < 0 or content.engine.gpus_per_worker < 0:
        raise InputError("must be 0 or more", place="engine workers, gpus_per_worker", remedy="0 uses all")
    check_no_secrets({"task": content.task, "overrides": content.overrides}, "")
    check_no_secrets({f"tasks[{place}]": entry.task for place, entry in enumerate(content.tasks)}, "")
    check_no_password(content.engine.address, "engine.address")
    check_no_password(content.engine.shards, "engine.shards")
    if content.equivalent_within is not None and not content.equivalent_within > 0:
        raise InputError("must be above 0", place="equivalent_within", remedy="give for example 0.02")
    for setting, example in (("stop_within", 0.05), ("query_timeout", 60), ("build_timeout", 3600)):
        if not getattr(content, setting) > 0:
            raise InputError("must be above 0", place=setting, remedy=f"give for example {example}")
    measures = tuple(dict.fromkeys(_measure(text, f"measures[{i}]") for i, text in enumerate(content.measures)))
    if not measures:
        raise InputError("there is no measure", place="measures", remedy=f"for example {list(DEFAULT_MEASURES)}")
    with _within("primary"):
        primary = primary_measure(measures, content.primary)
    contenders: list[System] = []
    second_stages: list[RerankEntry] = []
    for place, entry in enumerate(content.contender):
        with _within(f"contender[{place}]"):
            lacking = unset.get(("contender", place))
            rows = unset_rows(entry, lacking) if lacking else contenders_of(entry)
            check_labels(rows)
            contenders += rows
            given = entry.rerank if isinstance(entry.rerank, list) else [entry.rerank]
            second_stages += [stage for rerank in given for stage in within(rerank, with_unique_labels(rows))]
    contenders = with_unique_labels(contenders)
    fusions: list[System] = []
    for place, fusion in enumerate(content.fusion):
        with _within(f"fusion[{place}]"):
            lacking = unset.get(("fusion", place))
            fusions.append(unset_row(fusion.label or "fusion", lacking) if lacking else fusion_of(fusion, contenders))
            check_labels(fusions[-1:])
    reranked: list[System] = []
    for place, rerank in enumerate([*second_stages, *content.rerank], start=-len(second_stages)):
        with _within(f"rerank[{place}]" if place >= 0 else f"the rerank of {rerank.of}"):
            check_no_secrets(rerank.options, "options")
            lacking = unset.get(("rerank", place))
            label = rerank.label or f"{rerank.of}+{rerank.model or rerank.provider}"
            reranked.append(unset_row(label, lacking) if lacking else rerank_of(rerank, [*contenders, *fusions]))
            check_labels(reranked[-1:])
    _check_tasks(content, name, [row.label for row in [*contenders, *fusions, *reranked]])
    lineup = Lineup(
        name=name,
        task=content.tasks[0].task if content.task is None else content.task,
        tasks=tuple(content.tasks),
        role=content.role,
        bases=content.bases,
        contenders=tuple(with_unique_labels([*contenders, *fusions, *reranked])),
        measures=measures,
        primary=primary,
        depth=content.depth,
        rounds=content.rounds,
        seed=content.seed,
        folder=path.parent,
        stop_within=content.stop_within,
        equivalent_within=content.equivalent_within,
        categories=content.categories,
        overrides=content.overrides,
        engine=content.engine,
        limits=TimeLimits(content.query_timeout, content.build_timeout),
        file=path.name,
    )
    return lineup.with_baseline(content.baseline)


def _measure(text: str, place: str) -> Measure:
    with _within(place):
        return Measure.parse(text)
