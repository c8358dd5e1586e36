"""A task's GUIDELINES.md as the grading page shows it: headings, paragraphs, lists and tables, nothing else."""

from __future__ import annotations

import html
import re
from itertools import groupby


def to_html(markdown: str) -> str:
    """Everything is escaped first: guidelines are text, never markup of their own."""
    blocks = re.split(r"\n\s*\n", markdown.strip())
    return "\n".join(_block(block.strip("\n")) for block in blocks if block.strip())


def _block(block: str) -> str:
    """A block's lines by what they are; a line that continues an item belongs to it."""
    parts: list[tuple[str, str]] = []
    for line in block.splitlines():
        kind = _kind(line)
        if kind == "text" and parts and parts[-1][0] in ("item", "number", "text"):
            parts[-1] = (parts[-1][0], f"{parts[-1][1]} {line.strip()}")
        else:
            parts.append((kind, line.strip()))
    return "".join(
        _written(kind, [line for _, line in lines]) for kind, lines in groupby(parts, key=lambda part: part[0])
    )


def _kind(line: str) -> str:
    if re.match(r"\s*#{1,6}\s", line):
        return "heading"
    if re.match(r"\s*\|", line):
        return "table"
    if re.match(r"\s*[-*+]\s", line):
        return "item"
    return "number" if re.match(r"\s*\d+[.)]\s", line) else "text"


def _written(kind: str, lines: list[str]) -> str:
    if kind == "heading":
        return "".join(f"<h3>{_inline(line.lstrip('#').strip())}</h3>" for line in lines)
    if kind == "table":
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        kept = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
        cells = ("".join(f"<td>{_inline(cell)}</td>" for cell in row) for row in kept)
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"
    if kind in ("item", "number"):
        tag = "ul" if kind == "item" else "ol"
        items = (re.sub(r"^([-*+]|\d+[.)])\s+", "", line) for line in lines)
        return f"<{tag}>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + f"</{tag}>"
    return "".join(f"<p>{_inline(line)}</p>" for line in lines)


def _inline(text: str) -> str:
    text = html.escape(text)
    text = re.sub(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", r"<b>\1</b>", text)
    return re.sub(r"(?<!\*)\*(?=[^\s*])([^*]+?)(?<=\S)\*(?!\*)", r"<i>\1</i>", text)
