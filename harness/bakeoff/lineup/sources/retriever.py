"""A row whose rankings are asked for elsewhere: a function of one's own, or a search endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from bakeoff_providers.code import file_reference
from bakeoff_providers.errors import InputError

from bakeoff.lineup.checks import check_addresses
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.sources.base import Source
from bakeoff.search.retrievers import RETRIEVERS


def _rows_of(entry: ContenderEntry) -> list[Contender]:
    check_addresses({"retriever": entry.retriever}, "")
    settings, name = _settings(entry.retriever)
    options = {key: value for key, value in settings.items() if key != "kind"} | entry.options
    RETRIEVERS.check_options(settings["kind"], options)
    RETRIEVERS.get(settings["kind"]).check(**options)
    label = entry.label or name
    return [Contender(label, label, retriever={"kind": settings["kind"], **options}, field=entry.field)]


def _settings(given: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The settings with the kind of retriever, and what the row is called where it has no label."""
    if isinstance(given, str):
        if reference := file_reference(given):
            file, function = reference
            return {"kind": "function", "file": file, "function": function}, function
        if not given.startswith(("http://", "https://")):
            raise InputError(
                f"{given!r} is neither a function nor a URL",
                place="retriever",
                remedy='"file:mine.py:search" or { url = "http://…", body = …, ids = … }',
            )
        given = {"url": given}
    if "url" in given:
        return {"kind": "http", **given}, _host(str(given["url"]))
    if "file" in given:
        return {"kind": "function", **given}, str(given.get("function") or PurePath(str(given["file"])).stem)
    forms = '"file:mine.py:search" for a function, or { url = "http://…", body = …, ids = … }'
    raise InputError("a retriever needs a url or a file", place="retriever", remedy=forms)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "http"
    except ValueError:  # it is refused by what checks it
        return "http"


def _entry_of(row: Mapping[str, Any]) -> dict[str, Any]:
    retriever = {key: value for key, value in row["retriever"].items() if key != "kind"}
    return {"label": row["name"], "retriever": retriever, "field": row.get("field")}


RETRIEVER = Source(
    key="retriever",
    about="retriever",
    example='retriever = "file:mine.py:search"',
    takes=frozenset({"field", "options", "rerank"}),
    row_type=lambda _: "retriever",
    missing=lambda contender: RETRIEVERS.get(contender.retriever["kind"]).missing(**contender.retriever),
    rows_of=_rows_of,
    entry_of=_entry_of,
)
