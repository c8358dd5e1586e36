"""Pairs of contenders as a table: the same columns wherever two things are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bakeoff.core.figures import PairedDifference
from bakeoff.evaluation.measures import Measure
from bakeoff.report.matrix import DOUBT
from bakeoff.statistics.constants import ALPHA

if TYPE_CHECKING:
    from bakeoff.report.grid import Grid

MOST_DOUBTS = 5  # said below the table; each pair has its mark
ALIKE = (
    f"{0:+.4f} with an interval: no query differs; the interval is what other queries might still show, "
    "wide where there are few."
)


def pairs_table(
    pairs: Sequence[PairedDifference], measure: Measure, means: Mapping[str, float], relations: Sequence[str] = ()
) -> Grid:
    """A row for each pair; a difference that Holm's correction leaves significant stands out.

    `relations` say in a word what a is to b, where a margin of equivalence was given.
    """
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.prose import Prose

    figures = ("mean a", "mean b", "difference [95%]", "p", "p (Holm)", "effect", "wins/ties/losses")
    table = Grid(["a", "b", *(Figures(head) for head in figures), *(["a is"] if relations else [])])
    table.title, table.keys = f"{measure.label}, a − b", 2
    for at, pair in enumerate(pairs):
        style = "bold" if pair.p_holm <= ALPHA else ""
        cells = (
            pair.a,
            pair.b,
            f"{means[pair.a]:.4f}",
            f"{means[pair.b]:.4f}",
            with_interval(pair) + (f" {DOUBT}" if pair.doubt else ""),
            p_text(pair.p),
            p_text(pair.p_holm),
            "–" if pair.effect is None else f"{pair.effect:+.2f}",
            f"{pair.wins}/{pair.ties}/{pair.losses}",
            *relations[at : at + 1],
        )
        table.add_row(*(Text(cell, style=style) for cell in cells))
    if doubts := [f"{DOUBT} {pair.a}, {pair.b}: {pair.doubt}" for pair in pairs if pair.doubt]:
        shown = [
            *doubts[:MOST_DOUBTS],
            *([f"… and {len(doubts) - MOST_DOUBTS} more"] if len(doubts) > MOST_DOUBTS else []),
        ]
        table.caption = Prose("\n".join(shown), "yellow")
    return table


def with_interval(pair: PairedDifference, digits: int = 4) -> str:
    """The difference and its interval, where it has one."""
    if pair.low is None or pair.high is None:
        return f"{pair.difference:+.{digits}f}"
    return f"{pair.difference:+.{digits}f} [{pair.low:+.{digits}f}, {pair.high:+.{digits}f}]"


def difference_text(pair: PairedDifference, measure: Measure) -> str:
    """The difference and its interval; of logarithms where the measure's values are these and its figure is not."""
    return with_interval(pair) + ("" if measure.figure(0.0) == 0.0 else " in logarithms")


def alike_note(pairs: Sequence[PairedDifference]) -> list[str]:
    """What an interval around no difference at all means, where there is such a row: it looks like a mistake."""
    return [ALIKE] if any(pair.low and not (pair.wins or pair.losses) for pair in pairs) else []


def p_text(p: float) -> str:
    """Four digits say enough, and a p is never 0."""
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"
