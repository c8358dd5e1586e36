"""One row of the matrix: what a line-up's [[contender]] and [[fusion]] entries say, checked and named."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Provider
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.search.fusion import Fusion
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES
from bakeoff.search.variants import Precision, Variant


class StoreEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A store with options of its own; a bare name stands for one with none."""

    name: str
    label: str = ""
    options: dict[str, Any] = {}


class ContenderEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[contender]] of the file: a provider over one or more stores, a lexical ranker, or a file of answers."""

    provider: str = ""
    ranker: str = ""
    answers: str = ""
    model: str = ""
    label: str = ""
    field: str = ""
    store: str | StoreEntry | list[str | StoreEntry] = []
    dimensions: int | list[int] = []
    precision: Precision | list[Precision] = "float32"
    options: dict[str, Any] = {}
    seeds: list[int] = []


class FusionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[fusion]] of the file: contenders by their labels, and how much each of them counts."""

    label: str
    of: list[str]
    weights: list[float] = []
    c: float = 60.0
    top_n: int | None = None


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of the matrix. `name` is its label without the store."""

    label: str
    name: str = ""
    provider: str = ""
    ranker: str = ""
    model: str = ""
    store: str = ""
    field: str = ""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    store_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    variant: Variant = dataclasses.field(default_factory=Variant)
    answers: dict[str, str] = dataclasses.field(default_factory=dict)  # seed → file; "" where there is but one
    fusion: Fusion | None = None

    @property
    def kind(self) -> str:
        """What kind of row it is."""
        if self.provider:
            return "dense"
        return "lexical" if self.ranker else "given" if self.answers else "fused"

    def embedding(self) -> tuple[str, str, str, str]:
        """Contenders that are equal in this share their vectors."""
        options = msgspec.json.encode(dict(sorted(self.options.items()))).decode()
        return self.provider, self.model, self.field, options

    def missing(self) -> str | None:
        """What keeps this contender from running here, without asking any server."""
        if self.provider:
            return PROVIDERS.get(self.provider).missing(**self.options) or (
                STORES.get(self.store).missing(**self.store_options) if self.store else None
            )
        return RANKERS.get(self.ranker).missing() if self.ranker else None

    def create(self, folder: Path) -> Provider:
        """Its provider, with the files that its options name found beside the line-up."""
        options = located(self.provider, self.options, folder)
        return PROVIDERS.create(self.provider, **({"model": self.model} if self.model else {}), **options)


def located(provider: str, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The options with those that are files made paths from this folder on."""
    paths = PROVIDERS.get(provider).paths
    return {key: str(folder / Path(value).expanduser()) if key in paths else value for key, value in options.items()}


def names(contender: Contender) -> set[str]:
    """What --only and a fusion may call it by."""
    return {contender.label, contender.name, contender.provider, contender.ranker, contender.model} - {""}


def described(contender: Contender) -> dict[str, Any]:
    """Without the settings that do not apply: most contenders have few."""
    return {key: value for key, value in msgspec.to_builtins(contender).items() if value not in ("", {}, None)}


@contextmanager
def within(place: str) -> Iterator[None]:
    """Puts the place in the file before what is said about it."""
    try:
        yield
    except InputError as error:
        raise InputError(error.problem, place=f"{place} {error.place}".strip(), remedy=error.remedy) from None


def expanded(entry: ContenderEntry) -> list[Contender]:
    """One contender for each store."""
    if [bool(entry.provider), bool(entry.ranker), bool(entry.answers)].count(True) != 1:
        raise InputError(
            "name either a provider or a ranker (or a file of answers)", remedy='for example provider = "minilm"'
        )
    if entry.store and not entry.provider:
        raise InputError(
            f"a {'lexical ranker' if entry.ranker else 'file of answers'} has no store",
            place="store",
            remedy="remove it",
        )
    if entry.seeds and not entry.answers:
        raise InputError("seeds belong to a file of answers", place="seeds", remedy="remove them")
    if entry.ranker:
        RANKERS.check_options(entry.ranker, entry.options)
        name = entry.label or entry.ranker
        return [Contender(name, name, ranker=entry.ranker, field=entry.field, options=dict(entry.options))]
    if entry.answers:
        return [_given(entry)]
    PROVIDERS.check_options(entry.provider, entry.options)
    stores = entry.store if isinstance(entry.store, list) else [entry.store]
    if not stores:
        raise InputError("names no store", place="store", remedy='for example store = "faiss"')
    found = []
    name = entry.label or entry.model or entry.provider
    for store, variant in product(stores, _variants(entry)):
        chosen = StoreEntry(store) if isinstance(store, str) else store
        STORES.check_options(chosen.name, chosen.options)
        shown = f"{name}@{variant}" if str(variant) else name
        found.append(
            Contender(
                label=f"{shown}+{chosen.label or chosen.name}",
                name=shown,
                field=entry.field,
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


def _given(entry: ContenderEntry) -> Contender:
    """Answers that were made elsewhere: one file, or one for each seed."""
    if bool(entry.seeds) != ("{seed}" in entry.answers):
        raise InputError("seeds and {seed} go together", place="answers", remedy='answers = "model-{seed}.npy"')
    files = {str(seed): entry.answers.replace("{seed}", str(seed)) for seed in entry.seeds} or {"": entry.answers}
    name = entry.label or Path(entry.answers.replace("{seed}", "")).stem.rstrip("-_.")
    return Contender(name, name, answers=files)


def fused(entry: FusionEntry, contenders: Sequence[Contender]) -> Contender:
    """The parts by their labels; a shorter name will do where only one contender has it."""
    parts = []
    for name in entry.of:
        found = [c for c in contenders if c.label == name] or [c for c in contenders if name in names(c)]
        if len(found) != 1:
            labels = [contender.label for contender in contenders]
            problem = f"{name!r} fits {len(found)} contenders" if found else f"no contender is called {name!r}"
            raise InputError(problem, place="of", remedy=nearest(name, labels))
        parts.append(found[0].label)
    fusion = Fusion(tuple(parts), tuple(entry.weights) or (1.0,) * len(parts), entry.c, entry.top_n)
    return Contender(entry.label, entry.label, fusion=fusion)


def labelled(contenders: Sequence[Contender]) -> list[Contender]:
    """Labels name rows and files: they must be unique and safe to use in a path."""
    seen: set[str] = set()
    safe = [replace(contender, label=re.sub(r"[^\w.+@-]+", "-", contender.label)) for contender in contenders]
    for contender in safe:
        if contender.label in seen:
            raise InputError(f"two contenders are called {contender.label!r}", remedy="give one of them a label")
        seen.add(contender.label)
    return safe
