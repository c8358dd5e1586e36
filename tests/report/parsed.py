"""A page as a parser sees it."""

from __future__ import annotations

from html.parser import HTMLParser


class ParsedPage(HTMLParser):
    """The texts of the matrix's rows with what opens below each, and every script and event handler of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.values: list[dict[str, str | None]] = []  # of each row, by column: what it is sorted by
        self.first: dict[str, str | None] = {}  # by column: how it is sorted at the first click
        self.scripts = 0
        self.handlers: list[str] = []
        self.elements: set[str] = set()
        self.sources: list[str | None] = []
        self._in_table, self._in_cell = 0, False  # tables may open inside the matrix
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.scripts += tag == "script"
        self.sources += [value for name, value in attrs if name == "src" or (tag == "link" and name == "href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "table":
            self._in_table += bool(self._in_table) or ("class", "matrix") in attrs
        if self._in_table and tag == "tr":
            self.rows.append([])
            self.values.append({})
        given = dict(attrs)
        if self._in_table and (column := given.get("data-key")):
            if "data-first" in given:
                self.first[column] = given["data-first"]
            if "data-value" in given:
                self.values[-1][column] = given["data-value"]
        if self._in_table and tag in ("td", "th"):
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._in_table = max(0, self._in_table - 1)
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_table and self._in_cell:
            self.rows[-1][-1] += f"{data} "
