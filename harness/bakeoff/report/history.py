"""Several results over time: how each measure moved, and where the task or a model changed under it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from bakeoff.evaluation.measures import Measure
from bakeoff.report import charts as drawing
from bakeoff.report.charts import Chart, colour_of, inline
from bakeoff.report.frame import document, figures
from bakeoff.report.theme import SERIES, var
from bakeoff.results.recommend import listed
from bakeoff.results.schema import Row, Summary


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One result of a history: what it is called, where its page is, and its figures."""

    name: str
    link: str
    summary: Summary


def ordered(entries: Sequence[Entry]) -> list[Entry]:
    """Oldest first."""
    return sorted(entries, key=lambda entry: (entry.summary.started, entry.name))


def changes(before: Summary, after: Summary) -> list[str]:
    """What is not the same as last time, where it moves the figures: the task, models, the deciding measure."""
    found = []
    if before.task.fingerprint != after.task.fingerprint:
        found.append(
            f"task changed ({before.task.documents} → {after.task.documents} documents, "
            f"{before.task.queries} → {after.task.queries} queries)"
        )
    then = {row.label: _model(row) for row in before.ran}
    models: dict[tuple[str, str], list[str]] = {}
    for row in after.ran:
        if row.label in then and then[row.label] != _model(row):
            models.setdefault((then[row.label], _model(row)), []).append(row.label)
    found += [f"model of {listed(labels)} changed ({old} → {new})" for (old, new), labels in models.items()]
    if before.verdict.measure != after.verdict.measure:
        found.append(f"{before.verdict.measure} → {after.verdict.measure} decides")
    return found


def _model(row: Row) -> str:
    return f"{row.model}, {row.dimensions} dimensions" if row.dimensions else row.model


def sentences(entries: Sequence[Entry]) -> list[str]:
    """What a reader must know before looking at the lines."""
    first, last = entries[0].summary, entries[-1].summary
    told = [f"{len(entries)} results, from {first.started[:10]} to {last.started[:10]}."]
    if last.verdict.best is not None:
        best = next(row for row in last.ran if row.label == last.verdict.best)
        value = best.measures[last.verdict.measure].mean
        told.append(
            f"The latest: {best.label} has the highest {Measure.parse(last.verdict.measure).label}: {value:.3f}."
        )
        told += _moved(entries, best.label, value)
    tasks = len({entry.summary.task.fingerprint for entry in entries})
    if tasks > 1:
        told.append(f"There are {tasks} different tasks among them; figures under different tasks can't be compared.")
    return told


def _moved(entries: Sequence[Entry], label: str, value: float) -> list[str]:
    last = entries[-1].summary
    for entry in reversed(entries[:-1]):
        rows = {row.label: row for row in entry.summary.ran}
        if entry.summary.task.fingerprint == last.task.fingerprint and label in rows:
            before = rows[label].measures.get(last.verdict.measure)
            if before is not None:
                change = value - before.mean
                moved = "did not move" if abs(change) < 5e-4 else f"moved by {change:+.3f}".replace("-", "−")
                return [f"Since {entry.summary.started[:10]}, the last result on the same task, it {moved}."]
    return []


def page(entries: Sequence[Entry], made: Sequence[Chart] | None = None) -> str:
    """One page for several results."""
    entries = ordered(entries)
    if made is None:
        made = charts(entries) if drawing.available() else []
    first, *rest = sentences(entries) if entries else ["There is no result here yet: bakeoff run makes one."]
    prose = "".join(f"<p>{escape(sentence)}</p>" for sentence in rest)
    body = (
        '<main><header><div><h1>Bakeoff · history</h1></div></header><section id="verdict" aria-label="Summary">'
        f'<p class="lead">{escape(first)}</p><div class="prose">{prose}</div></section>'
        + (_chart_section(entries, made) if entries else "")
        + (f'<section id="results"><h2>Results</h2>{_table(entries)}</section>' if entries else "")
        + "</main>"
    )
    return document("Bakeoff: history", body, {"rows": [], "pairs": [], "queries": []}, made)


def measures(entries: Sequence[Entry]) -> list[str]:
    """Every measure of a matrix, the deciding one of the latest result first."""
    latest = entries[-1].summary
    return list(
        dict.fromkeys(
            [latest.verdict.measure, *(name for entry in reversed(entries) for name in entry.summary.matrix_measures)]
        )
    )


def _labels(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(row.label for entry in reversed(entries) for row in entry.summary.ran))


