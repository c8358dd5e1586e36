"""Text, Markdown and HTML files → title, plain text and what their front matter says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser

Parts = tuple[str, str, dict[str, str]]  # title, text, fields of the front matter

NOT_SHOWN = frozenset({"script", "style", "head", "nav", "footer", "template", "noscript", "svg"})
VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "source", "wbr"})
BLOCKS = frozenset(
    {"p", "div", "br", "li", "ul", "ol", "tr", "td", "th", "table", "section", "article", "main", "header", "pre",
     "blockquote", "dd", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "figcaption"}
)  # fmt: skip


def read_text(content: str) -> Parts:
    """A plain file: its first line is the title where a blank line follows it."""
    lines = content.strip().splitlines()
    if len(lines) > 2 and not lines[1].strip() and len(lines[0]) <= 120:
        return lines[0].strip(), _squeezed("\n".join(lines[2:])), {}
    return "", _squeezed(content), {}


def read_markdown(content: str) -> Parts:
    """Front matter apart, marks taken off, words kept; the first heading is the title."""
    fields, body = _front_matter(content)
    heading = re.search(r"^[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", body, re.MULTILINE)
    title = fields.pop("title", "") or (_unmarked(heading[1]) if heading else "")
    if heading and _unmarked(heading[1]) == title:
        body = body[: heading.start()] + body[heading.end() :]
    return title, _squeezed(_unmarked(body)), fields


def read_html(content: str) -> Parts:
    """What a reader of the page sees, without navigation and scripts; `<title>`, or the first heading, is the title."""
    page = _Page()
    page.feed(content)
    page.close()
    heading = _squeezed("".join(page.heading))
    title = _squeezed("".join(page.title)) or heading
    text = _squeezed("".join(page.text))
    return title, text.removeprefix(heading).strip() if heading == title else text, {}


READERS: Mapping[str, Callable[[str], Parts]] = {
    ".txt": read_text,
    ".text": read_text,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
}


class _Page(HTMLParser):
    """Collects text outside of elements that are not shown; a stray end tag closes nothing."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.heading: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self._headed = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the parser's
        if tag in BLOCKS:
            self.text.append("\n")
        if tag not in VOID:
            self._open.append(tag)
        if tag in ("body", "main", "article") and "head" in self._open:
            self._open.remove("head")  # a head that was never closed must not hide the page

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass
        if tag == "h1":
            self._headed = True
        if tag in BLOCKS:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        if "title" in self._open and "svg" not in self._open:
            self.title.append(data)
        elif not NOT_SHOWN & set(self._open):
            self.text.append(data)
            if "h1" in self._open and not self._headed:
                self.heading.append(data)


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


def _squeezed(text: str) -> str:
    """Single blanks within lines, at most one blank line between them."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
