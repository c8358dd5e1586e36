"""Store measurements as tables, with the same cells in the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from bakeoff.core.clock import busy
from bakeoff.core.machine import Machine
from bakeoff.core.printable import markdown_table
from bakeoff.extensions.storelab.churn import CHECKS, Writes
from bakeoff.extensions.storelab.cold import LATER, TIMES, ColdStart, median
from bakeoff.extensions.storelab.conditions import Conditions
from bakeoff.extensions.storelab.filtered import FilterTest
from bakeoff.extensions.storelab.footprint import Footprints
from bakeoff.extensions.storelab.loadtest import LoadLevel, LoadTest, load_facts
from bakeoff.extensions.storelab.sweep import Sweep, sweep_facts
from bakeoff.extensions.storelab.words import text_of
from bakeoff.report.matrix import DOUBT
from bakeoff.report.words import words

if TYPE_CHECKING:
    from rich.console import RenderableType

YES = "●"


class SheetTable(msgspec.Struct, frozen=True):
    """Heads and rows. Columns with these numbers hold figures and are right-aligned.

    The first `keys` columns identify a row. They are repeated if the screen is too narrow for all columns.
    """

    heads: list[str]
    rows: list[list[str]]
    figures: range
    keys: int = 1


class Sheet(msgspec.Struct, kw_only=True, frozen=True):
    """The output of one command."""

    title: str
    sentences: list[str] = []
    tables: list[SheetTable] = []
    remarks: list[str] = []


def sweep_sheet(sweep: Sweep) -> Sheet:
    """The points on a Pareto front. The JSON has all points."""
    kept = [point for point in sweep.points if point.fastest or point.smallest]
    mark = doubt_mark(sweep.machine)
    kept.sort(key=lambda point: (-point.recall, point.latency.p50 or 0.0))
    heads = ["store", "setting", f"recall@{sweep.k}", "p50 ms", "p95 ms", "build s", "MB", "fastest", "smallest"]
    rows = [
        [
            point.label,
            point.setting or "–",
            f"{point.recall:.4f}",
            number(point.latency.p50, 3) + mark,
            number(point.latency.p95, 3) + mark,
            f"{point.build_seconds:.1f}{mark}",
            megabytes(point.index_bytes),
            YES * point.fastest,
            YES * point.smallest,
        ]
        for point in kept
    ]
    beaten = len(sweep.points) - len(kept)
    return Sheet(
        title=f"Sweep: {sweep.sample}, {sweep.queries} queries × {sweep.rounds}, top {sweep.k}",
        sentences=[*map(words, sweep_facts(sweep.points, sweep.target, sweep.k)), *timing_doubts(sweep.machine)],
        tables=[SheetTable(heads, rows, range(2, 7), keys=2)],
        remarks=[
            f"{YES} on the Pareto front: no other setting has as much recall in less time (fastest) or fewer bytes "
            "(smallest).",
            f"{beaten} settings are dominated and not shown; {sweep.pruned} were skipped, since a cheaper setting of "
            "the same index already had perfect recall.",
            *(f"not run: {label}: {reason}" for label, reason in sweep.not_run.items()),
            *map(text_of, sweep.warnings),
            machine_line(sweep.machine),
        ],
    )


def loadtest_sheet(load: LoadTest) -> Sheet:
    """One row per number of clients and per rate."""
    heads = ["loop", "clients", "asked for/s", "answered/s", "p50 ms", "p95 ms", "p99 ms", "n", "late",
             "dropped", "errors", "client's limit/s", ""]  # fmt: skip
    mark = doubt_mark(load.machine)
    rows = [
        [
            level.loop,
            str(level.clients),
            "–" if level.rate is None else f"{level.rate:g}",
            f"{level.throughput:.0f}{mark}",
            number(level.latency.p50, 3) + mark,
            number(level.latency.p95, 3) + mark,
            number(level.latency.p99, 3) + mark,
            str(level.answered),
            str(level.late),
            str(level.dropped),
            str(sum(level.errors.values())),
            f"{level.client_limit:.0f}",
            _remark(level, load.knee),
        ]
        for level in load.levels
    ]
    return Sheet(
        title=f"Load test of {load.label}: {load.sample}, top {load.k}",
        sentences=[*map(words, load_facts(load.levels)), *timing_doubts(load.machine)],
        tables=[SheetTable(heads, rows, range(1, 12), keys=3)],
        remarks=[
            "Closed: each client sends its next request after an answer. Open: requests are due at random times, at "
            "this rate, and latency counts from then.",
            "Latency in a closed loop covers only the search; answered/s is over the whole time, including the "
            "client's own work.",
            *map(text_of, load.warnings),
            machine_line(load.machine),
        ],
    )


def footprint_sheet(footprints: Footprints) -> Sheet:
    """The measurements, then projections to larger sizes."""
    heads = ["store", "documents", "add s", "build s", "searchable s", "disk MB", "memory MB", "server MB",
             "size model MB"]  # fmt: skip
    rows = [
        [
            footprint.label,
            f"{measured.documents:,}",
            f"{measured.add_seconds:.2f}",
            f"{measured.build_seconds:.2f}",
            f"{measured.searchable_seconds:.2f}",
            megabytes(measured.disk_bytes),
            megabytes(measured.resident_bytes),
            megabytes(measured.server_bytes),
            megabytes(measured.size_model_bytes),
        ]
        for footprint in footprints.stores
        for measured in footprint.measured
    ]
    projected_heads = [
        "store",
        "documents",
        "build h",
        "disk GB",
        "memory GB",
        "size model GB",
        "disk",
        "memory",
        "size model",
        "build",
    ]
    projected_rows = [
        [
            footprint.label,
            f"{projection.documents:,}",
            f"{projection.build_seconds / 3600:.2f}",
            "–" if projection.disk_bytes is None else f"{projection.disk_bytes / 1e9:.2f}",
            f"{projection.resident_bytes / 1e9:.2f}",
            f"{projection.size_model_bytes / 1e9:.2f}",
            *(footprint.formulas.get(name, "–") for name in ("disk", "memory", "size_model", "build")),
        ]
        for footprint in footprints.stores
        for projection in footprint.projections
    ]
    return Sheet(
        title=f"Footprint: {footprints.sample}",
        sentences=timing_doubts(footprints.machine),
        tables=[
            SheetTable(heads, rows, range(1, 9), keys=2),
            SheetTable(projected_heads, projected_rows, range(1, 6), keys=2),
        ],
        remarks=[
            "Memory is the growth of this process; server is all processes of a server. The second table is an "
            f"estimate: the line through both sizes, for n documents of d = {footprints.dimensions} dimensions.",
            *(
                f"not run: {footprint.label}: {footprint.not_run}"
                for footprint in footprints.stores
                if footprint.not_run
            ),
            *map(text_of, footprints.warnings),
            machine_line(footprints.machine),
        ],
    )


def markdown(sheet: Sheet, pictures: Sequence[str] = ()) -> str:
    """The sheet as Markdown, with links to its pictures."""
    lines = [f"# {sheet.title}", "", *(f"- {sentence}" for sentence in sheet.sentences)]
    for table in sheet.tables:
        lines += ["", *markdown_table(table.heads, table.rows, figures=table.figures)]
    lines += ["", *(f"![{_stem(name)}]({name})" for name in pictures), "", *(f"- {remark}" for remark in sheet.remarks)]
    return "\n".join(lines) + "\n"


def terminal(sheet: Sheet) -> RenderableType:
    """The sheet for rich's console."""
    from rich.console import Group

    from bakeoff.report.grid import Figures, Grid, Prose

    parts: list[RenderableType] = [Prose(sheet.title, "bold")]
    for table in sheet.tables:
        rendered = Grid([Figures(head) if column in table.figures else head for column, head in enumerate(table.heads)])
        rendered.keys = table.keys
        for row in table.rows:
            rendered.add_row(*row)
        parts.append(rendered)
    parts += [Prose(sentence) for sentence in sheet.sentences]
    parts += [Prose(remark, "dim") for remark in sheet.remarks]
    return Group(*parts)


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _remark(level: LoadLevel, knee: int | None) -> str:
    if level.limited:
        return "client limit"
    return "knee" if level.loop == "closed" and level.clients == knee else ""


