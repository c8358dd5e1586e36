"""The comparison matrix, the same words and figures in the terminal and in Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.measures import Measure
from harness.results import Loss, Row, Summary

if TYPE_CHECKING:
    from rich.console import RenderableType

BEST, TIED, DOUBT, MET, MISSED = "★", "≈", "?", "✓", "✗"
LEGEND = (
    f"{BEST} best   {TIED} can't be told from the best (paired randomisation test, Holm, 5%)   "
    f"{MET} {MISSED} target met, missed   {DOUBT} timing can't be trusted, see below"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and how it stands out."""

    text: str
    style: str = ""


def heads(summary: Summary) -> list[str]:
    """The columns, in the order of the decision: who, how good, how fast, how dear."""
    labels = [Measure.parse(measure).label for measure in _columns(summary)]
    labels = [f"{label} [95%]" if measure == summary.verdict.measure else label
              for label, measure in zip(labels, _columns(summary), strict=True)]  # fmt: skip
    return ["Model", "Store", *labels, "embed p50 ms", "search p50 ms", "total p95 ms", "cost $"]


def _columns(summary: Summary) -> list[str]:
    return list(dict.fromkeys([*summary.matrix_measures, summary.verdict.measure]))


def table(summary: Summary) -> list[list[Cell]]:
    """One list of cells a row: contenders by the deciding measure, then what did not run, then the two scales."""
    ran = [row for row in summary.rows if row.kind != "baseline" and row.not_run is None]
    ran.sort(key=lambda row: -row.measures[summary.verdict.measure].mean)
    lost = [row for row in summary.rows if row.not_run is not None]
    scales = [row for row in summary.rows if row.kind == "baseline"]
    best = {
        measure: max((round(row.measures[measure].mean, 12) for row in ran), default=0.0)
        for measure in _columns(summary)
    }
    return [_cells(row, summary, best) for row in (*ran, *scales)] + [_lost(row, summary) for row in lost]


def _cells(row: Row, summary: Summary, best: dict[str, float]) -> list[Cell]:
    name = Cell(_name(row), "italic" if row.kind == "baseline" else "bold")
    measures = [_measure(row, measure, summary, best[measure]) for measure in _columns(summary)]
    return [name, Cell(row.store or "–"), *measures, *_latency(row), _cost(row)]


def _name(row: Row) -> str:
    """The contender without its store, which has a column of its own."""
    return row.label.removesuffix(f"+{row.store}")


def _measure(row: Row, measure: str, summary: Summary, best: float) -> Cell:
    value = row.measures[measure]
    text, style = f"{value.mean:.3f}", ""
    if measure == summary.verdict.measure and value.low is not None and value.high is not None:
        text += f" [{value.low:.2f}, {value.high:.2f}]"
    if row.kind != "baseline" and round(value.mean, 12) == best:
        text, style = f"{text} {BEST}", "bold green"
    elif row.ties.get(measure):
        text, style = f"{text} {TIED}", "green"
    if measure in row.targets:
        text += f" {MET if row.targets[measure] else MISSED}"
    return Cell(text, style)


def _latency(row: Row) -> list[Cell]:
    if row.latency is None:
        return [Cell("–")] * 3
    mark = f" {DOUBT}" if row.latency.doubts else ""
    figures = (row.latency.embed.p50, row.latency.search.p50, row.latency.total.p95)
    return [Cell("–" if figure is None else f"{figure:.2f}{mark}", "yellow" if mark else "") for figure in figures]


def _cost(row: Row) -> Cell:
    if row.cost is None:
        return Cell("–")
    if row.cost.usd is None:
        return Cell("unknown")
    about = "~" if row.cost.tokens_estimated and row.cost.usd else ""
    return Cell("0" if row.cost.usd == 0 else f"{about}{row.cost.usd:.6f}")


def _lost(row: Row, summary: Summary) -> list[Cell]:
    reason = Cell(f"not run: {row.not_run}", "dim")
    return [Cell(_name(row), "dim"), Cell(row.store or "–", "dim"), reason, *[Cell("")] * (len(heads(summary)) - 3)]


def notes(summary: Summary) -> list[str]:
    """What must be read with the figures: warnings, doubts about timings, stability."""
    found = list(summary.warnings)
    reasons: dict[str, list[str]] = {}
    for row in summary.rows:
        found += [f"{row.label}: {warning}" for warning in row.warnings]
        for doubt in row.latency.doubts if row.latency else []:
            reasons.setdefault(doubt, []).append(row.label)
        if row.loss is not None:
            found.append(f"{row.label}: {_lost_to_the_index(row.loss)}")
    found += [f"{DOUBT} {_who(labels, summary)}: {doubt}" for doubt, labels in reasons.items()]
    if summary.lineup["rounds"] > 1 and not any(row.stable is False for row in summary.rows):
        found.append(f"Stable: all {summary.lineup['rounds']} rounds ranked identically.")
    return found


def _lost_to_the_index(loss: Loss) -> str:
    return (
        f"NDCG@10 {loss.ndcg_exact:.3f} under exact search, {loss.ndcg_lost + 0.0:.3f} of it lost by the index; "
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


def markdown(summary: Summary) -> str:
    """`matrix.md`."""
    lines = [f"# {headline(summary)}", "", *(f"- {sentence}" for sentence in summary.verdict.sentences), ""]
    columns = heads(summary)
    lines += ["| " + " | ".join(columns) + " |", "|" + "|".join(["---"] * 2 + ["--:"] * (len(columns) - 2)) + "|"]
    lines += ["| " + " | ".join(_escaped(cell.text) for cell in cells) + " |" for cells in table(summary)]
    lines += ["", LEGEND, "", *(f"- {note}" for note in notes(summary)), "", _made(summary)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _made(summary: Summary) -> str:
    machine = summary.machine
    return (
        f"Made {summary.started} on {machine.cpu} ({machine.cores} cores, load {machine.load_before} before and "
        f"{machine.load_after} after), Python {machine.python}; task fingerprint {summary.task.fingerprint}."
    )


def terminal(summary: Summary) -> RenderableType:
    """The matrix for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=headline(summary), title_justify="left", header_style="bold", pad_edge=False)
    for place, head in enumerate(heads(summary)):
        grid.add_column(head, justify="left" if place < 2 else "right", overflow="fold")
    for cells in table(summary):
        grid.add_row(*(Text(cell.text, style=cell.style) for cell in cells))
    parts: list[RenderableType] = [grid, Text(LEGEND, style="dim"), Text("")]
    parts += [Text(sentence) for sentence in summary.verdict.sentences]
    parts += [Text(note, style="yellow" if note.startswith(DOUBT) else "dim") for note in notes(summary)]
    return Group(*parts)
