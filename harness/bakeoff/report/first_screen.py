"""The first screen of a result, at most 30 lines: decision, table, picks, notes, failures, next commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from bakeoff.core.printable import PIPE_WIDTH, wrap
from bakeoff.report.brief_notes import brief_notes, list_failures, not_run_sentence
from bakeoff.report.groups import RowGroup, shorten
from bakeoff.report.numbers import duration, enumeration, milliseconds
from bakeoff.report.score_table import SHORTEST_LABEL, ScoreTable, StoreTable, legend, p50, screen_line
from bakeoff.report.verdict_words import NOT_SETTLED, Findings, decision, pick_lines, plural, unreliable
from bakeoff.report.words import WEIGHTED
from bakeoff.results.schema import Summary

MOST_LINES = 30
FEWEST_ROWS = 6
MOST_NOTES = 4
MOST_FAILED = 2


@dataclass(frozen=True, slots=True)
class Links:
    """Commands for a result's page and full figures, and its folder; empty if it has none."""

    page: str = ""
    full: str = ""
    folder: str = ""


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """A result on one screen."""

    summary: Summary
    links: Links = Links()
    choice: str = ""  # the choice within limits

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from screen_lines(self.summary, self.links, options.max_width, self.choice)


def first_screen_text(summary: Summary, width: int = PIPE_WIDTH) -> str:
    """The same without colours, for `print` in Python."""
    return "\n".join(line.plain for line in screen_lines(summary, Links(), width))


def screen_lines(summary: Summary, links: Links, width: int, choice: str = "") -> list[Text]:
    """All lines. The table gets the remaining space; if that is little, picks and notes are dropped first."""
    found = Findings(summary)
    if not found.groups:
        failures = _section(_failure_lines(summary, width))
        return [*_decision_lines(found, width), *failures, *_section(_links(links, width))]
    table = StoreTable(found) if found.compares_stores else ScoreTable(found)
    head = [
        *_decision_lines(found, width),
        screen_line(""),
        *_paragraph(caption(found, table.constants, width), width, "dim"),
    ]
    under = _paragraph(legend(found, found.groups, width, bars=isinstance(table, ScoreTable)), width, "dim")
    picks, stores = _pick_lines(found, width), _store_lines(found, width)
    notes = [_cut(note, width) for note in brief_notes(found)]
    every, lost, links_ = len(notes), _failure_lines(summary, width), _links(links, width)
    if every > MOST_NOTES:
        notes = [*notes[: MOST_NOTES - 1], _more_notes(every - MOST_NOTES + 1, links)]

    def rest() -> list[Text]:
        return [
            *under,
            *_section([*picks, *stores, *_paragraph(choice, width)]),
            *_section([*notes, *lost]),
            *_section(links_),
        ]

    def room() -> int:
        return MOST_LINES - len(head) - len(rest()) - 1

    enough = min(FEWEST_ROWS, table.length)
    if room() < enough:
        picks = picks[:2]
    if room() < enough:
        stores = []
    while room() < enough and len(notes) > 1:
        notes = [*notes[:-2], _more_notes(every - len(notes) + 2, links)]
    return [*head, *table.lines(width, max(room(), 1), links.full), *rest()]


def _decision_lines(found: Findings, width: int) -> list[Text]:
    said = decision(found)
    lines = _paragraph(said.headline, width, "bold") + _paragraph(said.advice, width)
    for line in _paragraph(said.unsettled, width):
        if line.plain.startswith(NOT_SETTLED):
            line.stylize("yellow", 0, len(NOT_SETTLED))
        lines.append(line)
    return lines + _paragraph(said.meaning, width)


def caption(found: Findings, constants: Sequence[str], width: int) -> str:
    """Task, size and contenders, plus figures shared by all rows as far as they fit."""
    summary = found.summary
    task, rows = summary.task, [row for row in summary.rows if row.row_type != "baseline"]
    ran, failed = len(summary.ran), len(list_failures(summary))
    documents = f"{task.documents:,} {plural(task.item, task.documents)}"
    if task.drawn_from:
        documents += f" of {task.drawn_from:,}"
    ran_of = f"{ran} of {len(rows)} contenders ran" if ran < len(rows) else f"{ran} {plural('contender', ran)}"
    weighted = [WEIGHTED] if task.weighting else []
    ran_of += f" ({failed} failed)" if failed else ""
    parts = [documents, found.asked, ran_of, duration(summary.seconds), *weighted]
    line = f"{summary.name}: {', '.join(parts)}"
    for constant in constants:
        if cell_len(f"{line}, {constant}") <= width:
            line += f", {constant}"
    return line


