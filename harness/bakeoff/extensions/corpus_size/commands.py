"""`bakeoff corpus-size`: does a bake-off on few documents hold for many?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.shared_options import (
    AddressOption,
    AsJson,
    ContendersOption,
    EngineOption,
    Force,
    LineupArgument,
    MaxCost,
    Offline,
    VectorsOption,
    check_file,
    lineup_path,
    shard_folders,
    warn,
)
from bakeoff.cli.streams import echo
from bakeoff.core.files import write_atomic
from bakeoff.core.printable import whole_number
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.corpus_size.growth import Extrapolation
from bakeoff.extensions.corpus_size.study import CorpusSizes, Growth, SizePoint
from bakeoff.report import charts as drawing
from bakeoff.report.charts import HUES, Chart, colour_of, guarded, hues, inline, var
from bakeoff.report.frame import Head, document
from bakeoff.report.notes import task_called
from bakeoff.report.words import WEIGHTED

if TYPE_CHECKING:
    from bakeoff.extensions.corpus_size.study import CorpusSizes


BESIDE = 8  # pixels between the estimates of two contenders
TITLE = "Score against corpus size"


def heading(sizes: CorpusSizes) -> str:
    """Task, measure, queries and samples."""
    weighting = f"{WEIGHTED}, " if sizes.weighting else ""
    return (
        f"{sizes.name}: {task_called(sizes.task)}, {_measure(sizes)} [95%] over {sizes.queries} queries, {weighting}"
        f"nested samples (seed {sizes.seed}), each with all graded documents"
    )


def heads(sizes: CorpusSizes) -> list[Head]:
    """One column per size, and one for the estimate."""
    target = [Head(f"estimate for {sizes.target:,}")] if sizes.target else []
    return [Head("contender", is_text=True), *(Head(f"{size:,}") for size in sizes.sizes), *target]


def cells(sizes: CorpusSizes) -> list[list[str]]:
    """One row per contender, best at full size first."""
    return [
        [row.label, *map(_interval, row.points), *([_interval(row.estimate)] if sizes.target else [])]
        for row in _sort_rows(sizes)
    ]


def sentences(sizes: CorpusSizes) -> list[str]:
    """Failures, changes of order, and how estimates are made."""
    lost = [f"{label}: not run: {reason}" for label, reason in sizes.not_run.items()]
    changes = sizes.changes or ["No contender overtakes another from one size to the next."]
    if not sizes.target:
        return [*lost, *changes]
    if not any(row.estimate for row in sizes.rows):
        needs = "No estimate: it needs three sizes or more, a measure from 0 to 1, and means between these."
        return [*lost, *changes, needs]
    estimates = (
        "Estimates: halfway between lines in log N through the means and through their log odds; brackets span "
        "the 95% prediction intervals of both. They assume that further documents are like these. Go by the brackets: "
        "on simulated corpora the middle is biased by up to 0.05 at 10 times the documents and 0.15 at 100."
    )
    return [*lost, *changes, estimates]


def render(sizes: CorpusSizes, target: Path) -> list[str]:
    """Write the page. Returns a sentence for each chart that failed."""
    drawn = guarded("corpus-size", TITLE, lambda: chart(sizes)) if drawing.available() and sizes.rows else []
    write_atomic(target, page(sizes, drawn))
    missing = [] if drawing.available() else [drawing.MISSING]
    return [*missing, *(each.failure for each in drawn if each.failure)]


def page(sizes: CorpusSizes, drawn: Sequence[Chart]) -> str:
    """A self-contained HTML page."""
    content = {
        "name": sizes.name,
        "heading": heading(sizes),
        "sentences": sentences(sizes),
        "palette": _palette(sizes),
        "heads": heads(sizes),
        "cells": cells(sizes),
    }
    empty: dict[str, list[Any]] = {"rows": [], "pairs": [], "queries": [], "limits": [], "contenders": []}
    return document("corpus_size.html", content, empty, drawn, Path(__file__).parent)


def chart(sizes: CorpusSizes) -> Chart:
    """Solid lines with bands for measurements; dashed lines and hollow points for estimates."""
    import altair as alt

    colour = colour_of(_palette(sizes))
    axis = alt.Axis(tickCount=5, grid=False, labelOverlap=True, format=",d")
    x = alt.X("documents:Q", title="documents (log)", scale=alt.Scale(type="log", nice=False, padding=24), axis=axis)
    y = alt.Y("mean:Q", title=_measure(sizes), scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=6))
    low = alt.Y("low:Q", title=_measure(sizes))
    tip = [alt.Tooltip("model:N", title="contender"), alt.Tooltip("documents:Q", format=",d"), "what:N",
           *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("mean", "low", "high"))]  # fmt: skip
    measured = alt.Chart(inline([_record(row, point) for row in sizes.rows for point in row.points]))
    layers: list[alt.Chart] = [
        measured.mark_area(opacity=0.08).encode(x=x, y=low, y2="high:Q", color=colour),
        measured.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        measured.mark_point(filled=True, size=50, opacity=1).encode(x=x, y=y, color=colour, tooltip=tip),
    ]
    caption = "Bands are 95% intervals over the queries."
    beyond = [(row, row.estimate) for row in sizes.rows if row.estimate]
    if beyond and sizes.target:
        for place, (row, estimate) in enumerate(beyond):
            aside = (place - (len(beyond) - 1) / 2) * min(BESIDE, BESIDE * HUES / len(beyond))
            line = alt.Chart(inline([_record(row, row.points[-1]), _record(row, estimate)]))
            end = alt.Chart(inline([_record(row, estimate)]))
            layers += [
                line.mark_line(strokeWidth=1.5, strokeDash=[5, 4]).encode(x=x, y=y, color=colour),
                end.mark_rule(strokeWidth=1.5, xOffset=aside).encode(x=x, y=low, y2="high:Q", color=colour),
                end.mark_point(filled=False, size=70, strokeWidth=2, opacity=1, xOffset=aside).encode(
                    x=x, y=y, color=colour, tooltip=tip
                ),
            ]
        mark = alt.Chart(inline([{"documents": sizes.target, "what": f"estimate for {sizes.target:,}"}]))
        layers += [
            mark.mark_text(align="right", dx=-14, baseline="top", color=var("warn")).encode(
                x=x, y=alt.value(2), text="what:N"
            ),
            mark.mark_rule(strokeDash=[4, 3], color=var("warn"), opacity=0.5).encode(x=x),
        ]
        caption += (
            f" Dashed, to {sizes.target:,} documents: an estimate, not a measurement; its bar spans two "
            "95% prediction intervals."
        )
    return Chart("corpus-size", TITLE, caption, [alt.layer(*layers).properties(height=380)])


def _record(row: Growth, point: SizePoint | Extrapolation) -> dict[str, Any]:
    what = "measured" if isinstance(point, SizePoint) else "estimate"
    return {
        "model": row.label,
        "documents": point.documents,
        "what": what,
        "mean": point.mean,
        "low": point.low,
        "high": point.high,
    }


def _sort_rows(sizes: CorpusSizes) -> list[Growth]:
    return sorted(sizes.rows, key=lambda row: -row.points[-1].mean)


def _palette(sizes: CorpusSizes) -> dict[str, str]:
    return hues(row.label for row in _sort_rows(sizes))


def _measure(sizes: CorpusSizes) -> str:
    return Measure.parse(sizes.measure).label


def _interval(point: SizePoint | Extrapolation | None) -> str:
    if point is None:
        return "–"
    if point.low is None or point.high is None:
        return f"{point.mean:.3f}"
    return f"{point.mean:.3f} [{point.low:.3f}, {point.high:.3f}]"


def corpus_size(
    lineup: LineupArgument = None,
    contender: ContendersOption = None,
    sizes: Annotated[
        str,
        typer.Option(help="Sample these sizes, e.g. 1000,3000. Default: 100, 300, 1000 …"),
    ] = "",
    documents: Annotated[int | None, typer.Option(min=1, help="Estimate scores for this many documents.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write an HTML page with a chart.")] = None,
    offline: Offline = False,
    vectors: VectorsOption = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    max_cost: MaxCost = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Score nested samples of the corpus to see how scores and order change as it grows.

    By default every sample holds all graded documents and at least a 64th of the corpus. The whole corpus is added.
    """
    import msgspec
    from bakeoff_providers.errors import InputError

    from bakeoff.extensions.corpus_size.commands import render
    from bakeoff.extensions.corpus_size.study import corpus_sizes
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.engines import engine_entry
    from bakeoff.running.runner import Settings, vectors_folder

    check_file(out, force=force)
    wanted = [whole_number(part.strip().replace("_", "")) for part in sizes.split(",") if part.strip()]
    if None in wanted:
        raise InputError(f"{sizes!r} is not a list of whole numbers", place="--sizes", remedy="write 1000,3000,10000")
    chosen = Lineup.read(lineup_path(lineup)).narrow(contender or (), ())
    settings = Settings(
        cache=vectors_folder(),
        offline=offline,
        max_cost=max_cost,
        progress=Bars(),
        notice=warn,
        engine=engine_entry(chosen.engine, engine, address),
        vectors=shard_folders(vectors),
    )
    by_size = corpus_sizes(chosen, settings, [size for size in wanted if size is not None], documents)
    if not by_size.rows:
        for label, reason in by_size.not_run.items():
            echo(f"{label}: not run: {reason}", err=True)
        echo("error: no contender ran, so there is nothing to compare", err=True)
        raise typer.Exit(1)
    if as_json:
        echo(msgspec.json.format(msgspec.json.encode(by_size), indent=2).decode())
    else:
        _print(by_size)
    if out is None:
        return
    for problem in render(by_size, out):
        echo(problem, err=True)
    if not as_json:
        echo(f"\nWritten to {out}")


def _print(sizes: CorpusSizes) -> None:
    from bakeoff.extensions.corpus_size.commands import cells, heading, heads, sentences
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid

    screen = console()
    screen.print(heading(sizes))
    table = Grid([head.name if head.is_text else Figures(head.name) for head in heads(sizes)])
    for row in cells(sizes):
        table.add_row(*row)
    screen.print(table)
    for sentence in sentences(sizes):
        screen.print(sentence)
