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
from bakeoff_providers.errors import InputError

from bakeoff.lineup.values import json_safe
from bakeoff.search.fusion import Fusion
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES
from bakeoff.search.variants import Variant


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
    answers: dict[str, str] = dataclasses.field(default_factory=dict)  # seed → file; "" where there is only one
    fusion: Fusion | None = None

    @property
    def kind(self) -> str:
        """Where its rankings come from, as results name it."""
        if self.provider:
            return "dense"
        return "lexical" if self.ranker else "given" if self.answers else "fused"

    @property
    def names(self) -> set[str]:
        """What `--contender` and a fusion may call it by."""
        return {self.label, self.name, self.provider, self.ranker, self.model} - {""}

    def embedding(self) -> tuple[str, str, str, str]:
        """Contenders that are equal in this share their vectors."""
        options = msgspec.json.encode(json_safe(dict(sorted(self.options.items())))).decode()
        return self.provider, self.model, self.field, options

    def missing(self) -> str | None:
        """What keeps this contender from running here, without asking any server."""
        if self.provider:
            return PROVIDERS.get(self.provider).missing(**self.options) or (
                STORES.get(self.store).missing(**self.store_options) if self.store else None
            )
        return RANKERS.get(self.ranker).missing() if self.ranker else None

    def create(self, folder: Path) -> Provider:
        """Its provider; files that its options name are looked for beside the line-up."""
        options = resolve_paths(self.provider, self.options, folder)
        return PROVIDERS.create(self.provider, **({"model": self.model} if self.model else {}), **options)

    def to_dict(self) -> dict[str, Any]:
        """Without the settings that do not apply: most contenders have few."""
        settings = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {key: json_safe(value) for key, value in settings.items() if value not in ("", {}, None)}


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
