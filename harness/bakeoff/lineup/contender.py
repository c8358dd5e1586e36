"""One row of the matrix: what is asked for its rankings, and under which name."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Provider
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.keys import filled
from bakeoff_providers.own import Own
from bakeoff_providers.registry import nearest

from bakeoff.embedding.contender_chunking import ContenderChunking
from bakeoff.lineup.values import json_safe
from bakeoff.search.existing import EXISTING
from bakeoff.search.fusion import Fusion
from bakeoff.search.variants import Variant

NAMES_IT = {"names it": True}  # of settings by whose value a contender may be called


@dataclass(frozen=True, slots=True)
class Rerank:
    """A second stage: whose candidates, how many of them, and by which model."""

    of: str
    provider: str
    model: str = ""
    depth: int = 50
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of the matrix. `name` is its label without the store."""

    label: str = dataclasses.field(metadata=NAMES_IT)
    name: str = dataclasses.field(default="", metadata=NAMES_IT)
    provider: str = dataclasses.field(default="", metadata=NAMES_IT)
    ranker: str = dataclasses.field(default="", metadata=NAMES_IT)
    model: str = dataclasses.field(default="", metadata=NAMES_IT)
    store: str = ""
    field: str = ""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    store_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    existing: dict[str, str] = dataclasses.field(default_factory=dict)  # how to read an index that is there already
    variant: Variant = dataclasses.field(default_factory=Variant)
    vectors: str = ""  # "tokens": one for each token, compared by MaxSim
    search: str = ""  # "hybrid" where the store ranks by words as well
    answers: dict[str, str] = dataclasses.field(default_factory=dict)  # seed → file; "" where there is only one
    retriever: dict[str, Any] = dataclasses.field(default_factory=dict)  # where rankings are asked for: a file or a URL
    fusion: Fusion | None = None
    chunking: ContenderChunking | None = None
    rerank: Rerank | None = None
    live: Any = dataclasses.field(default=None, repr=False, compare=False)  # a function or object from Python
    unset: str = ""  # which variables its entry names that are not set: it can't run

    @property
    def names(self) -> set[str]:
        """What `--contender` and a fusion may call it by."""
        return names_of(self.to_dict())

    @property
    def made_of(self) -> tuple[str, ...]:
        """The labels of the rows that it asks."""
        return self.fusion.of if self.fusion else (self.rerank.of,) if self.rerank else ()

    @property
    def remote(self) -> bool:
        """Whether its rankings are asked of a server by URL."""
        return "url" in self.retriever

    def embedding(self) -> tuple[str, str, str, str]:
        """Contenders that are equal in this share their vectors."""
        options = msgspec.json.encode(json_safe(dict(sorted(self.options.items())))).decode()
        if self.live is not None:
            options += f" #{id(self.live)}"
        if self.chunking is not None:
            options += f" {msgspec.json.encode(self.chunking).decode()}"
        return self.provider, self.model, self.field, f"{options} {self.vectors}".strip()

    def create(self, folder: Path) -> Provider:
        """Its provider; files that its options name are looked for beside the line-up."""
        if self.unset:
            raise Unavailable(self.unset)
        options = resolve_paths(self.provider, self._filled_options(), folder)
        if isinstance(self.live, Provider):
            return self.live
        if self.live is not None:
            options["target"] = self.live
        return PROVIDERS.create(self.provider, **({"model": self.model} if self.model else {}), **options)

    def _filled_options(self) -> dict[str, Any]:
        """With the environment's values; code of one's own fills in what it gets, as its cache key must not hold it."""
        own = issubclass(PROVIDERS.get(self.provider), Own)
        declared = {option.name for option in PROVIDERS.options(self.provider)} if own else set(self.options)
        return {key: filled(value, secret=False) if key in declared else value for key, value in self.options.items()}

    def filled_store_options(self) -> dict[str, Any]:
        """With the environment's values, which no result may hold."""
        return {key: filled(value, secret=False) for key, value in self.store_options.items()}

    def existing_path(self, folder: Path) -> Path | None:
        """The file or folder of an index that exists, beside the line-up; None where it is on a server."""
        if "://" in self.existing["existing"] or not EXISTING.get(self.store).in_files:
            return None
        return folder / Path(self.existing["existing"]).expanduser()

    def existing_options(self, folder: Path) -> dict[str, str]:
        """How to open an index that exists, its path made absolute."""
        path = self.existing_path(folder)
        return {**self.existing, **({"existing": str(path)} if path else {})}

    def to_dict(self) -> dict[str, Any]:
        """Without the settings that do not apply: most contenders have few."""
        settings = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("live", "unset")
        }
        return {key: json_safe(value) for key, value in settings.items() if value not in ("", {}, None)}


def names_of(contender: Mapping[str, Any]) -> set[str]:
    """What a contender, as a line-up or a result describes it, may be called by."""
    keys = [setting.name for setting in dataclasses.fields(Contender) if setting.metadata == NAMES_IT]
    return {contender[key] for key in keys if contender.get(key)}


def called(wanted: Sequence[str], names: Mapping[str, set[str]]) -> list[str]:
    """The labels of the contenders that have any of these names; all where none is given. The rule of `--contender`."""
    for name in wanted:
        if not any(name in known for known in names.values()):
            every = sorted(set[str]().union(*names.values()))
            raise InputError(f"--contender {name!r} matches no contender", remedy=nearest(name, every))
    return [label for label, known in names.items() if not wanted or known & set(wanted)]


def resolve_paths(provider: str, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The options, with relative paths of files taken from this folder."""
    paths = PROVIDERS.get(provider).paths
    return {key: str(folder / Path(value).expanduser()) if key in paths else value for key, value in options.items()}


def safe_label(text: str) -> str:
    """Labels are part of file names: anything that might not be allowed there becomes a dash."""
    return re.sub(r"[^\w.+@-]+", "-", text)


def with_unique_labels(contenders: Sequence[Contender]) -> list[Contender]:
    """Labels name rows and files: they must be unique, and safe to use in a path."""
    seen: set[str] = set()
    safe = [replace(contender, label=safe_label(contender.label)) for contender in contenders]
    for contender in safe:
        if contender.label in seen:
            raise InputError(f"two contenders are called {contender.label!r}", remedy="give one of them a label")
        seen.add(contender.label)
    return safe


def short_names(contenders: Sequence[Contender]) -> dict[str, str]:
    """By label: the name without the store where only one contender has it, else the label."""
    names = [safe_label(contender.name or contender.label) for contender in contenders]
    return {
        contender.label: name if names.count(name) == 1 else contender.label
        for contender, name in zip(contenders, names, strict=True)
    }
