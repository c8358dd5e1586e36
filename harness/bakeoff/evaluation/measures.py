"""The grammar of measures: `ndcg(gain=exp)@5` is one value with one spelling, parsed and printed alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

Gain = Literal["linear", "exp"]
Over = Literal["relevant", "found"]


class _Family(NamedTuple):
    """What one name accepts: its label, whether `@k` is required, optional or refused, and its options."""

    label: str
    cut: Literal["required", "optional", "refused"]
    options: tuple[str, ...]


FAMILIES = {
    "p": _Family("Precision", "required", ("rel",)),
    "recall": _Family("Recall", "optional", ("rel",)),
    "f1": _Family("F1", "required", ("rel",)),
    "ndcg": _Family("NDCG", "optional", ("gain",)),
    "map": _Family("MAP", "optional", ("over", "rel")),
    "mrr": _Family("MRR", "optional", ("rel",)),
    "acc": _Family("Accuracy", "required", ("rel",)),
    "rprec": _Family("R-Precision", "refused", ("rel",)),
    "judged": _Family("Judged", "required", ()),
}
ALIASES = {"ap": "map", "hit": "acc"}
_CHOICES = {"gain": ("linear", "exp"), "over": ("relevant", "found")}
_BLANKS = re.compile(r"\s*([(),=@])\s*")
_SPELLING = re.compile(r"(?P<name>\w+)(?:\((?P<options>[^()]*)\))?(?:@(?P<k>[^@]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure. `rel` is None where the task's own threshold counts; `k` is None for the whole ranking."""

    name: str
    k: int | None = None
    rel: int | None = None
    gain: Gain = "linear"
    over: Over = "relevant"

    def __post_init__(self) -> None:
        if self.name not in FAMILIES:
            raise InputError(f"unknown measure {self.name!r}", remedy=nearest(self.name, list(FAMILIES)))
        cut = FAMILIES[self.name].cut
        if cut == "required" and self.k is None:
            raise InputError(f"measure {self.name!r} needs a cut-off", remedy=f"write for example '{self.name}@10'")
        if cut == "refused" and self.k is not None:
            raise InputError(
                f"measure {self.name!r} takes no cut-off: it cuts at the number of relevant documents",
                remedy=f"write '{self.name}'",
            )
        if self.k is not None and self.k < 1:
            raise InputError(f"measure {self.name!r}: the cut-off {self.k} is below 1", remedy="give @1 or more")
        if self.rel is not None and self.rel < 1:
            raise InputError(
                f"measure {self.name!r}: rel={self.rel} would count grade 0 as relevant", remedy="give rel=1 or more"
            )
        for option, choices in _CHOICES.items():
            if getattr(self, option) not in choices:
                raise InputError(
                    f"measure {self.name!r}: {option}={getattr(self, option)} is unknown",
                    remedy=f"give {' or '.join(f'{option}={choice}' for choice in choices)}",
                )
        for option in self._given():
            _check_option(self.name, option)

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Reads one spelling; whatever it can't read it refuses with the remedy, never guesses."""
        match = _SPELLING.fullmatch(_BLANKS.sub(r"\1", text.strip()).lower())
        if match is None:
            raise InputError(f"{text!r} is not a measure", remedy="write it as name(option=value)@k, e.g. 'ndcg@10'")
        name = ALIASES.get(match["name"], match["name"])
        if name not in FAMILIES:
            known = [*FAMILIES, *ALIASES]
            raise InputError(f"unknown measure {match['name']!r} in {text!r}", remedy=nearest(match["name"], known))
        values = _options(text, name, match["options"] or "")
        return cls(
            name,
            k=None if match["k"] is None else _number(text, "the cut-off", match["k"]),
            rel=_number(text, "rel", values["rel"]) if "rel" in values else None,
            gain=cast(Gain, values.get("gain", "linear")),
            over=cast(Over, values.get("over", "relevant")),
        )

    def _given(self) -> dict[str, str]:
        """The options that differ from their defaults: only these are printed."""
        given: dict[str, str] = {}
        if self.gain != "linear":
            given["gain"] = self.gain
        if self.over != "relevant":
            given["over"] = self.over
        if self.rel is not None:
            given["rel"] = str(self.rel)
        return given

    def __str__(self) -> str:
        options = ",".join(f"{option}={value}" for option, value in self._given().items())
        return self.name + (f"({options})" if options else "") + (f"@{self.k}" if self.k else "")

    @property
    def label(self) -> str:
        """The spelling for people, as in table heads: `Precision@5`, `NDCG@10 (exponential gain)`."""
        notes = []
        if self.gain == "exp":
            notes.append("exponential gain")
        if self.over == "found":
            notes.append("over found")
        if self.rel is not None:
            notes.append(f"grade ≥ {self.rel}")
        head = FAMILIES[self.name].label + (f"@{self.k}" if self.k else "")
        return f"{head} ({', '.join(notes)})" if notes else head


def deepest(measures: Sequence[Measure]) -> int | None:
    """How deep rankings must be joined for these measures; None where one of them reads the whole ranking."""
    cuts = [measure.k for measure in measures]
    return None if None in cuts else max((cut for cut in cuts if cut is not None), default=None)


def _check_option(name: str, option: str) -> None:
    accepted = FAMILIES[name].options
    if option not in accepted:
        remedy = nearest(option, list(accepted)) if accepted else f"{name!r} takes no options"
        raise InputError(f"measure {name!r} has no option {option!r}", remedy=remedy)


def _options(text: str, name: str, written: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for part in written.split(",") if written else []:
        option, equals, value = part.partition("=")
        if not equals or not value:
            raise InputError(f"{text!r}: {part!r} is not an option", remedy="write options as name=value")
        if option in values:
            raise InputError(f"{text!r} gives {option!r} twice", remedy="keep one of them")
        _check_option(name, option)
        values[option] = value
    return values


def _number(text: str, what: str, written: str) -> int:
    if not (written.isascii() and written.isdigit() and len(written) < 10):
        raise InputError(f"{text!r}: {what} {written!r} is not a whole number", remedy="give a whole number from 1 on")
    return int(written)
