"""Search logs in CSV, JSONL or parquet: one row per displayed result list, under any column names."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.tasks.formats.tables import read_table


class LogColumns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The log's column names. Columns that a command does not need may be missing."""

    time: str = "time"
    query: str = "query"
    user: str = "user"
    session: str = "session"
    shown: str = "shown"
    clicked: str = "clicked"
    arm: str = "arm"
    team: str = "team"

    @classmethod
    def rename(cls, given: Mapping[str, str]) -> LogColumns:
        """Replace the given names; the others stay."""
        for key in given:
            if key not in cls.__struct_fields__:
                raise InputError(
                    f"a log has no column {key!r}", place="--column", remedy=nearest(key, list(cls.__struct_fields__))
                )
        return cls(**given)


class Impression(msgspec.Struct, frozen=True, kw_only=True):
    """One query of a user, the documents shown in order, and those clicked."""

    query: Annotated[str, "the query text"]
    shown: Annotated[tuple[str, ...], "document ids in order"]
    clicked: Annotated[tuple[str, ...], "the ids that were clicked"] = ()
    time: Annotated[str, "ISO 8601, or seconds since 1970"] = ""
    user: Annotated[str, "a pseudonym of the user"] = ""
    session: Annotated[str, "the user's visit"] = ""
    arm: Annotated[str, "the system that answered, in an A/B test"] = ""
    team: Annotated[tuple[str, ...], "for each rank, the system that it came from: a or b"] = ()


def read_log(path: Path, columns: LogColumns, needed: Sequence[str], *, empty: bool = False) -> list[Impression]:
    """All rows, checked. `needed` fields are required, and must be filled unless `empty`."""
    impressions = list(_impressions(path, columns, needed, empty))
    if not impressions:
        raise InputError("has no rows", file=path, remedy="a log has one row per displayed list")
    return impressions


def _impressions(path: Path, columns: LogColumns, needed: Sequence[str], empty: bool) -> Iterator[Impression]:
    for place, row in read_table(path).rows:
        for field in needed:
            if (column := getattr(columns, field)) not in row:
                raise InputError(
                    f"there is no column {column!r}",
                    file=path,
                    place=place,
                    remedy=f"{nearest(column, list(row))} --column {field}=NAME maps the log's column",
                )
        texts = {
            field: _text(row.get(getattr(columns, field)), path, place)
            for field in ("query", "user", "session", "arm", "time")
        }
        for field in needed:
            if field in texts and field != "time" and not texts[field] and not empty:
                raise InputError(
                    f"{getattr(columns, field)} is empty", file=path, place=place, remedy="fill it or drop the row"
                )
        shown = _items(row.get(columns.shown), path, place, columns.shown)
        clicked = _items(row.get(columns.clicked), path, place, columns.clicked)
        team = _items(row.get(columns.team), path, place, columns.team)
        if len(set(shown)) < len(shown):
            raise InputError(f"{columns.shown} has a document twice", file=path, place=place)
        if shown and (stray := [item for item in clicked if item not in shown]):
            raise InputError(f"{stray[0]!r} was clicked, but is not in {columns.shown}", file=path, place=place)
        yield Impression(shown=shown, clicked=tuple(dict.fromkeys(clicked)), team=team, **texts)


def timestamp(text: str, path: Path, place: str = "") -> datetime.datetime:
    """ISO 8601, or seconds since 1970; UTC if it has no zone."""
    try:
        when = (
            datetime.datetime.fromtimestamp(float(text), datetime.UTC)
            if text.replace(".", "", 1).isdecimal()
            else datetime.datetime.fromisoformat(text)
        )
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"time {text!r} is not a date", file=path, place=place, remedy="write 2026-11-16T12:30:00 or seconds"
        ) from None
    return when if when.tzinfo else when.replace(tzinfo=datetime.UTC)


def _text(value: Any, path: Path, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{value!r} is neither text nor a number", file=path, place=place)
    return " ".join(str(value).split())


def _items(value: Any, path: Path, place: str, column: str) -> tuple[str, ...]:
    """A list, JSON text of one, or ids separated by spaces."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise InputError(f"{column} is not valid JSON: {error}", file=path, place=place) from None
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(value.split())
    if isinstance(value, int) and not isinstance(value, bool):
        return (str(value),)
    if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, str | int) for item in value):
        raise InputError(f"{column} is {value!r}, not a list of ids", file=path, place=place)
    return tuple(str(item) for item in value)
