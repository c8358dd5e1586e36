"""The table of pairs that all comparisons share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bakeoff.core.figures import PairedDifference
from bakeoff.report.groups import shorten
from bakeoff.report.matrix import DOUBT
from bakeoff.report.numbers import MINUS
from bakeoff.report.words import words
from bakeoff.statistics.constants import ALPHA

if TYPE_CHECKING:
    from bakeoff.report.grid import Grid

MOST_DOUBTS = 5  # explained below the table


def pairs_table(
    pairs: Sequence[PairedDifference], relations: Sequence[str] = (), names: Mapping[str, str] | None = None
) -> Grid:
    """One row per pair, the better contender first, significant differences in bold.

    `relations` has each pair's relation if an equivalence margin was given; `names` has display names.
    """
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid, Prose

    heads = map(Figures, ("by", "95% interval", "p (Holm)", "won", "tied", "lost"))
    table = Grid(["better", "worse", *heads, *(["verdict"] if relations else [])], keys=2)
    for at, given in enumerate(pairs):
        pair = given if given.difference >= 0 else given.reverse()
        ends = (
            "–" if pair.low is None or pair.high is None else f"{pair.low:.3f} to {pair.high:.3f}".replace("-", MINUS)
        )
        better, worse = (names[label] if names else shorten(label) for label in (pair.a, pair.b))
        row, _, side = worse.rpartition(" (")
        cells = (
            better,
            f"({side}" if row and better.startswith(f"{row} (") else worse,  # the same row of another result
            f"{pair.difference:.3f}",
            ends + (f" {DOUBT}" if pair.doubt else ""),
            f"{pair.p_holm:.3f}" if pair.p_holm >= 0.001 else "<0.001",
            str(pair.wins),
            str(pair.ties),
            str(pair.losses),
            *relations[at : at + 1],
        )
        table.add_row(*(Text(cell, style="bold" if pair.p_holm <= ALPHA else "") for cell in cells))
    if doubts := [f"{DOUBT} {pair.a}, {pair.b}: {words(pair.doubt)}" for pair in pairs if pair.doubt]:
        shown = [
            *doubts[:MOST_DOUBTS],
            *([f"… and {len(doubts) - MOST_DOUBTS} more"] if len(doubts) > MOST_DOUBTS else []),
        ]
        table.caption = Prose("\n".join(shown), "yellow")
    return table


def p_text(p: float) -> str:
    """Formats p with four decimals, and never as 0."""
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"
