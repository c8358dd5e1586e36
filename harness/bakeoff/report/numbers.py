"""Number formats of sentences and first screens; the matrix and exports have more digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUS = "−"
SHORT = {"Precision@": "P@", "Recall@": "R@", "Accuracy@": "Acc@"}
SMALL = 0.02  # smaller differences have a third decimal


def bound_above(value: float) -> str:
    """An upper bound, rounded up."""
    digits = _digits(value)
    return _plain(math.ceil(round(value * 10**digits, 6)) / 10**digits, digits)


def bound_below(value: float) -> str:
    """A lower bound, rounded down."""
    digits = _digits(value)
    return _plain(math.floor(round(value * 10**digits, 6)) / 10**digits, digits)


def difference(value: float) -> str:
    """A difference of two scores, without a plus sign."""
    return _plain(value, _digits(value))


def signed(value: float, text: str) -> str:
    """A figure with a plus sign if positive; `text` already has the minus."""
    return f"+{text}" if value > 0 else text


def interval(low: float, high: float) -> str:
    """Both ends, rounded outwards to two decimals."""
    return f"{_plain(math.floor(low * 100) / 100, 2)} to {_plain(math.ceil(high * 100) / 100, 2)}"


def milliseconds(value: float) -> str:
    """Two significant digits: two runs on an idle machine differ in the third."""
    if value <= 0:
        return "0"
    rounded = round(value, 1 - math.floor(math.log10(value)))
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(rounded)))}f}"


def times(factor: float) -> str:
    """Formats a factor, with one decimal below 2."""
    return f"{factor:.1f}×" if factor < 1.95 else f"{factor:,.0f}×"


def size(bytes_: float) -> str:
    """kB below 1,000 kB, then MB."""
    return f"{bytes_ / 1e3:,.0f} kB" if bytes_ < 999.5e3 else f"{bytes_ / 1e6:,.1f} MB"


def duration(seconds: float) -> str:
    """`5 s`, `3 min`, `1 h 20 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def about(low: int, high: int) -> str:
    """A range of numbers, rounded outwards: `about 30`, `about 30 to 60`."""
    step = 5 if high < 50 else 10 if high < 500 else 50 if high < 5000 else 500
    least, most = low // step * step, -(-high // step) * step
    return f"about {most:,}" if least <= 0 or least == most else f"about {least:,} to {most:,}"


def alternatives(names: Sequence[str]) -> str:
    """`a, b or c`; a longer list ends with the number of others."""
    return enumeration(names, word="or")


def enumeration(names: Sequence[str], most: int = 3, word: str = "and") -> str:
    """`a, b and c`; a longer list ends with the number of others."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} {word} {len(names) - most + 1} others"
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _digits(value: float) -> int:
    return 3 if abs(value) < SMALL else 2


def _plain(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text.replace("-", MINUS)


def short_label(label: str) -> str:
    """A measure's label for a narrow column."""
    for long, short in SHORT.items():
        label = label.replace(long, short)
    return label


def of_needs(clusters: int) -> str:
    """The number of needs behind the queries; empty if each query has its own."""
    return f" of {clusters:,} {'need' if clusters == 1 else 'needs'}" if clusters else ""
