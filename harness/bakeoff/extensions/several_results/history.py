"""Several results over time: how each measure changed, and when the task or a model did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import write_atomic
from bakeoff.core.printable import join_names, pluralise
from bakeoff.evaluation.measures import Measure
from bakeoff.report import charts as drawing
from bakeoff.report.charts import Chart, colour_of, guarded, hues, inline, var
from bakeoff.report.frame import document
from bakeoff.report.verdict_words import Findings, decision
from bakeoff.report.words import words
from bakeoff.results.columns import ordered_rows
from bakeoff.results.schema import Row, Summary


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One result of a history: what it is called, where its page is, and its figures."""

    name: str
    link: str
    summary: Summary


class OtherPage(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep, a load test or another measurement with its own page."""

    name: str
    link: str
    title: str


def ordered(entries: Sequence[Entry]) -> list[Entry]:
    """Oldest first."""
    return sorted(entries, key=lambda entry: (entry.summary.started, entry.name))


def changes(before: Summary, after: Summary) -> list[str]:
    """What differs from last time and may move the figures: the task, models, libraries, the deciding measure."""
    differences = []
    if before.task.fingerprint != after.task.fingerprint:
        differences.append(
            f"task changed ({before.task.documents} → {after.task.documents} documents, "
            f"{before.task.queries} → {after.task.queries} queries)"
        )
    then = {row.label: _model(row) for row in before.ran}
    models: dict[tuple[str, str], list[str]] = {}
    for row in after.ran:
        if row.label in then and then[row.label] != _model(row):
            models.setdefault((then[row.label], _model(row)), []).append(row.label)
    differences += [f"model of {join_names(labels)} changed ({old} → {new})" for (old, new), labels in models.items()]
    if libraries := _libraries(before, after):
        differences.append(f"library changed ({', '.join(libraries)})")
    if before.verdict.measure != after.verdict.measure:
        differences.append(f"{before.verdict.measure} → {after.verdict.measure} decides")
    return differences


def all_changes(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Every result before which something changed: when, which one, and what."""
    return [
        {"when": after.summary.started[:10], "result": after.name, "changes": changed}
        for before, after in pairwise(entries)
        if (changed := changes(before.summary, after.summary))
    ]


def _libraries(before: Summary, after: Summary) -> list[str]:
    """Packages used by both runs in different versions. Other installed packages have no effect."""
    then, now = before.machine.versions, after.machine.versions
    return [f"{name} {then[name]} → {now[name]}" for name in then if name in now and then[name] != now[name]]


def _marks(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Where a dashed line goes: a change of task breaks the figures, one of a library may move them."""
    marks = []
    for place in range(1, len(entries)):
        before, after = entries[place - 1].summary, entries[place].summary
        if before.task.fingerprint != after.task.fingerprint:
            marks.append({"place": place, "what": "task changed"})
        elif _libraries(before, after):
            marks.append({"place": place, "what": "library changed"})
    return marks


def _model(row: Row) -> str:
    return f"{row.model}, {row.dimensions} dimensions" if row.dimensions else row.model


def facts(entries: Sequence[Entry]) -> list[Fact]:
    """How many results there are, the latest leader and its change, and whether scores are comparable."""
    first, last = entries[0].summary, entries[-1].summary
    known = [fact("history_results", count=len(entries), first=first.started, last=last.started)]
    if last.verdict.leader is not None:
        best = next(row for row in last.ran if row.label == last.verdict.leader)
        value = best.measures[last.verdict.measure].mean
        known.append(fact("history_leader", label=best.label, measure=last.label(last.verdict.measure), score=value))
        known += _change_of(entries, best.label, value)
    tasks = len({entry.summary.task.fingerprint for entry in entries})
    if tasks > 1:
        known.append(fact("history_tasks", tasks=tasks))
    return known


def _change_of(entries: Sequence[Entry], label: str, value: float) -> list[Fact]:
    """The row's change since the last result on the same task."""
    last = entries[-1].summary
    for entry in reversed(entries[:-1]):
        rows = {row.label: row for row in entry.summary.ran}
        if entry.summary.task.fingerprint == last.task.fingerprint and label in rows:
            before = rows[label].measures.get(last.verdict.measure)
            if before is not None:
                return [
                    fact("history_change", then=entry.summary.started, now=last.started, change=value - before.mean)
                ]
    return []


def page(
    entries: Sequence[Entry],
    drawn: Sequence[Chart] | None = None,
    problems: Sequence[str] = (),
    others: Sequence[OtherPage] | None = None,
) -> str:
    """One page for several results; `problems` lists missing ones with reasons.

    A site passes `others`, the pages of sweeps and load tests. On a site, any two results can be compared.
    """
    entries = ordered(entries)
    if drawn is None:
        drawn = charts(entries) if drawing.available() else []
    known = facts(entries) if entries else [fact("no_results")]
    content = {
        "sentences": [*map(words, known), *problems],
        "palette": _palette(entries),
        "measures": {name: Measure.parse(name).label for name in measures(entries)} if entries else {},
        "results": _lines(entries),
        "others": others or (),
        "served": others is not None,
    }
    return document(
        "history.html", content, {"rows": [], "pairs": [], "queries": [], "limits": [], "contenders": []}, drawn
    )


def render(entries: Sequence[Entry], target: Path, *, pictures: bool) -> list[str]:
    """Writes the page and a picture of the chart. Returns a sentence for each failure."""
    drawn = charts(entries) if drawing.available() else []
    problems = [chart.failure for chart in drawn if chart.failure]
    if not drawing.available():
        problems.append(drawing.MISSING)
    if pictures:
        files, failures = drawing.pictures(drawn)
        problems += failures
        for name, content in files.items():
            write_atomic(target.parent / name, content)
    write_atomic(target, page(entries, drawn))
    return problems


def measures(entries: Sequence[Entry]) -> list[str]:
    """Every measure of a matrix, the deciding one of the latest result first."""
    latest = entries[-1].summary
    return list(
        dict.fromkeys(
            [latest.verdict.measure, *(name for entry in reversed(entries) for name in entry.summary.matrix_measures)]
        )
    )


def _palette(entries: Sequence[Entry]) -> dict[str, str]:
    """A colour for each contender, those of the latest result first."""
    return hues(row.label for entry in reversed(entries) for row in ordered_rows(entry.summary) if row.ran)


def points(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """One record for each result, contender and measure. A line ends where the task or the model changes."""
    records: list[dict[str, Any]] = []
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
                    records.append(
                        {"place": place, "when": _when(summary), "result": entry.name, "model": row.label,
                         "uses": _model(row), "measure": name, "mean": round(value.mean, 5), "low": value.low,
                         "high": value.high, "segment": f"{row.label} {segment[row.label]}",
                         "changed": before[1] != state[1]}
                    )  # fmt: skip
    return records


def _when(summary: Summary) -> str:
    return summary.started[:16].replace("T", " ")


def _short_dates(entries: Sequence[Entry]) -> list[str]:
    """Labels of the axis: days where these tell the results apart."""
    days = [entry.summary.started[:10] for entry in entries]
    return days if len(set(days)) == len(days) else [_when(entry.summary)[5:] for entry in entries]


TITLE = "Each measure over time"


def charts(entries: Sequence[Entry]) -> list[Chart]:
    """The lines of every contender; the page's list chooses the measure."""
    entries = ordered(entries)
    if not any(entry.summary.ran for entry in entries):
        return []
    return guarded("history", TITLE, lambda: _over_time(entries))


def _over_time(entries: Sequence[Entry]) -> Chart:
    import altair as alt

    names = _short_dates(entries)
    colour = colour_of(_palette(entries))
    date = f"{json.dumps(names)}[datum.value]"
    x = alt.X("place:O", title=None, axis=alt.Axis(labelExpr=date, labelAngle=0, labelOverlap=True, grid=False))
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False, nice=True, padding=12), axis=alt.Axis(tickCount=6))
    tip = ["result:N", alt.Tooltip("model:N", title="contender"), alt.Tooltip("uses:N", title="model"), "measure:N",
           alt.Tooltip("mean:Q", format=".3f"), alt.Tooltip("low:Q", format=".3f"),
           alt.Tooltip("high:Q", format=".3f")]  # fmt: skip
    chosen = alt.param(name="measure", value=measures(entries)[0])
    known = points(entries)
    base = alt.Chart(inline(known)).transform_filter("datum.measure == measure")
    rules = _marks(entries)
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
        "Bands are 95% intervals. A dashed line is a change of task (its two sides can't be compared) or of a library. "
        "A ring is a change of model under the same name."
    )
    chart = alt.layer(*layers).add_params(chosen).properties(height=380)
    return Chart("history", TITLE, caption, [chart])


@dataclass(frozen=True, slots=True)
class ResultLine:
    """A result in the table of the page."""

    name: str
    link: str
    when: str
    task: str
    verdict: str
    changes: str


def _lines(entries: Sequence[Entry]) -> list[ResultLine]:
    """The newest first, with what changed since the one before."""
    before = [None, *(entry.summary for entry in entries)]
    return [_line(entry, previous) for entry, previous in zip(entries, before, strict=False)][::-1]


def _line(entry: Entry, before: Summary | None) -> ResultLine:
    summary = entry.summary
    return ResultLine(
        name=entry.name,
        link=entry.link,
        when=_when(summary),
        task=f"{summary.task.name}: {pluralise(summary.task.documents, 'document')}, "
        f"{pluralise(summary.task.queries, 'query')}",
        verdict=decision(Findings(summary)).headline,
        changes=("; ".join(changes(before, summary)) if before else "") or "–",
    )
