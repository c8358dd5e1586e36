"""The comparison matrix: the same words and figures in the terminal, in Markdown, in LaTeX and on the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bakeoff.evaluation.measures import Measure
from bakeoff.results.recommend import MEGABYTE, dollars
from bakeoff.results.schema import Loss, Row, Section, Summary
from bakeoff.results.tables import columns, ordered_rows

if TYPE_CHECKING:
    from rich.console import RenderableType

BEST, TIED, DOUBT, MET, MISSED = "★", "≈", "?", "✓", "✗"
LEGEND = (
    f"{BEST} best   {TIED} can't be told from the best (paired randomisation test, Holm, 5%)   "
    f"{MET} {MISSED} target met, missed   {DOUBT} timing can't be trusted, see below"
)
STYLES = {"name": "bold", "scale": "italic", "best": "bold green", "tied": "green", "doubt": "yellow", "lost": "dim"}


@dataclass(frozen=True, slots=True)
class Bar:
    """A mean and its interval on a measure's own scale, which runs from a random order to a perfect one."""

    mean: float
    low: float | None
    high: float | None
    floor: float | None
    ceiling: float | None
    target: float | None


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure with its interval and marks, how it stands out, and what it is sorted by."""

    figure: str
    state: str = ""
    interval: str = ""
    marks: str = ""
    value: float | None = None
    bar: Bar | None = None
    hint: str = ""

    @property
    def text(self) -> str:
        """All of it in one line."""
        return " ".join(part for part in (self.figure, self.interval, self.marks) if part)


def heads(summary: Summary) -> list[str]:
    """The columns, in the order of the decision: who, how good, how fast, how dear, how large."""
    labels = [Measure.parse(measure).label for measure in columns(summary)]
    labels = [f"{label} [95%]" if measure == summary.verdict.measure else label
              for label, measure in zip(labels, columns(summary), strict=True)]  # fmt: skip
    return [
        "Model",
        "Store",
        *labels,
        "embed p50 ms",
        "search p50 ms",
        "total p95 ms",
        "cost",
        "per M docs",
        "index MB",
    ]


def table(summary: Summary) -> list[list[Cell]]:
    """One list of cells for each of the ordered rows."""
    best = {
        measure: max((round(row.measures[measure].mean, 12) for row in summary.ran), default=0.0)
        for measure in columns(summary)
    }
    return [
        _lost(row, summary) if row.not_run is not None else _cells(row, summary, best) for row in ordered_rows(summary)
    ]


def _cells(row: Row, summary: Summary, best: dict[str, float]) -> list[Cell]:
    name = Cell(short_name(row), "scale" if row.kind == "baseline" else "name")
    measures = [_measure(row, measure, summary, best[measure]) for measure in columns(summary)]
    return [name, Cell(row.store or "–"), *measures, *_latency(row), *_cost(row), _index(row)]


def short_name(row: Row) -> str:
    """The contender without its store, which has a column of its own."""
    return row.label.removesuffix(f"+{row.store}")


def _measure(row: Row, measure: str, summary: Summary, best: float) -> Cell:
    value = row.measures[measure]
    interval = ""
    if value.low is not None and value.high is not None:
        interval = f"[{value.low:.2f}, {value.high:.2f}]"
    state, marks = "", []
    if row.kind != "baseline" and round(value.mean, 12) == best:
        state, marks = "best", [BEST]
    elif row.ties.get(measure):
        state, marks = "tied", [TIED]
    if measure in row.targets:
        marks.append(MET if row.targets[measure] else MISSED)
    scale = {each.label: each.measures[measure].mean for each in summary.rows if each.kind == "baseline"}
    return Cell(
        f"{value.mean:.3f}",
        state,
        interval if measure == summary.verdict.measure else "",
        " ".join(marks),
        value.mean,
        Bar(
            value.mean,
            value.low,
            value.high,
            scale.get("random"),
            scale.get("oracle"),
            summary.task.targets.get(measure),
        ),
        interval,
    )


def _latency(row: Row) -> list[Cell]:
    if row.latency is None:
        return [Cell("–")] * 3
    mark, why = (DOUBT, "; ".join(row.latency.doubts)) if row.latency.doubts else ("", "")
    cells = []
    for figure, n in (
        (row.latency.embed.p50, row.latency.embed.n),
        (row.latency.search.p50, row.latency.search.n),
        (row.latency.total.p95, row.latency.total.n),
    ):
        if figure is None:
            cells.append(Cell("–", hint=f"{n} samples are too few" if n else ""))
        else:
            cells.append(Cell(f"{figure:.2f}", "doubt" if mark else "", "", mark, figure, hint=why or f"{n} samples"))
    return cells


def _cost(row: Row) -> list[Cell]:
    """What this run's vectors cost, and what a million documents would."""
    if row.cost is None:
        return [Cell("–")] * 2
    about = "~" if row.cost.tokens_estimated else ""
    return [
        Cell("unknown" if usd is None else f"{about if usd else ''}{dollars(usd)}", value=usd, hint=row.cost.price)
        for usd in (row.cost.usd, row.cost.usd_per_million_documents)
    ]


