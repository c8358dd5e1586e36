"""The page that a person sends to their team: verdict, matrix, charts, queries, and how it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.toml import lineup_text
from bakeoff.report import plots
from bakeoff.report.charts import Chart, available, colours, shapes
from bakeoff.report.frame import document, facts, figures, plain_table
from bakeoff.report.matrix import DOUBT, LEGEND, Bar, Cell, heads, notes, short_name, table
from bakeoff.report.page_data import payload
from bakeoff.report.provenance import USE_HEADS, run_facts, task_facts, use_table
from bakeoff.results.schema import Detailed, Row, Section, Summary
from bakeoff.results.tables import ordered_rows

_LIMITS = (
    ("p95", "Latency, p95", "ms"),
    ("cost", "Cost, a million documents", "$"),
    ("index", "Memory, the index", "MB"),
)
_SHAPES = {
    "circle": '<circle cx="6" cy="6" r="4.5"/>',
    "square": '<rect x="2" y="2" width="8" height="8"/>',
    "triangle-up": '<path d="M6 1.5 10.8 10.2H1.2Z"/>',
    "diamond": '<path d="M6 .8 11 6 6 11.2 1 6Z"/>',
    "cross": '<path d="M4.4 1h3.2v3.4H11v3.2H7.6V11H4.4V7.6H1V4.4h3.4Z"/>',
    "triangle-down": '<path d="M6 10.5 1.2 1.8h9.6Z"/>',
}


def page(summary: Summary, detailed: Detailed, made: Sequence[Chart] | None = None) -> str:
    """`evaluation_report.html`, from the two files of a result alone."""
    if made is None:
        made = plots.charts(summary, detailed) if available() else []
    body = "<main>" + _verdict(summary) + _matrix(summary) + _sections(summary) + _charts(summary, detailed, made)
    body += _queries(summary) + _measured(summary, detailed) + "</main>"
    data = payload(summary, detailed) | {"colours": _label_colours(summary)}
    return document(f"{summary.name}: {summary.task.name}", body, data, made)


def _label_colours(summary: Summary) -> dict[str, str]:
    palette = colours(summary)
    return {row.label: palette[name] for row in summary.rows if (name := short_name(row)) in palette}


def _verdict(summary: Summary) -> str:
    task = summary.task
    what = f"{task.documents:,} documents · {task.queries:,} queries · {summary.started[:10]}"
    first, *rest = summary.verdict.sentences
    sections = (("matrix", "Matrix"), ("charts", "Charts"), ("queries", "Queries"), ("measured", "How it was measured"))
    nav = "".join(f'<a href="#{key}">{name}</a>' for key, name in sections)
    name = escape(summary.name if summary.name == task.name else f"{summary.name}: {task.name}")
    return (
        f'<header><div><h1>Bakeoff · {name}</h1><p class="sub">{escape(what)}</p></div>'
        f'<nav aria-label="Sections">{nav}</nav></header>'
        f'<section id="verdict" aria-label="Verdict"><p class="lead">{escape(first)}</p>'
        f'<div class="prose">{"".join(f"<p>{escape(sentence)}</p>" for sentence in rest)}</div>'
        + _recommendations(summary)
        + "</section>"
    )


def _recommendations(summary: Summary) -> str:
    if not summary.verdict.recommendations:
        return ""
    cards = "".join(
        f'<div class="card"><h3>{escape(each.use)}</h3><p class="pick">{escape(each.label or "none")}</p>'
        f"<p>{escape(each.why)}</p></div>"
        for each in summary.verdict.recommendations
    )
    fields = "".join(
        f'<div class="limit"><label for="limit-{key}">{name}</label><div class="row">'
        f'<input type="range" id="slide-{key}" data-limit="{key}" aria-label="{name}, slider">'
        f'<span class="unit">{"$" if unit == "$" else ""}<input type="number" min="0" step="any" id="limit-{key}" '
        f'placeholder="no limit">{"" if unit == "$" else unit}</span></div></div>'
        for key, name, unit in _LIMITS
    )
    return (
        f'<h2>Which to choose</h2><div class="cards">{cards}</div>'
        f'<form class="limits" id="limits"><fieldset><legend>Your limits</legend>'
        f'<div class="fields">{fields}<label class="check"><input type="checkbox" id="limit-offline"> offline only'
        f'</label></div></fieldset><p class="choice" aria-live="polite"><span class="tag">Within these limits</span> '
        f'<output id="choice"></output></p></form>'
    )


def _matrix(summary: Summary) -> str:
    names = heads(summary)
    head = "".join(
        f'<th scope="col" data-column="{place}"{" class=text" if place < 2 else ""}>'
        f'<button type="button">{_broken(name)}</button></th>'
        for place, name in enumerate(names)
    )
    body = "".join(_row(row, cells, names) for row, cells in zip(ordered_rows(summary), table(summary), strict=True))
    options = "".join(f'<option value="{place}">{escape(name)}</option>' for place, name in enumerate(names))
    remarks = "".join(
        f"<li{' class=doubt' if note.startswith(DOUBT) else ''}>{escape(note)}</li>" for note in notes(summary)
    )
    return (
        '<section id="matrix"><h2>Matrix</h2><div class="tools">'
        '<input type="search" id="filter" placeholder="Filter by model or store" aria-label="Filter by model or store">'
        '<label class="check"><input type="checkbox" id="only-tied"> only the tie group</label>'
        '<label class="check"><input type="checkbox" id="only-kept"> only within your limits</label>'
        f'<label class="sorter">Sort by <select id="sorter">{options}</select></label></div>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Matrix">'
        f'<table class="matrix"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<p class="note legend">{_legend_line(summary)}</p><ul class="notes">{remarks}</ul></section>'
    )


def _broken(name: str) -> str:
    """Units and intervals go to a second line of a table head."""
    for part in (" [95%]", " p50 ms", " p95 ms", " MB", " M docs"):
        if name.endswith(part):
            return f"<span>{escape(name.removesuffix(part))}</span><small>{escape(part.strip())}</small>"
    return f"<span>{escape(name)}</span>"


def _sections(summary: Summary) -> str:
    """The tables that the task's kind adds."""
    return "".join(map(_section, summary.sections))


