"""Output of `bakeoff score`: a table for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bakeoff.core.printable import pluralise
from bakeoff.report.groups import shorten
from bakeoff.report.matrix import BEST, MAY_BE_BEST
from bakeoff.report.numbers import alternatives, enumeration, interval, short_label
from bakeoff.report.words import words
from bakeoff.results.score import ScoredRuns

if TYPE_CHECKING:
    from rich.console import RenderableType


FORMAT = 2  # of the JSON


def terminal(scored: ScoredRuns, *, per_query: bool = False) -> RenderableType:
    """Which run leads and which may be best on the first measure, then all runs and measures with intervals."""
    from rich.console import Group
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid, Prose

    first, group = scored.measures[0], scored.best.get(scored.measures[0], [])
    others = scored.measures[1:]
    heads = [
        Figures(first.label),
        Figures("95% interval"),
        *(Figures(short_label(measure.label)) for measure in others),
    ]
    table = Grid(["", "run", *heads], keys=2)
    for name in sorted(scored.runs, key=lambda run: -scored.mean(run, first)):
        mark = "" if name not in group else BEST if _leads(scored, name) else MAY_BE_BEST
        means = [f"{scored.mean(name, measure):.4f}" for measure in scored.measures]
        table.add_row(mark, Text(shorten(name)), means[0], _ends(scored, name), *means[1:])
    parts: list[RenderableType] = [_per_query(scored), Text("")] if per_query else []
    if group:
        parts.append(Prose(_conclusion(scored, group), "bold"))
    parts.append(table)
    if group:
        parts.append(Prose(f"{BEST} leads  {MAY_BE_BEST} may be best (95%)", "dim"))
    queries = pluralise(len(scored.queries), "query")
    parts.append(Prose(f"{queries}, relevant = grade ≥ {scored.rel}, sorted in {scored.precision} precision", "dim"))
    return Group(*parts, *(Prose(f"note: {words(note)}", "yellow") for note in scored.notes))


def _leads(scored: ScoredRuns, run: str) -> bool:
    first = scored.measures[0]
    highest = max(scored.mean(other, first) for other in scored.runs)
    return round(scored.mean(run, first), 12) == round(highest, 12)


def _conclusion(scored: ScoredRuns, group: Sequence[str]) -> str:
    measure = scored.measures[0].label
    leaders, rivals = [[shorten(run) for run in group if _leads(scored, run) == leads] for leads in (True, False)]
    verb, them = ("leads", "it") if len(leaders) == 1 else ("lead", "them")
    if not rivals:
        is_best = f"{leaders[0]} is best" if len(leaders) == 1 else f"{enumeration(leaders)} {verb}"
        return f"{is_best} on {measure}."
    queries = pluralise(len(scored.queries), "query")
    apart = f"cannot separate {them} from {alternatives(rivals)}"
    return f"{enumeration(leaders)} {verb} on {measure}, but {queries} {apart}."


def _ends(scored: ScoredRuns, run: str) -> str:
    low, high = scored.intervals[run][scored.measures[0]]
    return "–" if math.isnan(low) else interval(low, high)


def _per_query(scored: ScoredRuns) -> RenderableType:
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid

    table = Grid(["query", "run", *(Figures(measure) for measure in scored.measures)])
    for place, query in enumerate(scored.queries):
        for run, scores in scored.runs.items():
            table.add_row(Text(query), Text(run), *(f"{scores[measure][place]:.4f}" for measure in scored.measures))
    return table


def as_csv(scored: ScoredRuns, *, per_query: bool = False) -> str:
    """One value per line, unrounded. The mean has the query `all`, as in trec_eval."""
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
            low, high = (_finite(bound) for bound in scored.intervals[run][measure])
            writer.writerow([run, measure, "all", repr(scored.mean(run, measure)), low, high])
    return out.getvalue()


def as_json(scored: ScoredRuns, *, per_query: bool = False) -> str:
    """Means, intervals, pairs and notes, unrounded. `text` may change."""
    runs: dict[str, Any] = {}
    for run, scores in scored.runs.items():
        runs[run] = {
            str(measure): {
                "mean": scored.mean(run, measure),
                "low": _finite(scored.intervals[run][measure][0]),
                "high": _finite(scored.intervals[run][measure][1]),
                **({"queries": dict(zip(scored.queries, values.tolist(), strict=True))} if per_query else {}),
            }
            for measure, values in scores.items()
        }
    group = scored.best.get(scored.measures[0], [])
    content = {
        "format": FORMAT,
        "queries": len(scored.queries),
        "precision": scored.precision,
        "rel": scored.rel,
        "runs": runs,
        "pairs": {str(measure): pairs for measure, pairs in scored.pairs.items()},
        "best_set": {str(measure): group for measure, group in scored.best.items()},
        "notes": scored.notes,
        "text": [*([_conclusion(scored, group)] if group else []), *map(words, scored.notes)],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _finite(bound: float) -> float | None:
    """None if not finite: a single query has no interval."""
    return None if math.isnan(bound) else bound
