"""Text and Markdown → title, plain text and what the front matter says."""

from __future__ import annotations

import re

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
    heading = re.search(r"^[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", body, re.MULTILINE)
    title = fields.pop("title", "") or (_unmarked(heading[1]) if heading else "")
    if heading and _unmarked(heading[1]) == title:
        body = body[: heading.start()] + body[heading.end() :]
    return title, squeezed(_unmarked(body)), fields


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


def _unmarked(text: str) -> str:
    """Words as they are read: links by their text, emphasis, fences, quotes and rules without their signs."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*(```|~~~).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)", r"\1", text)
    text = re.sub(r"!?\[([^\]]+)\]\[[^\]]*\]", r"\1", text)
    text = re.sub(r"^[ \t]*\[[^\]]+\]:[ \t]+\S+.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\d+[.)][ \t]+)", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"^[ \t]*(?:[-*_][ \t]*){3,}$|^[ \t]*\|?[ \t:|-]+\|[ \t:|-]*$|^[ \t]*=+[ \t]*$", "", text, flags=re.MULTILINE
    )
    text = re.sub(r"(\*\*|__|\*|`|~~)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<!\w)_(?=\S)([^_]+?)(?<=\S)_(?!\w)", r"\1", text)
    text = re.sub(r"</?[a-zA-Z][^<>]*>", "", text)
    return re.sub(r"\\([\\`*_{}\[\]()#+.!>~|-])", r"\1", text).strip()


def squeezed(text: str) -> str:
    """Single blanks within lines, at most one blank line between them."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