def _section(section: Section) -> str:
    remarks = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
    grid = plain_table(section.head, section.rows, label=section.title) if section.head else ""
    return f'<section><h2>{escape(section.title)}</h2>{grid}<ul class="notes">{remarks}</ul></section>'


def _legend_line(summary: Summary) -> str:
    """The words of the terminal's legend, and how to read a bar."""
    bar = Bar(0.62, 0.5, 0.74, 0.2, 1.0, 0.88 if summary.task.targets else None)
    target = ", the upright is the target" if summary.task.targets else ""
    scale = f"mean, 95% interval; the line runs from a random order to a perfect one{target}"
    words = "".join(f"<span>{escape(part)}</span>" for part in LEGEND.split("   "))
    return f'<span class="key">{_bar(bar)} {scale}</span>{words}'


def _row(row: Row, cells: Sequence[Cell], names: Sequence[str]) -> str:
    kind = "lost" if row.not_run is not None else "scale" if row.kind == "baseline" else "ran"
    tied = " tied" if any(cell.state in ("best", "tied") and cell.interval for cell in cells) else ""
    head = (
        f'<tr class="{kind}{tied}" data-label="{escape(row.label)}" data-find="{escape(_find(row))}">'
        f'<th scope="row">{escape(cells[0].text)}</th><td class="text" data-head="Store">{escape(cells[1].text)}</td>'
    )
    if row.not_run is not None:
        return f'{head}<td class="text reason" colspan="{len(names) - 2}">{escape(cells[2].text)}</td></tr>'
    return head + "".join(_cell(cell, name) for cell, name in zip(cells[2:], names[2:], strict=True)) + "</tr>"


def _find(row: Row) -> str:
    return " ".join((row.label, row.provider, row.model, row.store)).lower()


def _cell(cell: Cell, name: str) -> str:
    value = "" if cell.value is None else f' data-value="{cell.value!r}"'
    hint = f' title="{escape(cell.hint)}"' if cell.hint else ""
    marks = f'<span class="marks">{escape(cell.marks)}</span>' if cell.marks or cell.bar or name.endswith(" ms") else ""
    bar = f"{_bar(cell.bar)}" if cell.bar else ""
    interval = f'<span class="interval">{escape(cell.interval)}</span>' if cell.interval else ""
    state = cell.state or ("empty" if cell.figure == "–" else "")
    return (
        f'<td class="{state}" data-head="{escape(name)}"{value}{hint}>'
        f'<span class="figure">{escape(cell.figure)}</span>{marks}{bar}{interval}</td>'
    )


