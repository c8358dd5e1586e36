"""The grammar of measures: `ndcg(gain=exp)@5` has one spelling. trec_eval's spellings are read too."""

from __future__ import annotations

import re
from typing import Any

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.evaluation.measures import MEASURES, families
from bakeoff.evaluation.measures.base import Measure, check_option, choices_of, type_of

_BLANKS = re.compile(r"\s*([(),=@])\s*")
_SPELLING = re.compile(r"(?P<name>\w+)(?:\((?P<options>[^()]*)\))?(?:@(?P<k>[^@]+))?", re.ASCII)
_TREC_CUTS = re.compile(r"(?P<name>\w+?)[._](?P<cuts>\d+(?:,\d+)*)", re.ASCII)
_COMMA = re.compile(r",(?![^(]*\))")  # not inside parentheses


def parse(text: str) -> Measure:
    """Parses one measure in our spelling."""
    match = _SPELLING.fullmatch(_BLANKS.sub(r"\1", text.strip()).lower())
    if match is None:
        raise InputError(f"{text!r} is not a measure", remedy="write it as name(option=value)@k, e.g. 'ndcg@10'")
    name = match["name"]
    try:
        family = MEASURES.get(name)
    except InputError:
        raise InputError(f"unknown measure {name!r} in {text!r}", remedy=nearest(name, MEASURES.names())) from None
    options = _options(text, family, match["options"] or "")
    return family(k=None if match["k"] is None else _whole(text, "the cut-off", match["k"]), **options)


def measures_of(text: str) -> list[Measure]:
    """Measures separated by commas, or trec_eval's spellings (`ndcg_cut.5,10`, `P_10`, `recip_rank`)."""
    written = text.strip().lower()
    for family in families().values():
        if written == (family.trec_name or "").lower():
            return [family()]
    if match := _TREC_CUTS.fullmatch(written):
        for family in families().values():
            if match["name"] == (family.trec_cut_name or "").lower():
                return [parse(f"{family.name}@{cut}") for cut in match["cuts"].split(",")]
    return [parse(part) for part in _COMMA.split(text)]


def _options(text: str, family: type[Measure], written: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in written.split(",") if written else []:
        option, equals, value = part.partition("=")
        if not equals or not value:
            raise InputError(f"{text!r}: {part!r} is not an option", remedy="write options as name=value")
        if option in values:
            raise InputError(f"{text!r} gives {option!r} twice", remedy="keep one of them")
        check_option(family, option)
        values[option] = _value(text, family, option, value)
    return values


def _value(text: str, family: type[Measure], option: str, written: str) -> int | float | str:
    """Converts the text to the option's type. The measure itself checks choices."""
    if choices_of(family, option):
        return written
    if type_of(family, option) is float:
        return _number(text, option, written)
    return _whole(text, option, written)


def _whole(text: str, what: str, written: str) -> int:
    if not (written.isascii() and written.isdigit() and len(written) < 10):
        raise InputError(
            f"{text!r}: {what} {written!r} is not a whole number", remedy="give a whole number of 1 or more"
        )
    return int(written)


def _number(text: str, what: str, written: str) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", written, re.ASCII):
        raise InputError(f"{text!r}: {what} {written!r} is not a number", remedy="give a number such as 0.8")
    return float(written)
