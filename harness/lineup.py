"""bakeoff.toml → a validated line-up: a task and its contenders, every name and option checked before anything runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from harness.files import read_toml
from harness.measures import Measure
from harness.rankers import RANKERS
from harness.stores import STORES
from harness.variants import Precision, Variant
from providers import PROVIDERS
from providers.errors import InputError
from providers.registry import nearest

DEFAULT_MEASURES = ("p@5", "recall@10", "f1@5", "mrr", "ndcg@10")
STANDARD_CUTS = (1, 3, 5, 10)


class StoreEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A store with options of its own; a bare name stands for one with none."""

    name: str
    label: str = ""
    options: dict[str, Any] = {}


class ContenderEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[contender]] of the file: a provider over one or more stores, or a lexical ranker."""

    provider: str = ""
    ranker: str = ""
    model: str = ""
    label: str = ""
    store: str | StoreEntry | list[str | StoreEntry] = []
    dimensions: int | list[int] = []
    precision: Precision | list[Precision] = "float32"
    options: dict[str, Any] = {}


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of query to make: what a model is told that it is about, and texts with gaps for the template maker.

    `of` names document categories: only documents of one of these are asked about.
    """

    about: str = ""
    templates: tuple[str, ...] = ()
    of: tuple[str, ...] = ()


class LineupFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it is written."""

    task: str | dict[str, Any]
    contender: list[ContenderEntry]
    name: str = ""
    measures: list[str] = msgspec.field(default_factory=lambda: list(DEFAULT_MEASURES))
    primary: str = ""
    depth: int = 100
    rounds: int = 3
    seed: int = 42
    categories: dict[str, str | Category] = {}


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of the matrix."""

    label: str
    provider: str = ""
    ranker: str = ""
    model: str = ""
    store: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    store_options: dict[str, Any] = field(default_factory=dict)
    variant: Variant = field(default_factory=Variant)

    def embedding(self) -> tuple[str, str, str]:
        """Contenders that are equal in this share their vectors."""
        return self.provider, self.model, msgspec.json.encode(dict(sorted(self.options.items()))).decode()

    def provider_options(self) -> dict[str, Any]:
        """What the provider is made with."""
        return {**({"model": self.model} if self.model else {}), **self.options}

    def missing(self) -> str | None:
        """What keeps this contender from running here, without asking any server."""
        if self.ranker:
            return RANKERS.get(self.ranker).missing()
        return PROVIDERS.get(self.provider).missing(**self.options) or STORES.get(self.store).missing(
            **self.store_options
        )


@dataclass(frozen=True, slots=True)
class Lineup:
    """A validated line-up."""

    name: str
    task: str | dict[str, Any]
    contenders: tuple[Contender, ...]
    measures: tuple[Measure, ...]
    primary: Measure
    depth: int
    rounds: int
    seed: int
    folder: Path
    categories: dict[str, str | Category] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path | str) -> Lineup:
        """Reads and checks a file; whatever is wrong with it is said with its place."""
        path = Path(path)
        content = read_toml(path, LineupFile)
        try:
            return _checked(content, path)
        except InputError as error:
            if error.file is not None:
                raise
            raise InputError(error.problem, file=path, place=error.place, remedy=error.remedy) from None

    def narrowed(self, only: Sequence[str] = (), stores: Sequence[str] = ()) -> Lineup:
        """The contenders that match any of the given names (label, provider, ranker or model) and stores."""
        kept = self.contenders
        if only:
            for name in only:
                if not any(name in _names(contender) for contender in self.contenders):
                    known = sorted({known for contender in self.contenders for known in _names(contender)})
                    raise InputError(f"--only {name!r} matches no contender", remedy=nearest(name, known))
            kept = tuple(contender for contender in kept if _names(contender) & set(only))
        if stores:
            for name in stores:
                STORES.get(name)
            kept = tuple(contender for contender in kept if contender.store in stores)
        if not kept:
            raise InputError("no contender is left", remedy="ask for fewer restrictions")
        return replace(self, contenders=kept)

    def described(self) -> dict[str, Any]:
        """What goes into every result, so that it can be made again."""
        return {
            "name": self.name,
            "task": self.task,
            "measures": [str(measure) for measure in self.measures],
            "primary": str(self.primary),
            "depth": self.depth,
            "rounds": self.rounds,
            "seed": self.seed,
            "contenders": [msgspec.to_builtins(contender) for contender in self.contenders],
        }

    def all_measures(self) -> tuple[Measure, ...]:
        """What is computed and stored: the matrix's measures, and the standard ones at the standard cut-offs."""
        standard = [f"{name}@{k}" for name in ("p", "recall", "f1", "map", "ndcg") for k in STANDARD_CUTS]
        wanted = [*self.measures, self.primary, *map(Measure.parse, [*standard, "mrr", "map", "judged@10"])]
        return tuple(dict.fromkeys(wanted))