def _bar(bar: Bar) -> str:
    """A tiny scale in plain elements: the track from random to oracle, the interval on it, the mean."""
    floor, ceiling = bar.floor or 0.0, 1.0 if bar.ceiling is None else bar.ceiling
    parts = f'<i class="track" style="left:{floor:.1%};right:{1 - ceiling:.1%}"></i>'
    if bar.low is not None and bar.high is not None:
        parts += f'<i class="band" style="left:{bar.low:.1%};right:{1 - bar.high:.1%}"></i>'
    if bar.target is not None:
        parts += f'<i class="target" style="left:{bar.target:.1%}"></i>'
    return f'<span class="bar" aria-hidden="true">{parts}<i class="mean" style="left:{bar.mean:.1%}"></i></span>'


def _charts(summary: Summary, detailed: Detailed, made: Sequence[Chart]) -> str:
    if summary.verdict.best is None:
        return ""
    names = [contender.label for contender in detailed.contenders]
    extra: dict[str, str] = {}
    if len(names) > 1:
        first, second = plots.opponents(summary)
        choices = "".join(
            f'<label>{text} <select id="versus-{key}">'
            + "".join(
                f'<option value="{place}"{" selected" if name == chosen else ""}>{escape(name)}</option>'
                for place, name in enumerate(names)
            )
            + "</select></label>"
            for key, text, chosen in (("a", "First", first), ("b", "Second", second))
        )
        extra["differences"] = f'<div class="tools">{choices}</div><p id="versus" class="note" aria-live="polite"></p>'
    legend = _legend(colours(summary), shapes(summary)) if made else ""
    return f'<section id="charts"><h2>Charts</h2>{legend}{figures(made, extra)}</section>'


def _legend(palette: Mapping[str, str], shapes: Mapping[str, str]) -> str:
    colours = "".join(
        f'<li><i class="dot" style="background:var(--{colour})"></i>{escape(name)}</li>'
        for name, colour in palette.items()
    )
    stores = "".join(
        f'<li><svg width="12" height="12" aria-hidden="true">{_SHAPES[shape]}</svg>'
        f"{escape('no store' if store == 'none' else store)}</li>"
        for store, shape in shapes.items()
    )
    return f'<ul class="swatches">{colours}</ul><ul class="swatches stores">{stores}</ul>'


def _queries(summary: Summary) -> str:
    if summary.verdict.best is None:
        return ""
    label = escape(Measure.parse(summary.verdict.measure).label)
    categories = "".join(
        f'<option value="{escape(category)}">{escape(category)}</option>' for category in summary.task.categories
    )
    chooser = (
        f'<label>Category <select id="category"><option value="">all</option>{categories}</select></label>'
        if categories
        else ""
    )
    return (
        '<section id="queries"><h2>Queries</h2><div class="tools">'
        '<input type="search" id="find" placeholder="Search queries and documents" '
        f'aria-label="Search queries and documents">{chooser}'
        '<label>Order <select id="order"><option value="task">as in the task</option>'
        '<option value="hard">hardest for the best first</option>'
        '<option value="spread">widest spread first</option></select></label>'
        '<label class="check"><input type="checkbox" id="missed"> only where the best missed something</label></div>'
        f'<p class="note"><span id="count"></span> The dots are the contenders’ {label}, from 0 to 1; '
        f"the figure is that of {escape(summary.verdict.best)}.</p>"
        '<div id="list"></div><button type="button" id="more" hidden>Show more</button>'
        '<noscript><p class="note">This list needs JavaScript; the figures above do not.</p></noscript></section>'
    )


def _measured(summary: Summary, detailed: Detailed) -> str:
    again = summary.command or "bakeoff run lineup.toml"
    hint = "" if summary.command else " (with the line-up below in lineup.toml)"
    return (
        '<section id="measured"><h2>How this was measured</h2><div class="two">'
        f"<div><h3>The task</h3>{facts(task_facts(summary, detailed))}</div>"
        f"<div><h3>The run</h3>{facts(run_facts(summary))}</div></div>"
        "<h3>What each contender took</h3>"
        + plain_table(USE_HEADS, use_table(summary), label="What each contender took")
        + f"<h3>Make it again</h3><pre><code>{escape(again)}</code></pre>"
        + (f'<p class="note">{hint.strip()}</p>' if hint else "")
        + "<details><summary>The line-up</summary>"
        f"<pre><code>{escape(lineup_text(summary.lineup))}</code></pre></details></section>"
    )
