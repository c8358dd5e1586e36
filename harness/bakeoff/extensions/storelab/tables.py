"""Sweep, load test and footprint as tables: the same cells in the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from bakeoff.core.clock import busy
from bakeoff.core.machine import Machine
from bakeoff.core.markdown import markdown_table
from bakeoff.extensions.storelab.footprint import Footprints
from bakeoff.extensions.storelab.loadtest import Level, LoadTest
from bakeoff.extensions.storelab.sweep import Sweep
from bakeoff.report.matrix import DOUBT

if TYPE_CHECKING:
    from rich.console import RenderableType

YES = "●"


class Table(msgspec.Struct, frozen=True):
    """Heads and rows; the columns with these numbers hold figures and are set to the right.

    The first `keys` columns say what a row is: they are repeated where a screen is too narrow for all columns.
    """

    heads: list[str]
    rows: list[list[str]]
    figures: range
    keys: int = 1


class Sheet(msgspec.Struct, kw_only=True, frozen=True):
    """What one command found, ready to be shown."""

    title: str
    sentences: list[str] = []
    tables: list[Table] = []
    remarks: list[str] = []


def sweep_sheet(sweep: Sweep) -> Sheet:
    """The points on a front; the others are in the JSON."""
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
        sentences=[*sweep.sentences, *timing_doubts(sweep.machine)],
        tables=[Table(heads, rows, range(2, 7), keys=2)],
        remarks=[
            f"{YES} on the front: nothing else has as much recall for less time (fastest) or fewer bytes (smallest).",
            f"{beaten} settings are dominated and not shown; {sweep.pruned} were not tried, since a cheaper setting of "
            "the same index had missed nothing.",
            *(f"not run: {label}: {reason}" for label, reason in sweep.not_run.items()),
            *sweep.warnings,
            machine_line(sweep.machine),
        ],
    )


def loadtest_sheet(load: LoadTest) -> Sheet:
    """A row for each number of clients and each rate."""
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
        sentences=[*load.sentences, *timing_doubts(load.machine)],
        tables=[Table(heads, rows, range(1, 12), keys=3)],
        remarks=[
            "Closed: each client asks again when it has its answer. Open: requests fall due at random times of the "
            "rate, and time counts from then.",
            "The times of a closed loop are of the store's search alone; answered/s is over all seconds, also those in "
            "which the client, or another program, had the processor.",
            *load.warnings,
            machine_line(load.machine),
        ],
    )


def footprint_sheet(footprints: Footprints) -> Sheet:
    """What was measured, then what follows for sizes that were not tried."""
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
            *(footprint.formulas[name] for name in ("disk", "memory", "size_model", "build")),
        ]
        for footprint in footprints.stores
        for projection in footprint.projections
    ]
    return Sheet(
        title=f"Footprint: {footprints.sample}",
        sentences=timing_doubts(footprints.machine),
        tables=[Table(heads, rows, range(1, 9), keys=2), Table(projected_heads, projected_rows, range(1, 6), keys=2)],
        remarks=[
            "Memory is what this process grew by; server is all of a server's processes. The second table extends the "
            f"line through both sizes, with n documents of d = {footprints.dimensions} dimensions: an estimate.",
            *(
                f"not run: {footprint.label}: {footprint.not_run}"
                for footprint in footprints.stores
                if footprint.not_run
            ),
            *footprints.warnings,
            machine_line(footprints.machine),
        ],
    )


def markdown(sheet: Sheet, pictures: Sequence[str] = ()) -> str:
    """The sheet as a file's text, with the pictures that lie beside it."""
    lines = [f"# {sheet.title}", "", *(f"- {sentence}" for sentence in sheet.sentences)]
    for table in sheet.tables:
        lines += ["", *markdown_table(table.heads, table.rows, figures=table.figures)]
    lines += ["", *(f"![{_stem(name)}]({name})" for name in pictures), "", *(f"- {remark}" for remark in sheet.remarks)]
    return "\n".join(lines) + "\n"


def terminal(sheet: Sheet) -> RenderableType:
    """The sheet for rich's console."""
    from rich.console import Group

    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.prose import Prose

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


def _remark(level: Level, knee: int | None) -> str:
    if level.limited:
        return "client limit"
    return "knee" if level.loop == "closed" and level.clients == knee else ""


def number(value: float | None, digits: int) -> str:
    """A figure, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def megabytes(size: float | None) -> str:
    """Bytes in millions, or a dash where nobody says."""
    return "–" if size is None else f"{size / 1e6:.1f}"


def timing_doubts(machine: Machine) -> list[str]:
    """Why these times can't be trusted. Only the load before counts: a load test makes some itself."""
    return [f"{DOUBT} {reason}"] if (reason := busy(machine, machine.load_before)) else []


def doubt_mark(machine: Machine) -> str:
    """What stands after a time that can't be trusted."""
    return f" {DOUBT}" if timing_doubts(machine) else ""


def machine_line(machine: Machine) -> str:
    """Where the figures were made."""
    return (
        f"On {machine.cpu}, {machine.cores} cores, load {machine.load_before} before and {machine.load_after} after, "
        f"Python {machine.python}."
    )
