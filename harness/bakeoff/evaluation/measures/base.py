"""The base class of measures: a value with one spelling, its per-query values and its expectation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from bakeoff_providers.errors import InputError
from bakeoff_providers.needs import Plugin
from bakeoff_providers.registry import nearest

from bakeoff.core.arrays import Values
from bakeoff.evaluation.graded_run import GradedRun
from bakeoff.evaluation.random_order import RandomOrder

Option = int | float | str
Rel = Annotated[int | None, "lowest relevant grade; default: the task's own"]


@dataclass(frozen=True)
class Measure(Plugin, ABC):
    """One measure. Every field besides `k` is an option of its spelling: `name(option=value)@k`.

    `k` is None for the whole ranking; an option `rel` is None for the task's own threshold. `trec_name` and
    `trec_cut_name` are trec_eval's names without and with a cut-off. `bounded` values are from 0 to 1. A `monotone`
    measure never falls when a document's grade rises. A `diagnostic` one shows how much is known, not who is better.
    One that `reads_dates` is NaN for queries that are not time-bound.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    cut: ClassVar[Literal["required", "optional", "refused"]] = "optional"
    trec_name: ClassVar[str | None] = None
    trec_cut_name: ClassVar[str | None] = None
    bounded: ClassVar[bool] = True
    monotone: ClassVar[bool] = False
    diagnostic: ClassVar[bool] = False
    reads_dates: ClassVar[bool] = False

    k: Annotated[int | None, "cut-off, written after @; default: the whole ranking"] = None

    @abstractmethod
    def values(self, run: GradedRun) -> Values:
        """One value per query of the run."""

    @abstractmethod
    def expected(self, order: RandomOrder) -> Values:
        """Per query, the expectation under a uniformly random order of the corpus, exact where possible."""

    def figure(self, mean: float) -> float:
        """Converts a mean to the reported figure. The function is increasing, so it applies to intervals too."""
        return mean

    def aggregate(self, values: Values) -> float:
        """The figure of a set of queries: their mean, unless overridden."""
        return self.figure(float(values.mean()))

    @property
    def condensed(self) -> bool:
        """Whether unjudged documents are removed from rankings first."""
        return False

    @property
    def depth_read(self) -> int | None:
        """How many places of a ranking it reads; None for all."""
        return None if self.condensed else self.k

    def __post_init__(self) -> None:
        if self.cut == "required" and self.k is None:
            raise InputError(f"measure {self.name!r} needs a cut-off", remedy=f"write for example '{self.name}@10'")
        if self.cut == "refused" and self.k is not None:
            raise InputError(
                f"measure {self.name!r} takes no cut-off",
                remedy=f"write '{self.name}'",
            )
        if self.k is not None and self.k < 1:
            raise InputError(f"measure {self.name!r}: the cut-off {self.k} is below 1", remedy="give @1 or more")
        for option, value in self.options.items():
            if option == "rel" and value is not None and value < 1:
                raise InputError(
                    f"measure {self.name!r}: rel={value} would count grade 0 as relevant", remedy="give rel=1 or more"
                )
            choices = choices_of(type(self), option)
            if choices and value not in choices:
                raise InputError(
                    f"measure {self.name!r}: {option}={value} is unknown",
                    remedy=f"give {' or '.join(f'{option}={choice}' for choice in choices)}",
                )

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Parses a spelling. Anything else is refused with a remedy, never guessed."""
        from bakeoff.evaluation.measures.grammar import parse

        return parse(text)

    @classmethod
    def of(cls, name: str, k: int | None = None, **options: Option | None) -> Measure:
        """A measure by name. An unknown option is an InputError."""
        from bakeoff.evaluation.measures import MEASURES

        family = MEASURES.get(name)
        for option in options:
            check_option(family, option)
        return family(k=k, **options)

    @property
    def options(self) -> dict[str, Any]:
        """All options with their values."""
        return {option: getattr(self, option) for option in options_of(type(self))}

    def __str__(self) -> str:
        options = ",".join(f"{option}={value}" for option, value in self._changed_options.items())
        return self.name + (f"({options})" if options else "") + (f"@{self.k}" if self.k else "")

    @property
    def label(self) -> str:
        """The display name, as in table headings: `Precision@5`, `NDCG@10 (exponential gain)`."""
        notes = [self.note(option, value) for option, value in self._changed_options.items()]
        head = self.title + (f"@{self.k}" if self.k else "")
        return f"{head} ({', '.join(notes)})" if notes else head

    def note(self, option: str, value: Option) -> str:
        """How the label shows a non-default option."""
        return f"grade ≥ {value}" if option == "rel" else f"{option} = {value}"

    @property
    def _changed_options(self) -> dict[str, Option]:
        """The non-default options. Only these are printed."""
        defaults = options_of(type(self))
        return {option: value for option, value in self.options.items() if value != defaults[option]}


@dataclass(frozen=True)
class CondensableMeasure(Measure):
    """A measure that can use condensed lists: `ndcg(unjudged=removed)@10` (Sakai, 2007)."""

    unjudged: Annotated[Literal["irrelevant", "removed"], "treatment of unjudged documents"] = "irrelevant"

    @property
    def condensed(self) -> bool:
        """Whether unjudged documents are removed instead of counted as irrelevant."""
        return self.unjudged == "removed"

    def note(self, option: str, value: Option) -> str:
        """Says that unjudged documents are removed."""
        return "condensed list" if option == "unjudged" else super().note(option, value)


@cache
def options_of(family: type[Measure]) -> dict[str, Any]:
    """A family's options with their defaults, in print order."""
    return {field.name: field.default for field in sorted(fields(family), key=lambda f: f.name) if field.name != "k"}


@cache
def type_of(family: type[Measure], option: str) -> Any:
    """A field's declared type."""
    return get_type_hints(family)[option]


def choices_of(family: type[Measure], option: str) -> tuple[Any, ...]:
    """The allowed values of an option; empty if it takes any number."""
    declared = type_of(family, option)
    return get_args(declared) if get_origin(declared) is Literal else ()


def check_option(family: type[Measure], option: str) -> None:
    """Refuses an option that the family does not have."""
    accepted = options_of(family)
    if option not in accepted:
        remedy = nearest(option, list(accepted)) if accepted else f"{family.name!r} takes no options"
        raise InputError(f"measure {family.name!r} has no option {option!r}", remedy=remedy)


def figure_of(measure: Measure, mean: float) -> float | None:
    """The figure of a mean; None if the mean is unknown."""
    return measure.figure(float(mean)) if math.isfinite(mean) else None


def deepest(measures: Sequence[Measure]) -> int | None:
    """The depth to which rankings must be joined; None if a measure reads the whole ranking."""
    cuts = [measure.depth_read for measure in measures]
    return None if None in cuts else max((cut for cut in cuts if cut is not None), default=None)


def primary_measure(measures: Sequence[Measure], named: str = "") -> Measure:
    """The deciding measure: the named one, else the first NDCG, which uses all grades, else the first eligible one."""
    ranking = [measure for measure in measures if not measure.diagnostic]
    default = next((measure for measure in ranking if measure.name == "ndcg"), (*ranking, *measures)[0])
    chosen = Measure.parse(named) if named else default
    check_decides(chosen, "let another measure decide, for example primary = 'ndcg@10'")
    return chosen


def check_decides(measure: Measure, remedy: str) -> None:
    """Refuses a diagnostic measure for comparing rows."""
    if measure.diagnostic:
        raise InputError(f"{measure} can't decide: it does not show which row ranks better", remedy=remedy)
