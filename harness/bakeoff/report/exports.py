"""The matrix for other programs and papers: Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import msgspec

from bakeoff.core.markdown import inert, markdown_table, section_lines
from bakeoff.report.matrix import LEGEND, Cell, advice, headline, heads, made, notes, table
from bakeoff.results.schema import Summary
from bakeoff.results.tables import matrix_table, ordered_rows

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "★": r"$\star$", "≈": r"$\approx$", "✓": r"$\checkmark$",
    "✗": r"$\times$", "–": "--", "×": r"$\times$", "≥": r"$\geq$", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def exports(summary: Summary) -> dict[str, str | bytes]:
    """Every export by its file name."""
    return {
        "matrix.md": markdown(summary),
        "matrix.tex": latex(summary),
        "matrix.csv": csv_text(summary),
        "matrix.json": json_bytes(summary),
    }


def markdown(summary: Summary) -> str:
    """`matrix.md`."""
    lines = [f"# {inert(headline(summary))}", "", *(f"- {inert(line)}" for line in summary.verdict.sentences), ""]
    lines += markdown_table(heads(summary), [[cell.text for cell in cells] for cells in table(summary)], figures_from=2)
    lines += ["", LEGEND, "", *(f"- {inert(line)}" for line in advice(summary))]
    lines += ["", *(f"- {inert(note)}" for note in notes(summary)), ""]
    for section in summary.sections:
        lines += section_lines(section.title, section.head, section.rows, section.notes)
    return "\n".join([*lines, inert(made(summary))]) + "\n"


def latex(summary: Summary) -> str:
    """`matrix.tex`: a booktabs table to \\input; the best in bold, ties in italics."""
    names = heads(summary)
    lines = [
        r"% needs \usepackage{booktabs,amssymb}",
        rf"\begin{{tabular}}{{ll{'r' * (len(names) - 2)}}}",
        r"\toprule",
        " & ".join(_tex(name) for name in names) + r" \\",
        r"\midrule",
    ]
    for row, cells in zip(ordered_rows(summary), table(summary), strict=True):
        if row.not_run is not None:
            reason = rf"\multicolumn{{{len(names) - 2}}}{{l}}{{{_tex(cells[2].text)}}}"
            lines.append(f"{_tex(cells[0].text)} & {_tex(cells[1].text)} & {reason} " + r"\\")
        else:
            lines.append(" & ".join(map(_tex_cell, cells)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _tex_cell(cell: Cell) -> str:
    face = {"best": r"\textbf{%s}", "tied": r"\textit{%s}", "scale": r"\textit{%s}"}.get(cell.state, "%s")
    return face % _tex(cell.text)


def _tex(text: str) -> str:
    return re.sub(r"[\\&%$#_{}~^★≈✓✗–×≥<>]", lambda found: _LATEX[found[0]], " ".join(text.split()))


def csv_text(summary: Summary) -> str:
    """`matrix.csv`; a text that a spreadsheet would run as a formula is quoted away."""
    rows = matrix_table(summary)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _inert(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value


def json_bytes(summary: Summary) -> bytes:
    """`matrix.json`: the records with the verdict and what they were measured on."""
    content = {
        "name": summary.name,
        "started": summary.started,
        "task": summary.task,
        "measure": summary.verdict.measure,
        "best": summary.verdict.best,
        "tie_group": summary.verdict.tie_group,
        "sentences": summary.verdict.sentences,
        "recommendations": summary.verdict.recommendations,
        "rows": matrix_table(summary),
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
