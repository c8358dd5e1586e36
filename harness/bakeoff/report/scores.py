"""What `bakeoff score` prints: a table for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

import msgspec

from bakeoff.core.printable import counted
from bakeoff.report.matrix import BEST, TIED
from bakeoff.report.pairs import alike_note, pairs_table
from bakeoff.results.score import ScoredRuns

if TYPE_CHECKING:
    from rich.console import RenderableType


def terminal(scored: ScoredRuns, *, per_query: bool = False) -> RenderableType:
    """Runs by measures with intervals; for several runs the pairs on the first measure, the one that decides."""
    from rich.console import Group
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.prose import Prose

    table = Grid(["run", *(Figures(f"{measure.label} [95%]") for measure in scored.measures)])
    table.title = f"{counted(len(scored.queries), 'query')}, sorted in {scored.precision} precision"
    for name in sorted(scored.runs, key=lambda run: -scored.mean(run, scored.measures[0])):
        table.add_row(Text(name), *(Text(_cell(scored, name, measure)) for measure in scored.measures))
    parts: list[RenderableType] = []
    if per_query:
        parts += [_per_query(scored), Text("")]
    parts.append(table)
    if scored.pairs:
        first = scored.measures[0]
        parts.append(Prose(f"{BEST} best   {TIED} can't be told from the best (Holm, 5%)", "dim"))
        parts += [
            Text(""),
            pairs_table(scored.pairs[first], first, {run: scored.mean(run, first) for run in scored.runs}),
            *map(Prose, alike_note(scored.pairs[first])),
        ]
    parts += [Prose(f"note: {note}", "yellow") for note in scored.notes]
    return Group(*parts)


def _cell(scored: ScoredRuns, run: str, measure: Any) -> str:
    low, high = scored.intervals[run][measure]
    interval = "" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]"
    group = scored.best.get(measure, [])
    mean = scored.mean(run, measure)
    equals_best = bool(group) and round(mean, 12) == round(scored.mean(group[0], measure), 12)
    mark = f" {BEST}" if equals_best else f" {TIED}" if run in group else "  " if group else ""
    return f"{mean:.4f}{interval}{mark}"


def _per_query(scored: ScoredRuns) -> RenderableType:
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid

    table = Grid(["query", "run", *(Figures(measure) for measure in scored.measures)])
    for place, query in enumerate(scored.queries):
        for run, scores in scored.runs.items():
            table.add_row(Text(query), Text(run), *(f"{scores[measure][place]:.4f}" for measure in scored.measures))
    return table


def as_csv(scored: ScoredRuns, *, per_query: bool = False) -> str:
    """One value per line, unrounded; the mean's line has `all` for its query, as in trec_eval."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["run", "measure", "query", "value", "low", "high"])
    for run, scores in scored.runs.items():
        for measure, values in scores.items():
            if per_query:
                writer.writerows(
                    [run, measure, query, repr(float(value)), "", ""]
                    for query, value in zip(scored.queries, values, strict=True)
                )
            low, high = (_known(bound) for bound in scored.intervals[run][measure])
            writer.writerow([run, measure, "all", repr(scored.mean(run, measure)), low, high])
    return out.getvalue()


def as_json(scored: ScoredRuns, *, per_query: bool = False) -> str:
    """Means, intervals, pairs and notes, unrounded."""
    runs: dict[str, Any] = {}
    for run, scores in scored.runs.items():
        runs[run] = {
            str(measure): {
                "mean": scored.mean(run, measure),
                "low": _known(scored.intervals[run][measure][0]),
                "high": _known(scored.intervals[run][measure][1]),
                **({"queries": dict(zip(scored.queries, values.tolist(), strict=True))} if per_query else {}),
            }
            for measure, values in scores.items()
        }
    content = {
        "queries": len(scored.queries),
        "precision": scored.precision,
        "runs": runs,
        "pairs": {str(measure): pairs for measure, pairs in scored.pairs.items()},
        "tied_with_best": {str(measure): group for measure, group in scored.best.items()},
        "notes": scored.notes,
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _known(bound: float) -> float | None:
    """A single query has no interval."""
    return None if math.isnan(bound) else bound
