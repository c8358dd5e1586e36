"""Text and Markdown → title, plain text and what the front matter says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

Parts = tuple[str, str, dict[str, str]]  # title, text, fields of the front matter


def read_text(content: str) -> Parts:
    """A plain file: its first line is the title where a blank line follows it."""
    lines = content.strip().splitlines()
    if len(lines) > 2 and not lines[1].strip() and len(lines[0]) <= 120:
        return lines[0].strip(), squeezed("\n".join(lines[2:])), {}
    return "", squeezed(content), {}


def read_markdown(content: str) -> Parts:
    """Front matter apart, marks taken off, words kept; the first heading is the title."""
    fields, body = _front_matter(content)
    heading, blocks = _blocks(body)
    given = fields.pop("title", "")
    title = given or heading
    kept = [text for is_title, text in blocks if not (is_title and heading == title)]
    return title, squeezed("".join(kept)), fields


def _blocks(body: str) -> tuple[str, list[tuple[bool, str]]]:
    """The first heading, and the text of every block as a reader sees it; the first heading's block is marked.

    The parser takes time in proportion to the text, whatever is in it.
    """
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body)
    title: str | None = None
    blocks: list[tuple[bool, str]] = []
    cells: list[str] | None = None
    for place, token in enumerate(tokens):
        before = tokens[place - 1].type if place else ""
        if token.type == "inline" and before in ("th_open", "td_open") and cells is not None:
            cells.append(_inline(token))
        elif token.type == "inline":
            text = _inline(token)
            first = before == "heading_open" and title is None
            if first:
                title = text
            blocks.append((first, f"{text}\n" if tokens[place - 1].hidden else f"{text}\n\n"))
        elif token.type in ("fence", "code_block"):
            blocks.append((False, f"{token.content}\n"))
        elif token.type == "html_block":
            blocks.append((False, f"{_without_tags(token.content)}\n\n"))
        elif token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            blocks.append((False, f"{' | '.join(cells or [])}\n"))
        elif token.type in ("table_close", "bullet_list_close", "ordered_list_close"):
            blocks.append((False, "\n"))
    return title or "", blocks


def _inline(token: Token) -> str:
    """Words without the signs around them: links and images by their text, breaks as line ends."""
    words = {"softbreak": "\n", "hardbreak": "\n", "html_inline": ""}
    parts = [
        _inline(part) if part.type == "image" else words.get(part.type, part.content) for part in token.children or ()
    ]
    return squeezed("".join(parts))


def _without_tags(text: str) -> str:
    """HTML within Markdown: its text, without elements and comments."""
    parts, at = [], 0
    while (start := text.find("<", at)) >= 0:
        parts.append(text[at:start])
        comment = text.startswith("<!--", start)
        end = text.find("-->" if comment else ">", start)
        if end < 0:  # never closed: nothing of the rest is shown
            return "".join(parts)
        at = end + (3 if comment else 1)
    return "".join([*parts, text[at:]])


def _front_matter(content: str) -> tuple[dict[str, str], str]:
    """`key: value` lines between two rules at the very top; lists in brackets or as items."""
    block = re.match(r"\A﻿?---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", content, re.DOTALL)
    if not block:
        return {}, content
    fields: dict[str, str] = {}
    last = ""
    for line in block[1].splitlines():
        if item := re.match(r"\s+-\s+(.+)|-\s+(.+)", line):
            fields[last] = "; ".join(filter(None, (fields.get(last, ""), _unquoted(item[1] or item[2]))))
        elif pair := re.match(r"(\w[\w-]*)\s*:\s*(.*)", line):
            last = pair[1].lower()
            listed = re.fullmatch(r"\[(.*)\]", pair[2].strip())
            values = listed[1].split(",") if listed else [pair[2]]
            fields[last] = "; ".join(_unquoted(value) for value in values if value.strip())
    return {key: value for key, value in fields.items() if key and value}, content[block.end() :]


def _unquoted(value: str) -> str:
    return value.strip().strip("\"'")


def squeezed(text: str) -> str:
    """Single blanks within lines, at most one blank line between them."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
