"""One file of a folder → title, plain text and metadata, by the ending of its name. HTML and PDF need `documents`."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Mapping
from typing import Any

from bakeoff_providers.registry import missing_modules

from bakeoff.extensions.testsets.text_files import Parts, read_markdown, read_text, squeezed

EXTRA = "documents"
NOT_SHOWN = frozenset({"script", "style", "head", "nav", "footer", "template", "noscript", "svg"})
BLOCKS = frozenset(
    {"p", "div", "br", "li", "ul", "ol", "tr", "td", "th", "table", "section", "article", "main", "header", "pre",
     "blockquote", "dd", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "figcaption"}
)  # fmt: skip
FACTS = {"/Author": "author", "/Subject": "subject", "/Keywords": "keywords", "/CreationDate": "created"}


class Unreadable(Exception):
    """A file that is no document, with the reason: it is skipped and named, the others are read."""


def read_document(suffix: str, content: bytes) -> Parts:
    """The document in a file of this ending."""
    return READERS[suffix](content)


def _plain(read: Callable[[str], Parts]) -> Callable[[bytes], Parts]:
    def decoded(content: bytes) -> Parts:
        try:
            return read(content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise Unreadable(f"is not UTF-8 (byte {error.start}): save it as UTF-8") from None

    return decoded


def read_html(content: bytes) -> Parts:
    """What a reader of the page sees, without navigation and scripts; `<title>`, or the first heading, is the title.

    lxml because it takes time in proportion to the page, whatever is left open or nested; `<meta>` is the metadata.
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
    except etree.XMLSyntaxError as error:  # nothing but comments, or what can't be decoded
        raise Unreadable(f"is no HTML page: {error.msg}") from None
    if page is None:
        return "", "", {}
    if any("depth" in entry.message for entry in parser.error_log):
        raise Unreadable("its elements are nested too deeply")
    return _shown(page)


def _shown(page: Any) -> Parts:
    from lxml import etree

    title = next((squeezed("".join(element.itertext())) for element in page.iterfind(".//head//title")), "")
    title = title or next((squeezed("".join(element.itertext())) for element in page.iterfind("./title")), "")
    heading = next((squeezed("".join(element.itertext())) for element in page.iter("h1")), "")
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
    text = squeezed("".join(pieces))
    named = {str(meta.get("name") or "").lower(): str(meta.get("content") or "") for meta in page.iter("meta")}
    named["language"] = str(page.get("lang") or named.get("language", ""))
    fields = {name: value.strip() for name, value in named.items() if name and value.strip()}
    fields.pop("viewport", None)
    title = title or heading
    return title, text.removeprefix(heading).strip() if heading == title else text, fields


def read_pdf(content: bytes) -> Parts:
    """The text of all pages; the title and the author are in its metadata where it has any."""
    if reason := missing_modules(("pypdf",), EXTRA):
        raise Unreadable(reason)
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it could repair is no concern of the reader
    try:
        file = pypdf.PdfReader(io.BytesIO(content))
        if file.is_encrypted and not file.decrypt(""):
            raise Unreadable("is encrypted: save it without a password")
        text = squeezed("\n\n".join(page.extract_text() for page in file.pages))
        about = dict(file.metadata or {})
    except Unreadable:
        raise
    except Exception as error:  # a damaged file may raise anything there
        raise Unreadable(f"is no PDF that can be read: {type(error).__name__}: {error}") from None
    if not text:
        raise Unreadable("holds no text: scanned pages need text recognition (OCR) first")
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
