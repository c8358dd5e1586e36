"""Several results over time, as a page and a site: how each measure moved, and where task or model changed."""

from __future__ import annotations

import contextlib
import json
import logging
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.files import write_atomic
from bakeoff.core.local_server import LocalHandler, LocalServer, right_length
from bakeoff.core.printable import join_names, pluralise
from bakeoff.evaluation.measures import Measure
from bakeoff.report import PAGE
from bakeoff.report import charts as drawing
from bakeoff.report.charts import Chart, colour_of, guarded, hues, inline, var
from bakeoff.report.frame import document
from bakeoff.results import schema as results
from bakeoff.results.columns import ordered_rows
from bakeoff.results.current import current_summary
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
    """Packages that both runs had, in another version; one that is only installed beside them moves nothing."""
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


def sentences(entries: Sequence[Entry]) -> list[str]:
    """What a reader must know before looking at the lines."""
    first, last = entries[0].summary, entries[-1].summary
    said = [f"{pluralise(len(entries), 'result')}, {_span(first.started, last.started)}."]
    if last.verdict.leader is not None:
        best = next(row for row in last.ran if row.label == last.verdict.leader)
        value = best.measures[last.verdict.measure].mean
        said.append(f"The latest: {best.label} has the highest {last.label(last.verdict.measure)}: {value:.3f}.")
        said += _moved(entries, best.label, value)
    tasks = len({entry.summary.task.fingerprint for entry in entries})
    if tasks > 1:
        said.append(f"They cover {tasks} different tasks; scores from different tasks are not comparable.")
    return said


def _span(first: str, last: str) -> str:
    """Days, or the times of one day."""
    if first == last:
        return f"of {last[:10]}, {last[11:19]}"
    if first[:10] == last[:10]:
        return f"of {last[:10]}, from {first[11:19]} to {last[11:19]}"
    return f"from {first[:10]} to {last[:10]}"


def _since(then: str, now: str) -> str:
    return then[11:19] if then[:10] == now[:10] else then[:10]


def _moved(entries: Sequence[Entry], label: str, value: float) -> list[str]:
    last = entries[-1].summary
    for entry in reversed(entries[:-1]):
        rows = {row.label: row for row in entry.summary.ran}
        if entry.summary.task.fingerprint == last.task.fingerprint and label in rows:
            before = rows[label].measures.get(last.verdict.measure)
            if before is not None:
                change = value - before.mean
                moved = "did not move" if abs(change) < 5e-4 else f"moved by {change:+.3f}".replace("-", "−")
                since = _since(entry.summary.started, last.started)
                return [f"Since {since}, the last result on the same task, it {moved}."]
    return []


def page(entries: Sequence[Entry], drawn: Sequence[Chart] | None = None, problems: Sequence[str] = ()) -> str:
    """One page for several results; `problems` says which are missing, and why."""
    entries = ordered(entries)
    if drawn is None:
        drawn = charts(entries) if drawing.available() else []
    said = sentences(entries) if entries else ["There is no result here yet: bakeoff run makes one."]
    content = {
        "sentences": [*said, *problems],
        "palette": _palette(entries),
        "measures": {name: Measure.parse(name).label for name in measures(entries)} if entries else {},
        "results": _lines(entries),
    }
    return document(
        "history.html", content, {"rows": [], "pairs": [], "queries": [], "limits": [], "contenders": []}, drawn
    )


def render(entries: Sequence[Entry], target: Path, *, pictures: bool) -> list[str]:
    """Writes the page, and the chart as a picture beside it; a sentence for everything that could not be made."""
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
    best: str
    measure: str
    may_be_best: str
    changes: str


def _lines(entries: Sequence[Entry]) -> list[ResultLine]:
    """The newest first, with what changed since the one before."""
    before = [None, *(entry.summary for entry in entries)]
    return [_line(entry, previous) for entry, previous in zip(entries, before, strict=False)][::-1]


