"""Writes, filters, tenants and cold starts as tables: the same cells in the terminal and in Markdown."""

from __future__ import annotations

from bakeoff.extensions.storelab.churn import CHECKS, Writes
from bakeoff.extensions.storelab.cold import LATER, TIMES, ColdStart, median
from bakeoff.extensions.storelab.conditions import Conditions
from bakeoff.extensions.storelab.filtered import FilterTest
from bakeoff.extensions.storelab.tables import Sheet, Table, machine_line, megabytes, number, timing_doubts


def conditions_sheet(measured: Conditions) -> Sheet:
    """A table for each condition, and a line for what could not be measured."""
    tables, remarks = [], []
    if measured.writes:
        tables.append(_writes_table(measured.writes, measured.k))
        remarks += _writes_remarks(measured)
    if measured.filters:
        tables.append(_filters_table(measured.filters, measured.k))
        remarks.append(
            "Which documents pass is drawn, whatever their vectors. Full: answers given of those that could be (k, or "
            "all that pass). Recall against exact search over what passes."
        )
    if measured.cold:
        tables.append(_cold_table(measured.cold))
        remarks.append(
            f"Medians of {TIMES} new processes without their imports; later: the median of {LATER} further answers. "
            "Cold: after the files were dropped from memory; warm: again, with the files as the last process left them."
        )
        remarks += [f"{line.label}: {line.dropped}" for line in measured.cold if line.dropped]
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
        remarks=[*failed, *remarks, *measured.warnings, machine_line(measured.machine)],
    )


def _writes_table(lines: list[Writes], k: int) -> Table:
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
    return Table(heads, rows, range(2, len(heads)), keys=2)


def _writes_sentence(line: Writes) -> str:
    """How fast it took them, what building again took, and what failed."""
    parts = [f"{line.written_per_second:.0f} documents written per second"]
    if line.write.p95 is not None:
        parts.append(f"p95 of a write {line.write.p95:.1f} ms")
    if line.rebuild_seconds is not None:
        parts.append(f"built again in {line.rebuild_seconds:.1f} s")
    parts += [f"{count} × {kind} {phase.name}" for phase in line.phases for kind, count in sorted(phase.errors.items())]
    return f"{line.label}: {', '.join(parts)}."


def _writes_remarks(measured: Conditions) -> list[str]:
    first = measured.writes[0]
    clients = "1 client asks" if measured.clients == 1 else f"{measured.clients} clients ask"
    remarks = [
        f"{first.share:g} % of the documents are inserted, as many deleted and as many given another vector, while "
        f"{clients}. Recall against exact search over what is there, at {CHECKS} moments between writes; stale: "
        "answers that name a deleted document."
    ]
    if waiting := [line.label for line in measured.writes if line.waits and line.phases]:
        remarks.append(
            f"{', '.join(waiting)}: can't be searched during a write, so searches wait for it, and that time counts."
        )
    if masked := [line.label for line in measured.writes if not line.in_place and line.phases]:
        remarks.append(f"{', '.join(masked)}: what was deleted or replaced stays in the index, masked.")
    return remarks


def _filters_table(lines: list[FilterTest], k: int) -> Table:
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
    return Table(heads, rows, range(2, 8), keys=2)


def _cold_table(lines: list[ColdStart]) -> Table:
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
    return Table(heads, rows, range(1, len(heads)))