def _pick_lines(found: Findings, width: int) -> list[Text]:
    picks = [(use, shorten(label), why) for use, label, why in pick_lines(found)]
    only_best = [pick.p50_ms for pick in found.verdict.picks] == [None]  # already in the headline
    if not picks or only_best:
        return []
    for said in ("", r" p50(?=\))", r" \(\S+ ms\)"):  # times are in the table, so drop them before shortening a name
        picks = [(use, label, re.sub(said, "", why)) for use, label, why in picks]
        uses, labels, whys = (max(cell_len(pick[at]) for pick in picks) for at in range(3))
        if uses + labels + whys + 4 <= width:
            break
    labels = min(labels, max(SHORTEST_LABEL, width - uses - whys - 4))
    return [
        _cut(f"{set_cell_size(use, uses)}  {set_cell_size(shorten(label, labels), labels)}  {why}", width)
        for use, label, why in picks
    ]


def _store_lines(found: Findings, width: int) -> list[Text]:
    """Which stores score alike, and how much time the fastest saves."""
    several = [group for group in found.groups if len(group.stores) > 1]
    if not several or found.compares_stores:
        return []
    names = several[0].stores
    if any(group.stores != names for group in several):
        return []
    saved = _saving(several, names)
    first = set_cell_size("Stores", max(max((cell_len(pick[0]) for pick in pick_lines(found)), default=0), 6))
    return [_cut(f"{first}  {enumeration(names)} score alike{saved}.", width)]


def _saving(groups: Sequence[RowGroup], names: Sequence[str]) -> str:
    """How many milliseconds the faster of two stores saves in every group."""
    times = [[p50(row) for row in group.same_name] for group in groups]
    if len(names) != 2 or unreliable([row for group in groups for row in group.rows]):
        return ""
    gaps = sorted(second - first for first, second in times if first is not None and second is not None)
    if len(gaps) < len(times) or gaps[0] <= 0 <= gaps[-1]:
        return ""
    spread = dict.fromkeys(map(milliseconds, sorted((abs(gaps[0]), abs(gaps[-1])))))
    return f"; {names[gaps[0] < 0]} saves {' to '.join(spread)} ms"


def _more_notes(number: int, links: Links) -> Text:
    return screen_line(f"{number} more notes" + (f": {links.full}" if links.full else ""))


def _failure_lines(summary: Summary, width: int) -> list[Text]:
    """One line per failure, and one for contenders that did not run."""
    failed = list_failures(summary)
    shown = failed if len(failed) <= MOST_FAILED else failed[: MOST_FAILED - 1]
    names = [shorten(row.label) for row, _ in shown]
    longest = max(map(cell_len, names), default=0)
    lines = []
    for name, (_, reason) in zip(names, shown, strict=True):
        line = _cut(f"{set_cell_size(name, longest)}  failed  {reason}", width)
        line.stylize("yellow", longest + 2, longest + 2 + len("failed"))
        lines.append(line)
    lines += [screen_line(f"{len(failed) - len(shown)} more failed.")] if len(failed) > len(shown) else []
    sentence = not_run_sentence(summary)
    return lines + (_paragraph(sentence, width) if sentence else [])


def _links(links: Links, width: int) -> list[Text]:
    commands = [(links.page, "the page"), (links.full, "all figures")] if links.full else []
    longest = max((cell_len(command) for command, _ in commands), default=0)
    parts = [f"{command:<{longest}}   {what}" for command, what in commands if command]
    whole = "          ".join(f"{command}   {what}" for command, what in commands if command)
    lines = [screen_line(whole)] if cell_len(whole) <= width and whole else [screen_line(part) for part in parts]
    return lines + ([screen_line(f"Saved in {links.folder}", "dim")] if links.folder else [])


def _section(lines: Sequence[Text]) -> list[Text]:
    return [screen_line(""), *lines] if lines else []


def _paragraph(text: str, width: int, style: str = "") -> list[Text]:
    return [screen_line(line, style) for line in wrap(text, width)] if text else []


def _cut(text: str, width: int) -> Text:
    return screen_line(text if cell_len(text) <= width else f"{set_cell_size(text, width - 1).rstrip()}…")
