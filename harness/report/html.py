"""The page that a person sends to their team: one file, no network, everything from data escaped."""

from __future__ import annotations

from html import escape

from harness.report.matrix import LEGEND, headline, heads, notes, table
from harness.results import Section, Summary

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; white-space: nowrap; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:nth-child(-n+2), td:nth-child(-n+2), td[colspan] { text-align: left; }
small, .note { opacity: .8; }
"""


def page(summary: Summary) -> str:
    """`evaluation_report.html`."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads(summary))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell.text)}</td>" for cell in cells) + "</tr>" for cells in table(summary)
    )
    verdict = "".join(f"<p>{escape(sentence)}</p>" for sentence in summary.verdict.sentences)
    remarks = "".join(f"<li>{escape(note)}</li>" for note in notes(summary))
    sections = "".join(map(_section, summary.sections))
    title = escape(headline(summary))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{title}</h1>{verdict}"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f"<p><small>{escape(LEGEND)}</small></p><ul class=note>{remarks}</ul>{sections}</body></html>\n"
    )


def _section(section: Section) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in section.head)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells) + "</tr>" for cells in section.rows)
    remarks = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
    return (
        f'<h2>{escape(section.title)}</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div><ul class=note>{remarks}</ul>"
    )
