"""bakeoff.toml → a validated line-up: a task and its contenders, every name and option checked before anything runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.files import read_toml
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.contender import (
    Contender,
    ContenderEntry,
    FusionEntry,
    described,
    expanded,
    fused,
    labelled,
    names,
    within,
)
from bakeoff.search.stores import STORES

__all__ = ["Contender", "Lineup"]

DEFAULT_MEASURES = ("p@5", "recall@10", "f1@5", "mrr", "ndcg@10")
STANDARD_CUTS = (1, 3, 5, 10)


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
    fusion: list[FusionEntry] = []
    name: str = ""
    measures: list[str] = msgspec.field(default_factory=lambda: list(DEFAULT_MEASURES))
    primary: str = ""
    depth: int | None = None
    rounds: int = 3
    seed: int = 42
    categories: dict[str, str | Category] = {}


@dataclass(frozen=True, slots=True)
class Lineup:
    """A validated line-up."""

    name: str
    task: str | dict[str, Any]
    contenders: tuple[Contender, ...]
    measures: tuple[Measure, ...]
    primary: Measure
    depth: int | None
    rounds: int
    seed: int
    folder: Path
    categories: dict[str, str | Category] = dataclasses.field(default_factory=dict)
    overrides: dict[str, Any] = dataclasses.field(default_factory=dict)  # options of the task, from the command line

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
                if not any(name in names(contender) for contender in self.contenders):
                    known = sorted({known for contender in self.contenders for known in names(contender)})
                    raise InputError(f"--only {name!r} matches no contender", remedy=nearest(name, known))
            named = [contender for contender in kept if names(contender) & set(only)]
            parts = {part for contender in named if contender.fusion for part in contender.fusion.of}
            kept = tuple(contender for contender in kept if contender in named or contender.label in parts)
        if stores:
            for name in stores:
                STORES.get(name)
            kept = tuple(contender for contender in kept if contender.fusion or contender.store in stores)
        kept = _whole_fusions(kept, self.contenders)
        if not kept:
            raise InputError("no contender is left", remedy="ask for fewer restrictions")
        return replace(self, contenders=kept)

    def described(self) -> dict[str, Any]:
        """What goes into every result, so that it can be made again."""
        return {
            "name": self.name,
            "task": self.task,
            **({"overrides": self.overrides} if self.overrides else {}),
            "measures": [str(measure) for measure in self.measures],
            "primary": str(self.primary),
            "depth": self.depth,
            "rounds": self.rounds,
            "seed": self.seed,
            "contenders": [described(contender) for contender in self.contenders],
        }

    def all_measures(self) -> tuple[Measure, ...]:
        """What is computed and stored: the matrix's measures, and the standard ones at the standard cut-offs."""
        standard = [f"{name}@{k}" for name in ("p", "recall", "f1", "map", "ndcg") for k in STANDARD_CUTS]
        wanted = [*self.measures, self.primary, *map(Measure.parse, [*standard, "mrr", "map", "judged@10"])]
        return tuple(dict.fromkeys(wanted))


def _whole_fusions(kept: Sequence[Contender], everyone: Sequence[Contender]) -> tuple[Contender, ...]:
    """A fusion stays while all of its parts do, and comes along with them."""
    labels = {contender.label for contender in kept}
    return tuple(
        contender
        for contender in everyone
        if (set(contender.fusion.of) <= labels if contender.fusion else contender.label in labels)
    )


def _checked(content: LineupFile, path: Path) -> Lineup:
    if not content.contender:
        raise InputError("there is no [[contender]]", place="contender", remedy="name at least one")
    for setting in ("depth", "rounds"):
        if (given := getattr(content, setting)) is not None and given < 1:
            raise InputError("must be at least 1", place=setting)
    measures = tuple(dict.fromkeys(_measure(text, f"measures[{i}]") for i, text in enumerate(content.measures)))
    if not measures:
        raise InputError("there is no measure", place="measures", remedy=f"for example {list(DEFAULT_MEASURES)}")
    contenders: list[Contender] = []
    for place, entry in enumerate(content.contender):
        with within(f"contender[{place}]"):
            contenders += expanded(entry)
    contenders = labelled(contenders)
    fusions: list[Contender] = []
    for place, fusion in enumerate(content.fusion):
        with within(f"fusion[{place}]"):
            fusions.append(fused(fusion, contenders))
    return Lineup(
        name=content.name or path.stem,
        task=content.task,
        contenders=tuple(labelled([*contenders, *fusions])),
        measures=measures,
        primary=_measure(content.primary, "primary") if content.primary else _primary(measures),
        depth=content.depth,
        rounds=content.rounds,
        seed=content.seed,
        folder=path.parent,
        categories=content.categories,
    )


def _measure(text: str, place: str) -> Measure:
    with within(place):
        return Measure.parse(text)


def _primary(measures: Sequence[Measure]) -> Measure:
    """NDCG sees all grades, so it decides where the line-up does not say."""
    return next((measure for measure in measures if measure.name == "ndcg"), measures[0])