def number(value: float | None, digits: int) -> str:
    """A figure, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def megabytes(size: float | None) -> str:
    """Megabytes, or a dash if unknown."""
    return "–" if size is None else f"{size / 1e6:.1f}"


def timing_doubts(machine: Machine) -> list[str]:
    """Why the timing is unreliable. Only the load before counts, as a load test adds its own."""
    return [f"{DOUBT} {words(doubt)}"] if (doubt := busy(machine, machine.load_before)) else []


def doubt_mark(machine: Machine) -> str:
    """The mark after an unreliable time."""
    return f" {DOUBT}" if timing_doubts(machine) else ""


def machine_line(machine: Machine) -> str:
    """The machine that the figures come from."""
    return (
        f"On {machine.cpu}, {machine.cores} cores, load {machine.load_before} before and {machine.load_after} after, "
        f"Python {machine.python}."
    )


def conditions_sheet(measured: Conditions) -> Sheet:
    """One table per condition, and a remark for each failed measurement."""
    tables, remarks = [], []
    if measured.writes:
        tables.append(_writes_table(measured.writes, measured.k))
        remarks += _writes_remarks(measured)
    if measured.filters:
        tables.append(_filters_table(measured.filters, measured.k))
        remarks.append(
            "Which documents pass is random. Full: results returned, as a share of those possible (k, or all that "
            "pass). Recall is against exact search over the documents that pass."
        )
    if measured.cold:
        tables.append(_cold_table(measured.cold))
        remarks.append(
            f"Medians of {TIMES} new processes without their imports; later: the median of {LATER} further answers. "
            "Cold: after the files were dropped from memory; warm: with the files as the last process left them."
        )
        remarks += [f"{line.label}: {text_of(line.dropped)}" for line in measured.cold if line.dropped]
    failed = [
        f"not run: {line.label}: {what}: {line.not_run}"
        for what, lines in (("writes", measured.writes), ("filters", measured.filters), ("cold start", measured.cold))
        for line in lines
        if line.not_run
    ]
    return Sheet(
        title=f"Stores under conditions: {measured.sample}, top {measured.k}",
        sentences=[
            *(_writes_sentence(line) for line in measured.writes if line.phases),
            *timing_doubts(measured.machine),
        ],
        tables=[table for table in tables if table.rows],
        remarks=[*failed, *remarks, *map(text_of, measured.warnings), machine_line(measured.machine)],
    )


def _writes_table(lines: list[Writes], k: int) -> SheetTable:
    heads = ["store", "when", "documents", f"recall@{k}", "lowest", "stale", "p50 ms", "p95 ms", "n"]
    rows = [
        [
            line.label,
            phase.name,
            f"{phase.documents:,}",
            f"{phase.recall:.4f}",
            f"{phase.lowest_recall:.4f}",
            str(phase.stale),
            number(phase.latency.p50, 3),
            number(phase.latency.p95, 3),
            str(phase.latency.n),
        ]
        for line in lines
        for phase in line.phases
    ]
    return SheetTable(heads, rows, range(2, len(heads)), keys=2)


def _writes_sentence(line: Writes) -> str:
    """Write throughput, rebuild time and errors."""
    parts = [f"{line.written_per_second:.0f} documents written per second"]
    if line.write.p95 is not None:
        parts.append(f"p95 of a write {line.write.p95:.1f} ms")
    if line.rebuild_seconds is not None:
        parts.append(f"built again in {line.rebuild_seconds:.1f} s")
    parts += [f"{count} × {kind} {phase.name}" for phase in line.phases for kind, count in sorted(phase.errors.items())]
    return f"{line.label}: {', '.join(parts)}."


def _writes_remarks(measured: Conditions) -> list[str]:
    first = measured.writes[0]
    clients = "1 client searches" if measured.clients == 1 else f"{measured.clients} clients search"
    remarks = [
        f"{first.share:g} % of the documents each are inserted, deleted and updated while "
        f"{clients}. Recall is against exact search over the current documents, at {CHECKS} moments between writes; "
        "stale: results that were already deleted."
    ]
    if waiting := [line.label for line in measured.writes if line.waits and line.phases]:
        remarks.append(
            f"{', '.join(waiting)}: can't be searched during a write, so latency includes waiting for writes."
        )
    if masked := [line.label for line in measured.writes if not line.in_place and line.phases]:
        remarks.append(f"{', '.join(masked)}: deleted and replaced documents stay in the index, masked.")
    return remarks


def _filters_table(lines: list[FilterTest], k: int) -> SheetTable:
    heads = ["store", "filter", "passing", f"recall@{k}", "full", "p50 ms", "p95 ms", "n", "filters itself"]
    rows = [
        [
            line.label,
            filtered.name,
            f"{filtered.passing:,.0f}",
            f"{filtered.recall:.4f}",
            f"{filtered.full:.3f}",
            number(filtered.latency.p50, 3),
            number(filtered.latency.p95, 3),
            str(filtered.latency.n),
            "yes" if line.itself else "no",
        ]
        for line in lines
        for filtered in line.filters
    ]
    return SheetTable(heads, rows, range(2, 8), keys=2)


def _cold_table(lines: list[ColdStart]) -> SheetTable:
    heads = ["store", "disk MB", "cold: open ms", "first ms", "both ms", "warm: open ms", "first ms", "both ms",
             "later ms"]  # fmt: skip
    rows = []
    for line in lines:
        if line.not_run:
            continue
        cells = [line.label, megabytes(line.disk_bytes)]
        for openings in (line.cold, line.warm):
            opened, first = median(openings, "open_ms"), median(openings, "first_ms")
            cells += [f"{opened:.1f}", f"{first:.1f}", f"{opened + first:.1f}"]
        rows.append([*cells, f"{median(line.warm, 'later_ms'):.2f}"])
    return SheetTable(heads, rows, range(1, len(heads)))