def points(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """One record for each result, contender and measure. A line ends where the task or the model changes."""
    found: list[dict[str, Any]] = []
    segment: dict[str, int] = {}
    known: dict[str, tuple[str, str]] = {}
    for place, entry in enumerate(entries):
        summary = entry.summary
        for row in summary.ran:
            state = (summary.task.fingerprint, _model(row))
            before = known.get(row.label, state)
            segment[row.label] = segment.get(row.label, 0) + (before != state)
            known[row.label] = state
            for name in measures(entries):
                if name in row.measures:
                    value = row.measures[name]
                    found.append(
                        {"place": place, "when": _when(summary), "result": entry.name, "model": row.label,
                         "uses": _model(row), "measure": name, "mean": round(value.mean, 5), "low": value.low,
                         "high": value.high, "segment": f"{row.label} {segment[row.label]}",
                         "changed": before[1] != state[1]}
                    )  # fmt: skip
    return found


def _when(summary: Summary) -> str:
    return summary.started[:16].replace("T", " ")


def _short_dates(entries: Sequence[Entry]) -> list[str]:
    """Labels of the axis: days where these tell the results apart."""
    days = [entry.summary.started[:10] for entry in entries]
    return days if len(set(days)) == len(days) else [_when(entry.summary)[5:] for entry in entries]


def charts(entries: Sequence[Entry]) -> list[Chart]:
    """The lines of every contender; the page's list chooses the measure."""
    import altair as alt

    entries = ordered(entries)
    if not any(entry.summary.ran for entry in entries):
        return []
    names = _short_dates(entries)
    palette = {label: f"c{place % SERIES}" for place, label in enumerate(_labels(entries))}
    colour = colour_of(palette)
    x = alt.X("place:O", title=None, axis=alt.Axis(labelExpr=f"{names!r}[datum.value]", labelAngle=0, labelOverlap=True,
                                                   grid=False))  # fmt: skip
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False, nice=True, padding=12), axis=alt.Axis(tickCount=6))
    tip = ["result:N", alt.Tooltip("model:N", title="contender"), alt.Tooltip("uses:N", title="model"), "measure:N",
           alt.Tooltip("mean:Q", format=".3f"), alt.Tooltip("low:Q", format=".3f"),
           alt.Tooltip("high:Q", format=".3f")]  # fmt: skip
    chosen = alt.param(name="measure", value=measures(entries)[0])
    known = points(entries)
    base = alt.Chart(inline(known)).transform_filter("datum.measure == measure")
    rules = [
        {"place": place, "what": "task changed"}
        for place in range(1, len(entries))
        if entries[place - 1].summary.task.fingerprint != entries[place].summary.task.fingerprint
    ]
    layers = [
        base.mark_area(opacity=0.05).encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q", color=colour,
                                            detail="segment:N"),
        base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, detail="segment:N"),
        base.mark_point(filled=True, size=50, opacity=1).encode(x=x, y=y, color=colour, tooltip=tip),
    ]  # fmt: skip
    if any(point["changed"] for point in known):
        layers.append(
            base.transform_filter("datum.changed")
            .mark_point(filled=False, size=190, strokeWidth=2, color=var("warn"))
            .encode(x=x, y=y, tooltip=tip)
        )
    if rules:
        marks = alt.Chart(inline(rules))
        layers.append(marks.mark_rule(strokeDash=[4, 3], color=var("warn"), xOffset=-18).encode(x="place:O"))
        layers.append(
            marks.mark_text(align="right", dx=-22, baseline="top", color=var("warn")).encode(
                x="place:O", y=alt.value(2), text="what:N"
            )
        )
    caption = (
        "Bands are 95% intervals. A dashed line is a change of task: figures on its two sides can't be compared. "
        "A ring is a change of model under the same name."
    )
    chart = alt.layer(*layers).add_params(chosen).properties(height=380)
    return [Chart("history", "Each measure over time", caption, [chart])]


def _chart_section(entries: Sequence[Entry], made: Sequence[Chart]) -> str:
    options = "".join(
        f'<option value="{escape(name)}">{escape(Measure.parse(name).label)}</option>' for name in measures(entries)
    )
    chooser = f'<div class="tools"><label>Measure <select id="history-measure">{options}</select></label></div>'
    swatches = "".join(
        f'<li><i class="dot" style="background:var(--c{place % SERIES})"></i>{escape(label)}</li>'
        for place, label in enumerate(_labels(entries))
    )
    legend = f'<ul class="swatches stores">{swatches}</ul>' if made else ""
    return f'<section id="charts"><h2>Charts</h2>{legend}{figures(made, {"history": chooser})}</section>'


def _table(entries: Sequence[Entry]) -> str:
    """The newest first, with what changed since the one before."""
    rows = []
    for place in range(len(entries) - 1, -1, -1):
        entry, summary = entries[place], entries[place].summary
        best = summary.verdict.best
        value = ""
        if best is not None:
            row = next(row for row in summary.ran if row.label == best)
            value = f"{Measure.parse(summary.verdict.measure).label} {row.measures[summary.verdict.measure].mean:.3f}"
        ties = [label for label in summary.verdict.tie_group if label != best]
        what = "; ".join(changes(entries[place - 1].summary, summary)) if place else ""
        cells = (
            f"{summary.task.name}: {summary.task.documents} documents, {summary.task.queries} queries",
            best or "none ran",
            value,
            listed(ties) if ties else "–",
            what or "–",
        )
        name = escape(entry.name)
        head = f'<a href="{escape(entry.link)}">{name}</a>' if entry.link else name
        rows.append(
            f'<tr><th scope="row">{head}<small>{escape(_when(summary))}</small></th>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
        )
    heads = ("Result", "Task", "Best", "Measure", "Can't be told from it", "Changed since the one before")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Results"><table class="plain results">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