def _index(row: Row) -> Cell:
    if row.index_bytes is None:
        return Cell("–")
    return Cell(f"{row.index_bytes / MEGABYTE:.2f}", value=row.index_bytes / MEGABYTE)


def _lost(row: Row, summary: Summary) -> list[Cell]:
    reason = Cell(f"not run: {row.not_run}", "lost")
    return [
        Cell(short_name(row), "lost"),
        Cell(row.store or "–", "lost"),
        reason,
        *[Cell("")] * (len(heads(summary)) - 3),
    ]


def notes(summary: Summary) -> list[str]:
    """What must be read with the figures: warnings, doubts about timings, stability."""
    found = list(summary.warnings)
    reasons: dict[str, list[str]] = {}
    lost: dict[str, list[str]] = {}
    for row in summary.rows:
        found += [f"{row.label}: {warning}" for warning in row.warnings]
        for doubt in row.latency.doubts if row.latency else []:
            reasons.setdefault(doubt, []).append(row.label)
        if row.loss is not None:
            lost.setdefault(_lost_to_the_index(row.loss), []).append(row.label)
    found += [f"{', '.join(labels)}: {loss}" for loss, labels in lost.items()]
    found += [f"{DOUBT} {_who(labels, summary)}: {doubt}" for doubt, labels in reasons.items()]
    if any(row.stable for row in summary.rows) and not any(row.stable is False for row in summary.rows):
        found.append(f"Stable: all {summary.lineup['rounds']} rounds ranked identically.")
    return found


def _lost_to_the_index(loss: Loss) -> str:
    lost = round(loss.ndcg_lost, 3) + 0.0  # no minus before a zero
    return (
        f"NDCG@10 {loss.ndcg_exact:.3f} under exact search, of which the index lost {lost:.3f}; "
        f"recall@10 against exact search {loss.recall:.3f}"
        + (f"; {loss.short} queries got shorter lists than there were documents for" if loss.short else "")
    )


def _who(labels: list[str], summary: Summary) -> str:
    timed = [row for row in summary.rows if row.latency is not None]
    return "all rows" if len(labels) == len(timed) > 1 else ", ".join(labels)


def headline(summary: Summary) -> str:
    """What was asked of whom."""
    task = summary.task
    return (
        f"{summary.name}: task {task.name} ({task.documents} documents, {task.queries} queries), "
        f"top {summary.lineup['depth']}, {summary.lineup['rounds']} rounds"
    )


def advice(summary: Summary) -> list[str]:
    """The recommendations by use, a line each."""
    return [f"{each.use}: {each.label or 'none'}. {each.why}" for each in summary.verdict.recommendations]


def made(summary: Summary) -> str:
    """When and where, in one sentence."""
    machine = summary.machine
    return (
        f"Made {summary.started} on {machine.cpu} ({machine.cores} cores, load {machine.load_before} before and "
        f"{machine.load_after} after), Python {machine.python}; task fingerprint {summary.task.fingerprint}."
    )


def terminal(summary: Summary) -> RenderableType:
    """The verdict and the matrix for a terminal."""
    from rich.console import Group
    from rich.text import Text

    from bakeoff.report.console import grid

    matrix = grid(*(head if place < 2 else f">{head}" for place, head in enumerate(heads(summary))))
    lost: list[RenderableType] = []  # a reason may be long: it stands below, so that it does not widen a column
    for row, cells in zip(ordered_rows(summary), table(summary), strict=True):
        if row.ran or row.kind == "baseline":
            matrix.add_row(*(Text(cell.text, style=STYLES.get(cell.state, "")) for cell in cells))
        else:
            lost.append(Text(f"{row.label} {cells[2].text}", style=STYLES["lost"]))
    parts: list[RenderableType] = [Text(headline(summary), style="bold"), matrix, *lost]
    parts += [Text(LEGEND, style="dim"), Text("")]
    parts += [Text(sentence) for sentence in summary.verdict.sentences]
    parts += [Text(""), *(Text(line) for line in advice(summary)), Text("")]
    parts += [Text(note, style="yellow" if note.startswith(DOUBT) else "dim") for note in notes(summary)]
    for section in summary.sections:
        parts += [Text(""), _section_grid(section), *(Text(note, style="dim") for note in section.notes)]
    return Group(*parts)


def _section_grid(section: Section) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from bakeoff.report.console import grid

    title = Text(section.title, style="bold")
    if not section.head:
        return title
    table = grid(*(head if place == 0 else f">{head}" for place, head in enumerate(section.head)))
    for cells in section.rows:
        table.add_row(*map(Text, cells))
    return Group(title, table)
