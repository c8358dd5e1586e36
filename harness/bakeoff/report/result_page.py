"""The page that a person sends to their team: verdict, matrix, charts, queries, and how it was measured."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bakeoff.core.facts import Section
from bakeoff.core.printable import pluralise
from bakeoff.lineup.lineup import lineup_text
from bakeoff.report import plots
from bakeoff.report.brief_notes import brief_notes
from bakeoff.report.charts import Chart, available, shapes
from bakeoff.report.exports import EXPORTS
from bakeoff.report.first_screen import caption
from bakeoff.report.frame import Head, document
from bakeoff.report.further_words import further_sentences
from bakeoff.report.groups import shorten
from bakeoff.report.notes import notes
from bakeoff.report.page_data import acting_limits, page_matrix, payload, pull_request_text, shown_contenders
from bakeoff.report.sections import text_table
from bakeoff.report.verdict_words import Findings, decision, pick_lines
from bakeoff.report.words import WEIGHTED, failure_words, price_words
from bakeoff.results.schema import Cost, Detailed, Latency, Row, Summary

WIDEST = 160  # characters of the line under the title
Facts = list[tuple[str, str]]


def task_facts(summary: Summary, detailed: Detailed) -> Facts:
    """Facts about the task and its judgments."""
    task = summary.task
    grades = Counter(grade for query in detailed.queries.values() for grade in query.grades.values())
    relevant = [sum(grade >= task.rel for grade in query.grades.values()) for query in detailed.queries.values()]
    drawn = f" drawn from {task.drawn_from:,}, with all that have a grade" if task.drawn_from else ""
    cut = f", cut into {task.chunks:,}" if task.chunks != task.documents else ""
    facts: Facts = [
        ("Task", f"{task.name} ({task.kind}), fingerprint {task.fingerprint}"),
        *([("About", task.about)] if task.about else []),
        ("Documents", f"{task.documents:,}{drawn}{cut}"),
        ("Queries", f"{task.queries:,}" + (f" in {len(task.categories)} categories" if task.categories else "")),
    ]
    if grades:
        shares = ", ".join(f"{count:,} of grade {grade}" for grade, count in sorted(grades.items(), reverse=True))
        facts.append(("Judgments", f"{sum(grades.values()):,}: {shares}; relevant = grade ≥ {task.rel}"))
        facts.append(
            ("Relevant per query", f"median {statistics.median(relevant):g}, {min(relevant)} to {max(relevant)}")
        )
    unjudged = {row.label: row.measures["judged@10"].mean for row in summary.ran if "judged@10" in row.measures}
    if unjudged:
        least = min(unjudged, key=lambda label: unjudged[label])
        facts.append(("Judged among the first 10", f"{unjudged[least]:.0%} or more (least: {least})"))
    lost = ", ".join(task.without_relevant)
    facts.append(("Queries without a relevant document", lost or "none"))
    return facts


def run_facts(summary: Summary) -> Facts:
    """Facts about the run: date, machine, versions, settings."""
    machine, lineup = summary.machine, summary.lineup
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    tests = "confidence set of the best (max-T), exact intervals of means, pairs guarded against rare failures"
    if summary.task.weighting:
        tests = f"{WEIGHTED}; {tests}"
    return [
        ("Run", f"{summary.started}, in {summary.seconds:.1f} s"),
        ("Machine", f"{machine.cpu}, {machine.cores} cores, {machine.memory_gb:g} GB, {machine.system}"),
        ("Load", f"{machine.load_before:g} before, {machine.load_after:g} after"),
        ("Threads", ", ".join(f"{name} {value}" for name, value in machine.threads.items()) or "not pinned"),
        ("Versions", f"Python {machine.python}, {versions}"),
        ("Asked", f"top {lineup['depth']}, {pluralise(lineup['rounds'], 'round')}, seed {lineup['seed']}"),
        ("Statistics", f"paired by query; {tests}"),
    ]


@dataclass(frozen=True, slots=True)
class Use(Head):
    """A column of the resources table, with a function for its cells."""

    text: Callable[[Row], str] = str


def _cost_column(name: str, figure: Callable[[Cost], int]) -> Use:
    return Use(name, text=lambda row: _number(figure(row.cost) if row.cost else None))


def _latency_column(name: str, figure: Callable[[Latency], float | None], form: str = ",") -> Use:
    return Use(name, text=lambda row: _number(figure(row.latency) if row.latency else None, form))


USE = (
    Use("Contender", is_text=True, text=lambda row: row.label),
    Use("Model", is_text=True, text=lambda row: row.model),
    Use("Dimensions", text=lambda row: _number(row.dimensions)),
    Use("Build s", text=lambda row: _number(row.build_seconds, ".3f")),
    _latency_column("Cold embed ms", lambda latency: latency.cold_embed_ms, ".1f"),
    _latency_column("Cold search ms", lambda latency: latency.cold_search_ms, ".1f"),
    _latency_column("Samples", lambda latency: latency.search.n),
    Use("Tokens", text=lambda row: _tokens(row.cost)),
    _cost_column("Requests", lambda cost: cost.requests),
    _cost_column("Retries", lambda cost: cost.retries),
    _cost_column("From cache", lambda cost: cost.cached),
    Use("Truncated", text=lambda row: _cut(row.cost)),
    Use("Paid now $", text=lambda row: _number(row.cost.usd_paid if row.cost else None, ",.6g")),
    Use("Price", is_text=True, text=lambda row: price_words(row.cost.list_price if row.cost else None) or "–"),
)


def use_table(summary: Summary) -> list[list[str]]:
    """The resources table: build, cold calls, samples, tokens, requests, cache."""
    return [[column.text(row) for column in USE] for row in summary.ran]


def _cut(cost: Cost | None) -> str:
    """The truncation cell. Cached texts were truncated when embedded and are not counted again."""
    if cost is None or (cost.cached and not cost.truncated):
        return "–"
    return f"≥ {cost.truncated:,}" if cost.cached else f"{cost.truncated:,}"


def _tokens(cost: Cost | None) -> str:
    if cost is None or not cost.tokens:
        return "–"
    return ("~" if cost.tokens_estimated else "") + f"{cost.tokens:,.0f}"


def _number(value: float | None, form: str = ",") -> str:
    return "–" if value is None else f"{value:{form}}"


def page(summary: Summary, detailed: Detailed, charts: Sequence[Chart] | None = None) -> str:
    """Renders `evaluation_report.html` from the result's two files."""
    detailed = shown_contenders(summary, detailed)
    if charts is None:
        charts = plots.charts(summary, detailed) if available() else []
    found = Findings(summary)
    matrix = page_matrix(found) if found.groups else None
    names = [contender.label for contender in detailed.contenders]
    limits = acting_limits(summary) if len(summary.ran) > 1 else []
    content = {
        "summary": summary,
        "about": caption(found, matrix.constants if matrix else (), WIDEST).partition(": ")[2],
        "measure": summary.label(summary.verdict.measure),
        "decision": decision(found),
        "leader": found.name(summary.verdict.leader),
        "picks": [(use, shorten(label), why) for use, label, why in pick_lines(found) if len(summary.ran) > 1],
        "limits": limits,
        "offline": len({row.local for row in summary.ran}) > 1,
        "matrix": matrix,
        "brief": brief_notes(found),
        "lost": [(row.label, failure_words(row.not_run)) for row in summary.rows if row.not_run is not None],
        "notes": [*further_sentences(summary), *(note.sentence for note in notes(summary))],
        "left_out": _left_out(summary, detailed),
        "sections": [_section(section) for section in summary.sections],
        "palette": plots.palette(found),
        "shapes": shapes(summary) if summary.ran else {},
        "contenders": names,
        "opponents": plots.opponents(summary) if len(summary.ran) > 1 else None,
        "task_facts": task_facts(summary, detailed),
        "run_facts": run_facts(summary),
        "use_columns": USE,
        "use_rows": use_table(summary),
        "lineup": lineup_text(summary.lineup),
    }
    data = payload(summary, detailed)
    if matrix:
        files = {name: _text(export(summary)) for name, export in EXPORTS.items() if name != "matrix.md"}
        data["exports"] = files | {"pull-request.md": pull_request_text(found, matrix)}
    return document("result.html", content, data, charts)


def _text(content: str | bytes) -> str:
    """A file's text. JSON loses its indentation, which the page's script restores."""
    return content if isinstance(content, str) else msgspec.json.format(content, indent=0).decode()


def _left_out(summary: Summary, shown: Detailed) -> str:
    parts = []
    if len(shown.queries) < summary.task.queries:
        parts.append(f"the first {len(shown.queries):,} of {summary.task.queries:,} queries")
    if len(shown.contenders) < len(summary.ran):
        parts.append(f"the {len(shown.contenders)} best of {len(summary.ran)} contenders")
    return f"This page has {' and '.join(parts)}; detailed_results.json has the rest." if parts else ""


def _section(section: Section) -> dict[str, Any]:
    """A table of the task's kind. The first column names the row."""
    table = text_table(section)
    heads = [Head(name, is_text=place == 0) for place, name in enumerate(table.heads)]
    return {"title": table.title, "heads": heads, "rows": table.rows, "notes": table.notes}