def _names(contender: Contender) -> set[str]:
    return {contender.label, contender.provider, contender.ranker, contender.model} - {""}


def _checked(content: LineupFile, path: Path) -> Lineup:
    if not content.contender:
        raise InputError("there is no [[contender]]", place="contender", remedy="name at least one")
    for setting in ("depth", "rounds"):
        if getattr(content, setting) < 1:
            raise InputError("must be at least 1", place=setting)
    measures = tuple(dict.fromkeys(_measure(text, f"measures[{i}]") for i, text in enumerate(content.measures)))
    if not measures:
        raise InputError("there is no measure", place="measures", remedy=f"for example {list(DEFAULT_MEASURES)}")
    contenders: list[Contender] = []
    for place, entry in enumerate(content.contender):
        try:
            contenders += _expanded(entry)
        except InputError as error:
            raise InputError(
                error.problem, place=f"contender[{place}] {error.place}".strip(), remedy=error.remedy
            ) from None
    return Lineup(
        name=content.name or path.stem,
        task=content.task,
        contenders=_labelled(contenders),
        measures=measures,
        primary=_measure(content.primary, "primary") if content.primary else _primary(measures),
        depth=content.depth,
        rounds=content.rounds,
        seed=content.seed,
        folder=path.parent,
        categories=content.categories,
    )


def _measure(text: str, place: str) -> Measure:
    try:
        return Measure.parse(text)
    except InputError as error:
        raise InputError(error.problem, place=place, remedy=error.remedy) from None


def _primary(measures: Sequence[Measure]) -> Measure:
    """NDCG sees all grades, so it decides where the line-up does not say."""
    return next((measure for measure in measures if measure.name == "ndcg"), measures[0])


def _expanded(entry: ContenderEntry) -> list[Contender]:
    """One contender for each store."""
    if bool(entry.provider) == bool(entry.ranker):
        raise InputError("name either a provider or a ranker", remedy='for example provider = "minilm"')
    if entry.ranker:
        if entry.store:
            raise InputError("a lexical ranker has no store", place="store", remedy="remove it")
        RANKERS.check_options(entry.ranker, entry.options)
        return [Contender(entry.label or entry.ranker, ranker=entry.ranker, options=dict(entry.options))]
    PROVIDERS.check_options(entry.provider, entry.options)
    stores = entry.store if isinstance(entry.store, list) else [entry.store]
    if not stores:
        raise InputError("names no store", place="store", remedy='for example store = "faiss"')
    found = []
    name = entry.label or entry.model or entry.provider
    for store, variant in product(stores, _variants(entry)):
        chosen = StoreEntry(store) if isinstance(store, str) else store
        STORES.check_options(chosen.name, chosen.options)
        found.append(
            Contender(
                label=f"{name}{f'@{variant}' if str(variant) else ''}+{chosen.label or chosen.name}",
                provider=entry.provider,
                model=entry.model,
                store=chosen.name,
                options=dict(entry.options),
                store_options=dict(chosen.options),
                variant=variant,
            )
        )
    return found


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


def _labelled(contenders: list[Contender]) -> tuple[Contender, ...]:
    """Labels name rows and files: they must be unique and safe to use in a path."""
    seen: set[str] = set()
    safe = [replace(contender, label=re.sub(r"[^\w.+@-]+", "-", contender.label)) for contender in contenders]
    for contender in safe:
        if contender.label in seen:
            raise InputError(f"two contenders are called {contender.label!r}", remedy="give one of them a label")
        seen.add(contender.label)
    return tuple(safe)
