"""Rows → documents in blocks. Clean blocks take a fast path; others go row by row to name the error."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.id_rows import IdRows
from bakeoff.core.task import Document
from bakeoff.tasks.formats.cells import Block, Row, Rows, column_of, id_of, text_of

_TEXT, _TEXT_OR_NOTHING = {str}, {str, NoneType}


class DocumentColumns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns of a document; several text columns are joined in order."""

    id: Annotated[str, "column of the id"] = "id"
    title: Annotated[str, "column of the title, if there is one"] = "title"
    text: Annotated[str | list[str], "column of the text; several are joined in their order"] = "text"

    @property
    def texts(self) -> list[str]:
        """The columns of its text."""
        return [self.text] if isinstance(self.text, str) else self.text


class UniqueIds:
    """The ids of a table so far. Places are computed only for a duplicate."""

    def __init__(self, table: Rows, column: str) -> None:
        self.table, self.column = table, column
        self._order: list[str] = []
        self._starts: list[int] = []
        self._places: list[Callable[[int], str]] = []
        self.rows = IdRows(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def add(self, ids: Sequence[str], place: Callable[[int], str]) -> None:
        """Add the ids of consecutive rows; raises on a duplicate."""
        repeated = len(set(ids)) < len(ids) or len(self.rows.matches(ids)[0]) > 0
        self._starts.append(len(self._order))
        self._places.append(place)
        self._order += ids
        if repeated:
            self._name_duplicate()

    def place(self, item: str) -> str:
        """Where the row of an id is."""
        return self._place(self._order.index(item))

    def _name_duplicate(self) -> None:
        first: dict[str, int] = {}
        for number, item in enumerate(self._order):
            if item in first:
                problem = f"{self.column} {item!r} is a duplicate of the one at {self._place(first[item])}"
                raise InputError(problem, file=self.table.source, place=self._place(number))
            first[item] = number

    def _place(self, number: int) -> str:
        block = bisect_right(self._starts, number) - 1
        return self._places[block](number - self._starts[block])


def read_documents(
    table: Rows, columns: DocumentColumns, ids: UniqueIds, empty: set[str], *, drop_empty: bool
) -> Iterator[list[Document]]:
    """Documents in blocks; ids of those left out go into `empty`."""
    has_titles = columns.title == DocumentColumns().title  # a column that the task names must exist, the usual one may
    for block in table.blocks:
        has_titles = has_titles or any(columns.title in row for row in block.rows)
        documents = _quickly(block.rows, columns)
        if documents is None:
            documents = list(_one_by_one(block, table, columns, ids, empty, drop_empty=drop_empty))
        else:
            ids.add([document.id for document in documents], block.place)
        yield documents
    if not has_titles:
        raise InputError(f"no row has a column {columns.title!r}", file=table.source, place="columns.documents.title")


def _quickly(rows: Sequence[Row], columns: DocumentColumns) -> list[Document] | None:
    """The fast path; None if a row needs a closer look."""
    used = {columns.id, columns.title, *columns.texts}
    try:
        ids = [row[columns.id] for row in rows]
        parts = [[row[text] for row in rows] for text in columns.texts]
    except KeyError:
        return None
    titles = [row.get(columns.title) for row in rows]
    if set(map(type, ids)) != _TEXT or any(not set(map(type, part)) <= _TEXT_OR_NOTHING for part in (titles, *parts)):
        return None
    heads, *bodies = ([text.strip() if text else "" for text in part] for part in (titles, *parts))
    texts = bodies[0] if len(bodies) == 1 else [" ".join(filter(None, row)) for row in zip(*bodies, strict=True)]
    if not all(map(str.strip, ids)) or not all(map(str.__add__, heads, texts)):
        return None
    return [
        Document(item, text, title)
        if used.issuperset(row)
        else Document(item, text, title, _metadata(row, used))
        for item, text, title, row in zip(ids, texts, heads, rows, strict=True)
    ]  # fmt: skip


def _one_by_one(
    block: Block, table: Rows, columns: DocumentColumns, ids: UniqueIds, empty: set[str], *, drop_empty: bool
) -> Iterator[Document]:
    used = {columns.id, columns.title, *columns.texts}
    keys: list[str] = []
    try:
        for place, row in block.pairs():
            key = id_of(row, columns.id, table, place)
            keys.append(key)
            title = text_of(row.get(columns.title), columns.title, table, place)
            parts = [text_of(column_of(row, text, table, place), text, table, place) for text in columns.texts]
            text = " ".join(part for part in parts if part)
            if not (title or text):
                if not drop_empty:
                    raise InputError(
                        f"document {key!r} has neither title nor text",
                        file=table.source,
                        place=place,
                        remedy="fill or remove it; drop_empty = true leaves such documents and their judgments out",
                    )
                empty.add(key)
                continue
            yield Document(id=key, title=title, text=text, metadata=_metadata(row, used))
    finally:
        ids.add(keys, block.place)  # also where a row is wrong: a duplicate before it is named first


def _metadata(row: Row, used: set[str]) -> dict[str, Any]:
    """The other columns; BEIR keeps them in one named metadata."""
    others = {column: value for column, value in row.items() if column not in used and value is not None}
    inner = others.pop("metadata", {})
    return {**others, **inner} if isinstance(inner, Mapping) else {**others, "metadata": inner}