def _line(entry: Entry, before: Summary | None) -> ResultLine:
    summary, best, value = entry.summary, entry.summary.verdict.leader, ""
    if best is not None:
        row = next(row for row in summary.ran if row.label == best)
        value = f"{summary.label(summary.verdict.measure)} {row.measures[summary.verdict.measure].mean:.3f}"
    others = [label for label in summary.verdict.best_set if label != best]
    return ResultLine(
        name=entry.name,
        link=entry.link,
        when=_when(summary),
        task=f"{summary.task.name}: {pluralise(summary.task.documents, 'document')}, "
        f"{pluralise(summary.task.queries, 'query')}",
        best=best or "none ran",
        measure=value,
        may_be_best=join_names(others) if others else "–",
        changes=("; ".join(changes(before, summary)) if before else "") or "–",
    )


HOST = "127.0.0.1"
log = logging.getLogger(__name__)


def entries(folder: Path) -> list[Entry]:
    """Every result that can be read; one that is broken does not hide the others."""
    return _read(folder)[0]


def _read(folder: Path) -> tuple[list[Entry], list[str]]:
    """What can be read, and why the rest can't."""
    readable, problems = [], []
    for path in results.find(folder):
        try:
            summary = current_summary(path)
        except InputError as error:
            problems.append(f"{path.name} can't be read: {error}")
            continue
        link = quote(f"{path.relative_to(folder).as_posix()}/{PAGE}") if path != folder else PAGE
        readable.append(Entry(name=path.name, link=link if (path / PAGE).is_file() else "", summary=summary))
    return readable, problems


def _page(readable: list[Entry], problems: list[str]) -> str:
    """The history; a result that can be read but not shown is named with its reason, and does not hide the others."""
    try:
        return page(readable, problems=problems)
    except Exception:  # which of them it was is found out one by one
        failed = {entry.name: reason for entry in readable if (reason := _why_not_shown(entry))}
        problems = [*problems, *(f"{name} can't be shown: {reason}" for name, reason in failed.items())]
        return page([entry for entry in readable if entry.name not in failed], problems=problems)


def _why_not_shown(entry: Entry) -> str:
    try:
        page([entry])
    except Exception as error:
        log.warning("%s can't be shown", entry.name, exc_info=True)
        return f"{type(error).__name__}: {error}"
    return ""


class Site(LocalServer):
    """Serves one folder; the front page is made anew when a result has come or gone."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder.resolve()
        self._front: tuple[tuple[tuple[str, int], ...], bytes] | None = None
        super().__init__((HOST, port), _Handler)

    def front(self) -> bytes:
        """The history of everything in the folder."""
        state = tuple((path.name, (path / results.SUMMARY).stat().st_mtime_ns) for path in results.find(self.folder))
        if self._front is None or self._front[0] != state:
            self._front = (state, _page(*_read(self.folder)).encode())
        return self._front[1]

    def file(self, path: str) -> Path | None:
        """A visible file inside the folder, or nothing."""
        wanted = (self.folder / unquote(path).lstrip("/")).resolve()
        if not wanted.is_relative_to(self.folder) or not wanted.is_file():
            return None
        hidden = any(part.startswith(".") for part in wanted.relative_to(self.folder).parts)
        return None if hidden else wanted


class _Handler(LocalHandler):
    server: Site
    server_version = "bakeoff"
    sys_version = ""

    def do_GET(self) -> None:
        """A page or a file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """The same without its content."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        host = self.headers.get("Host", "").partition(":")[0]
        if host not in (HOST, "localhost"):  # another name that was made to point here
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        if not right_length(self.headers):
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        path = urlsplit(self.path).path
        if path == "/":
            self._send(self.server.front(), "text/html; charset=utf-8", with_body=with_body)
            return
        try:
            file = self.server.file(path)
        except (ValueError, OSError):  # a null byte, a name that is too long
            file = None
        if file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        text = kind.startswith("text/") or kind == "application/json"
        self._send(file.read_bytes(), f"{kind}; charset=utf-8" if text else kind, with_body=with_body)

    def _send(self, content: bytes, kind: str, *, with_body: bool) -> None:
        with contextlib.suppress(ConnectionError):  # a reader that went away
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_body:
                self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the terminal belongs to the person who started it."""
