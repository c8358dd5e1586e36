"""What `bakeoff grade corrected` prints: people alone, corrected, and the model alone, named as what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bakeoff.statistics.ppi import CorrectedMean

if TYPE_CHECKING:
    from bakeoff.report.grid import Grid


def corrected_table(rows: Sequence[tuple[str, CorrectedMean, CorrectedMean, CorrectedMean]], differences: bool) -> Grid:
    """A row for each contender or pair."""
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid

    what = "difference" if differences else "contender"
    table = Grid(
        [
            what,
            Figures("people only [95%]"),
            Figures("corrected [95%]"),
            Figures("model's weight"),
            Figures("model alone, not corrected"),
        ]
    )
    sign = "+" if differences else ""
    for name, people, corrected, model in rows:
        spans = [f"{e.value:{sign}.4f} [{e.low:{sign}.3f}, {e.high:{sign}.3f}]" for e in (people, corrected)]
        table.add_row(Text(name), *spans, f"{corrected.weight:.2f}", f"{model.value:{sign}.4f}")
    return table
