"""Read a file as title, plain text and metadata, by its suffix. HTML and PDF need the extra `documents`."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import missing_modules

from bakeoff.tasks.formats.native import Article

if TYPE_CHECKING:
    from markdown_it.token import Token


ContentType = Literal[
    "event", "historical site", "administrative region", "neighborhood", "natural feature", "landmark", "city"
]
# The first pattern that matches a title or category determines the content type of a database row.
CONTENT_TYPES: Mapping[ContentType, str] = {
    "event": r"\b(oil spill|earthquake|wildfire|disaster|massacre|battle|election|in (18|19|20)\d\d)\b",
    "historical site": r"histor|national register|ghost town|former (populated|settlement)|mission",
    "administrative region": r"^(?!.* in ).* county, (utah|california)$|^(utah|california) counties|"
    r"district$|court|mayors|government|legislat",
    "neighborhood": r"neighbou?rhood|, san francisco$|, san diego$",
    "natural feature": r"mountain|canyon|peninsula|river|lake|valley|landform",
    "landmark": r"park|bridge|librar|school|museum|building|road|parkway",
    "city": r"cit(y|ies)|town|census-designated|communit|populated place|, (utah|california)$",
}


def content_type(article: Article) -> str:
    """The article's content type, or its first category in other corpora."""
    types = [category for category in article.categories if category in CONTENT_TYPES]
    if len(types) > 1:
        raise InputError(
            f"page_id {article.document_id}: only one category may be a content type, found {len(types)}",
            remedy=f"content types: {', '.join(sorted(CONTENT_TYPES))}",
        )
    return next(iter([*types, *article.categories]), "unknown")


def with_content_type(title: str, categories: Sequence[str]) -> list[str]:
    """Put the inferred content type before the categories, exactly once."""
    return [infer_content_type(title, categories), *(tag for tag in categories if tag not in CONTENT_TYPES)]


def infer_content_type(title: str, categories: Sequence[str]) -> ContentType:
    """Infer the content type from the title, then from the categories; default: city."""
    for text in (title, *categories):
        for kind, pattern in CONTENT_TYPES.items():
            if re.search(pattern, text, re.IGNORECASE):
                return kind
    return "city"


Parts = tuple[str, str, dict[str, str]]  # title, text, fields of the front matter


def read_text(content: str) -> Parts:
    """Read plain text; the first line is the title if a blank line follows."""
    lines = content.strip().splitlines()
    if len(lines) > 2 and not lines[1].strip() and len(lines[0]) <= 120:
        return lines[0].strip(), squeeze("\n".join(lines[2:])), {}
    return "", squeeze(content), {}


def read_markdown(content: str) -> Parts:
    """Read Markdown without front matter and markup; the first heading is the title."""
    fields, body = _front_matter(content)
    heading, blocks = _blocks(body)
    given = fields.pop("title", "")
    title = given or heading
    kept = [text for is_title, text in blocks if not (is_title and heading == title)]
    return title, squeeze("".join(kept)), fields


def _blocks(body: str) -> tuple[str, list[tuple[bool, str]]]:
    """The first heading, and the visible text of every block; the first heading's block is marked.

    The parser takes linear time on any input.
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
    """Text without markup; links and images become their text, breaks become newlines."""
    words = {"softbreak": "\n", "hardbreak": "\n", "html_inline": ""}
    parts = [
        _inline(part) if part.type == "image" else words.get(part.type, part.content) for part in token.children or ()
    ]
    return squeeze("".join(parts))


def _without_tags(text: str) -> str:
    """Remove tags and comments from HTML within Markdown."""
    parts, at = [], 0
    while (start := text.find("<", at)) >= 0:
        parts.append(text[at:start])
        comment = text.startswith("<!--", start)
        end = text.find("-->" if comment else ">", start)
        if end < 0:  # never closed, so the rest is invisible
            return "".join(parts)
        at = end + (3 if comment else 1)
    return "".join([*parts, text[at:]])


def _front_matter(content: str) -> tuple[dict[str, str], str]:
    """Split off `key: value` lines between two rules at the top; lists are in brackets or items."""
    block = re.match(r"\A﻿?---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", content, re.DOTALL)
    if not block:
        return {}, content
    fields: dict[str, str] = {}
    last = ""
    for line in block[1].splitlines():
        if item := re.match(r"\s+-\s+(.+)|-\s+(.+)", line):
            fields[last] = "; ".join(filter(None, (fields.get(last, ""), _unquote(item[1] or item[2]))))
        elif pair := re.match(r"(\w[\w-]*)\s*:\s*(.*)", line):
            last = pair[1].lower()
            listed = re.fullmatch(r"\[(.*)\]", pair[2].strip())
            values = listed[1].split(",") if listed else [pair[2]]
            fields[last] = "; ".join(_unquote(value) for value in values if value.strip())
    return {key: value for key, value in fields.items() if key and value}, content[block.end() :]


def _unquote(value: str) -> str:
    return value.strip().strip("\"'")


def squeeze(text: str) -> str:
    """Collapse spaces within lines, and runs of blank lines into one."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


