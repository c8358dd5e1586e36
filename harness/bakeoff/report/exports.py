"""The matrix for other programs and papers: Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bakeoff.core.printable import inert, markdown_table, section_lines
from bakeoff.report.further_words import further_sentences
from bakeoff.report.matrix import Cell, keys, matrix
from bakeoff.report.notes import headline, notes, when_and_where
from bakeoff.report.sections import text_table
from bakeoff.report.verdict_words import advice, verdict_sentences
from bakeoff.results.columns import matrix_table
from bakeoff.results.schema import Summary

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "★": r"$\star$", "≈": r"$\approx$", "≡": r"$\equiv$",
    "✓": r"$\checkmark$", "†": r"$\dagger$",
    "✗": r"$\times$", "–": "--", "×": r"$\times$", "≥": r"$\geq$", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def markdown(summary: Summary) -> str:
    """`matrix.md`."""
    content = matrix(summary)
    lines = [f"# {inert(headline(summary))}", "", *([inert(summary.task.about), ""] if summary.task.about else [])]
    lines += [*(f"- {inert(line)}" for line in [*verdict_sentences(summary), *further_sentences(summary)]), ""]
    lines += markdown_table(
        [column.head for column in content.columns],
        [line.texts(content.columns) for line in content.lines],
        figures=[place for place, column in enumerate(content.columns) if not column.is_text],
    )
    lines += ["", "   ".join(keys(summary)), "", *(f"- {inert(line)}" for line in advice(summary))]
    lines += ["", *(f"- {inert(note.sentence)}" for note in notes(summary)), ""]
    for table in map(text_table, summary.sections):
        lines += section_lines(table.title, table.heads, table.rows, table.notes)
    if summary.trec_eval:
        lines += ["These figures in trec_eval:", "", *(f"    {command}" for command in summary.trec_eval), ""]
    return "\n".join([*lines, inert(when_and_where(summary))]) + "\n"


def latex(summary: Summary) -> str:
    """`matrix.tex`: a booktabs table to \\input; leader in bold, rows that may be best in italics."""
    content = matrix(summary)
    lines = [
        r"% needs \usepackage{booktabs,amssymb}",
        rf"\begin{{tabular}}{{{''.join('l' if column.is_text else 'r' for column in content.columns)}}}",
        r"\toprule",
        " & ".join(_tex(column.head) for column in content.columns) + r" \\",
        r"\midrule",
    ]
    for line in content.lines:
        cells = [_tex_cell(line.cells[column.key]) for column in content.columns if column.key in line.cells]
        if line.reason:
            cells.append(rf"\multicolumn{{{len(content.columns) - len(cells)}}}{{l}}{{{_tex(line.reason)}}}")
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _tex_cell(cell: Cell) -> str:
    face = {"best": r"\textbf{%s}", "tied": r"\textit{%s}", "scale": r"\textit{%s}"}.get(cell.state, "%s")
    return face % _tex(cell.text)


def _tex(text: str) -> str:
    return re.sub(r"[\\&%$#_{}~^★≈≡✓✗†–×≥<>]", lambda special: _LATEX[special[0]], " ".join(text.split()))


def csv_text(summary: Summary) -> str:
    """`matrix.csv`; text that a spreadsheet would run as a formula is escaped."""
    rows = matrix_table(summary)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _inert(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value


def json_bytes(summary: Summary) -> bytes:
    """`matrix.json`: the records with the verdict, task and machine."""
    content = {
        "format": summary.format,
        "name": summary.name,
        "started": summary.started,
        "task": summary.task,
        "measure": summary.verdict.measure,
        "verdict": summary.verdict,
        "text": [*verdict_sentences(summary), *advice(summary)],
        "rows": matrix_table(summary),
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


EXPORTS: Mapping[str, Callable[[Summary], str | bytes]] = {
    "matrix.md": markdown,
    "matrix.tex": latex,
    "matrix.csv": csv_text,
    "matrix.json": json_bytes,
}