EXTRA = "documents"
NOT_SHOWN = frozenset({"script", "style", "head", "nav", "footer", "template", "noscript", "svg"})
BLOCKS = frozenset(
    {"p", "div", "br", "li", "ul", "ol", "tr", "td", "th", "table", "section", "article", "main", "header", "pre",
     "blockquote", "dd", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "figcaption"}
)  # fmt: skip
FACTS = {"/Author": "author", "/Subject": "subject", "/Keywords": "keywords", "/CreationDate": "created"}


class Unreadable(Exception):
    """A file that can't be read as a document; it is skipped and listed."""


def read_document(suffix: str, content: bytes) -> Parts:
    """Read a document in the format of this suffix."""
    return READERS[suffix](content)


def _plain(read: Callable[[str], Parts]) -> Callable[[bytes], Parts]:
    def decode(content: bytes) -> Parts:
        try:
            return read(content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise Unreadable(f"is not UTF-8 (byte {error.start}): save it as UTF-8") from None

    return decode


def read_html(content: bytes) -> Parts:
    """Read the visible text without navigation and scripts. The title is `<title>` or the first heading.

    `<meta>` becomes metadata. lxml takes linear time, even on unclosed or nested elements.
    """
    if reason := missing_modules(("lxml",), EXTRA):
        raise Unreadable(reason)
    from lxml import etree

    try:
        content.decode()
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = None  # the page says which, or lxml guesses
    parser = etree.HTMLParser(encoding=encoding, huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        page = etree.fromstring(content, parser) if content.strip() else None
    except etree.XMLSyntaxError as error:  # only comments, or undecodable
        raise Unreadable(f"is not HTML: {error.msg}") from None
    if page is None:
        return "", "", {}
    if any("depth" in entry.message for entry in parser.error_log):
        raise Unreadable("is nested too deeply")
    return _read_page(page)


def _read_page(page: Any) -> Parts:
    from lxml import etree

    title = next((squeeze("".join(element.itertext())) for element in page.iterfind(".//head//title")), "")
    title = title or next((squeeze("".join(element.itertext())) for element in page.iterfind("./title")), "")
    heading = next((squeeze("".join(element.itertext())) for element in page.iter("h1")), "")
    pieces: list[str] = []
    walk = etree.iterwalk(page, events=("start", "end"))
    for event, element in walk:
        if event == "start":
            if element.tag in NOT_SHOWN:
                walk.skip_subtree()
            else:
                pieces += ["\n" if element.tag in BLOCKS else "", element.text or ""]
        else:
            closed = element.tag in BLOCKS and bool(len(element) or element.text)
            pieces += ["\n" if closed else "", element.tail or ""]
    text = squeeze("".join(pieces))
    named = {str(meta.get("name") or "").lower(): str(meta.get("content") or "") for meta in page.iter("meta")}
    named["language"] = str(page.get("lang") or named.get("language", ""))
    fields = {name: value.strip() for name, value in named.items() if name and value.strip()}
    fields.pop("viewport", None)
    title = title or heading
    return title, text.removeprefix(heading).strip() if heading == title else text, fields


def read_pdf(content: bytes) -> Parts:
    """Read the text of all pages; title and author come from the metadata."""
    if reason := missing_modules(("pypdf",), EXTRA):
        raise Unreadable(reason)
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # silence warnings about what it repaired
    try:
        file = pypdf.PdfReader(io.BytesIO(content))
        if file.is_encrypted and not file.decrypt(""):
            raise Unreadable("is encrypted: save it without a password")
        text = squeeze("\n\n".join(page.extract_text() for page in file.pages))
        about = dict(file.metadata or {})
    except Unreadable:
        raise
    except Exception as error:  # a damaged file may raise anything
        raise Unreadable(f"can't be read as PDF: {type(error).__name__}: {error}") from None
    if not text:
        raise Unreadable("has no text; scanned pages need OCR first")
    facts = {name: str(about.get(key) or "").strip() for key, name in FACTS.items()}
    return str(about.get("/Title") or "").strip(), text, {name: fact for name, fact in facts.items() if fact}


READERS: Mapping[str, Callable[[bytes], Parts]] = {
    ".txt": _plain(read_text),
    ".text": _plain(read_text),
    ".md": _plain(read_markdown),
    ".markdown": _plain(read_markdown),
    ".html": read_html,
    ".htm": read_html,
    ".pdf": read_pdf,
}
