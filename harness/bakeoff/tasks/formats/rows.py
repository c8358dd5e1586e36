"""Rows → a task. All tabular formats end here and share its checks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import convert
from bakeoff_providers.registry import nearest

from bakeoff.core.corpus import collect_documents
from bakeoff.core.filters import parse_where
from bakeoff.core.id_rows import IdRows
from bakeoff.core.task import Document, Drawn, Judgments, Query, Task, first_wrong_period, parse_day
from bakeoff.tasks.formats.cells import BLOCK, Block, Row, Rows, column_of, id_of, text_of

Rel = Annotated[int, "the lowest grade that counts as relevant"]
Split = Annotated[str, "the split whose judgments are used"]
HubRevision = Annotated[str | None, "branch, tag or commit on the hub; default: the newest"]
Grades = Annotated[dict[str, int] | None, "grades for labels that are words: { Exact = 3, Partial = 1 }"]
DropNegative = Annotated[bool, "grades below 0 count as unjudged instead of being refused"]
DropUnknown = Annotated[bool, "drop judgments of unknown documents or queries"]
DropEmpty = Annotated[bool, "drop empty documents and their judgments"]
IgnoreIdenticalIds = Annotated[bool, "exclude the document with the query's own id, as in BEIR"]
JudgedOnly = Annotated[bool, "drop queries without judgments"]


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


WEIGHT, STRATUM_SIZE = "weight", "stratum_queries"  # a weight alone may mean anything; both are of a sample
REMEDY = "keep the rows as `bakeoff log sample` wrote them, or remove the columns weight and stratum_queries"


def read_draw(row: Mapping[str, Any], category: str, table: Rows, place: str) -> Drawn | None:
    """A query's share of traffic; None without both columns."""
    if row.get(WEIGHT) in (None, "") or row.get(STRATUM_SIZE) in (None, ""):
        return None
    try:
        weight, size = float(row[WEIGHT]), float(row[STRATUM_SIZE])
    except (TypeError, ValueError):
        weight = size = 0.0
    if not 0 < weight <= 1 or size < 1 or not size.is_integer():
        raise InputError(
            f"weight {row[WEIGHT]!r} of a stratum of {row[STRATUM_SIZE]!r} queries is not a share of traffic",
            file=table.source,
            place=place,
            remedy=REMEDY,
        )
    return Drawn(weight=weight, stratum=category, of=int(size))


def check_draw(queries: Sequence[Query], source: Path | str) -> None:
    """Check that all queries have weights or none, that these sum to 1, and that strata are large enough."""
    drawn = [query.drawn for query in queries if query.drawn is not None]
    if not drawn:
        return
    problem = ""
    if len(drawn) < len(queries):
        problem = f"{len(queries) - len(drawn)} of {len(queries)} queries have no weight"
    elif abs((total := sum(each.weight for each in drawn)) - 1) > 1e-6:
        problem = f"the weights of the queries sum to {total:.6g}, not to 1"
    for name in dict.fromkeys(each.stratum for each in drawn):
        sizes = [each.of for each in drawn if each.stratum == name]
        if min(sizes) != max(sizes) or len(sizes) > sizes[0]:
            problem = problem or f"stratum {name!r} has {len(sizes)} queries, of {min(sizes)} to {max(sizes)}"
    if problem:
        raise InputError(problem, file=source, remedy=REMEDY)


Judgment = tuple[str, str, str, int]  # place, query, document and grade


class QueryColumns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns of a query."""

    id: Annotated[str, "column of the id"] = "id"
    text: Annotated[str, "column of the text"] = "text"
    category: Annotated[str, "column of the category; optional"] = "category"
    where: Annotated[str, "column of the filter, a JSON object; optional"] = "where"
    as_of: Annotated[str, "column with the query's date, such as 2026-11-16; optional"] = "as_of"
    cluster: Annotated[str, "column of the cluster: queries with one need; optional"] = "cluster"


class JudgmentColumns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns of a judgment; a number as grade column is the grade of every row."""

    query: Annotated[str, "column of the query's id"] = "query"
    document: Annotated[str, "column of the document's id"] = "document"
    grade: Annotated[str | int, "column with the grade, or one number for all rows"] = "grade"


class Columns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns of the three tables."""

    documents: Annotated[DocumentColumns, "columns of the documents"] = DocumentColumns()
    queries: Annotated[QueryColumns, "columns of the queries"] = QueryColumns()
    judgments: Annotated[JudgmentColumns, "columns of the judgments"] = JudgmentColumns()

    def rename(self, given: Mapping[str, Any] | None) -> Columns:
        """Replace the given names; the others stay."""
        known = msgspec.to_builtins(self)
        tables = convert("columns", given or {}, dict[str, dict[str, Any]])
        merged = {table: {**known.get(table, {}), **names} for table, names in tables.items()}
        return convert("columns", {**known, **merged}, Columns)


ColumnNames = Annotated[dict[str, Any] | None, "column names of the tables", Columns]


BEIR_COLUMNS = Columns(
    DocumentColumns(id="_id"), QueryColumns(id="_id"), JudgmentColumns("query-id", "corpus-id", "score")
)


class Leniency(msgspec.Struct, frozen=True, kw_only=True):
    """Mismatches that the task's author allows to be dropped. All others are refused."""

    drop_negative: bool = False
    drop_unknown: bool = False
    drop_empty: bool = False
    judged_only: bool = False
    ignore_identical_ids: bool = False


@dataclass(slots=True)
class JudgmentCollector:
    """Collects judgments: one grade per pair, none below 0."""

    source: Path | str
    drop_negative: bool = False
    grades: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, place: str, query: str, document: str, grade: int) -> None:
        """Add one judgment, or raise."""
        if grade < 0:
            if self.drop_negative:
                return
            raise InputError(
                f"grade {grade} is negative",
                file=self.source,
                place=place,
                remedy="grades start at 0; drop_negative = true treats lower ones as unjudged, as trec_eval does",
            )
        known = self.grades.setdefault(query, {})
        if document in known:
            raise InputError(
                f"query {query!r} has a grade for document {document!r} already ({known[document]})",
                file=self.source,
                place=place,
                remedy="keep one of the two lines",
            )
        known[document] = grade


def task_of(
    name: str,
    documents: Rows,
    queries: Rows,
    judgments: Rows,
    columns: Columns,
    *,
    rel: int = 1,
    grades: Mapping[str, int] | None = None,
    lenient: Leniency = Leniency(),
) -> Task:
    """Build a task from three tables, each checked separately and against the others."""
    empty: set[str] = set()
    ids = UniqueIds(documents, columns.documents.id)
    read = read_documents(documents, columns.documents, ids, empty, drop_empty=lenient.drop_empty)
    kept_documents = collect_documents(read)
    if len(ids) == len(empty):
        raise InputError("has no documents", file=documents.source, remedy="write a header and one row per document")
    asked = _queries(queries, columns.queries)
    if not asked:
        raise InputError("has no queries", file=queries.source, remedy="write a header and one row per query")
    if any(query.as_of for query in asked.values()) and (wrong := first_wrong_period(kept_documents)):
        place = ids.place(wrong[0])
        raise InputError(wrong[1].problem, file=documents.source, place=place, remedy=wrong[1].remedy)
    truth = read_judgments(judgments, columns.judgments, grades, ids.rows, empty, set(asked), lenient)
    kept = [query for query in asked.values() if truth.get(query.id) or not lenient.judged_only]
    if lenient.ignore_identical_ids:
        same = ids.rows.among([query.id for query in kept]) - empty
        kept = [msgspec.structs.replace(query, identical=query.id) if query.id in same else query for query in kept]
    check_draw(kept, queries.source)
    return Task(name=name, documents=kept_documents, queries=kept, judgments=truth, rel=rel)


def _queries(table: Rows, columns: QueryColumns) -> dict[str, Query]:
    queries: dict[str, Query] = {}
    keys: list[str] = []
    places: list[str] = []
    has_categories = columns.category == QueryColumns().category
    try:
        for place, row in table.rows:
            key = id_of(row, columns.id, table, place)
            keys.append(key)
            places.append(place)
            text = text_of(column_of(row, columns.text, table, place), columns.text, table, place)
            if not text:
                raise InputError(f"query {key!r} has no text", file=table.source, place=place)
            has_categories |= columns.category in row
            category = text_of(row.get(columns.category), columns.category, table, place)
            where = _where(row.get(columns.where), columns.where, table, place)
            drawn = read_draw(row, category, table, place)
            day = _day(row.get(columns.as_of), columns.as_of, table, place)
            cluster = text_of(_own_or_metadata(row, columns.cluster), columns.cluster, table, place)
            queries[key] = Query(
                id=key, text=text, category=category, where=where, drawn=drawn, as_of=day, cluster=cluster
            )
    finally:
        UniqueIds(table, columns.id).add(keys, places.__getitem__)  # a duplicate before a wrong row is named first
    if not has_categories:
        raise InputError(
            f"no row has a column {columns.category!r}", file=table.source, place="columns.queries.category"
        )
    return queries


def _own_or_metadata(row: Mapping[str, Any], column: str) -> Any:
    """A cell, or else the same key of the row's `metadata`, as in BEIR's queries."""
    metadata = row.get("metadata")
    return row.get(column) if column in row or not isinstance(metadata, Mapping) else metadata.get(column)


def _where(cell: Any, column: str, table: Rows, place: str) -> dict[str, Any]:
    try:
        return parse_where(cell)
    except InputError as error:
        remedy = f'{error.remedy}; if the column is not a filter: columns.queries.where = "…"'
        raise InputError(f"{column}: {error.problem}", file=table.source, place=place, remedy=remedy) from None


def _day(cell: Any, column: str, table: Rows, place: str) -> str:
    try:
        return parse_day(cell, column)
    except InputError as error:
        remedy = f'{error.remedy}; if the column is not a date: columns.queries.as_of = "…"'
        raise InputError(error.problem, file=table.source, place=place, remedy=remedy) from None


def read_judgments(
    table: Rows,
    columns: JudgmentColumns,
    grades: Mapping[str, int] | None,
    documents: IdRows,
    empty: set[str],
    queries: set[str],
    lenient: Leniency,
) -> Judgments:
    """Read judgments of existing pairs; documents are looked up in bulk."""
    collector = JudgmentCollector(table.source, lenient.drop_negative)
    for block in _up_to_an_error(judgment_rows(table, columns, grades)):
        known = documents.among([document for _, _, document, _ in block])
        for place, query, document, grade in block:
            lacking = f"document {document!r}" if document not in known else ""
            unknown = f"query {query!r}" if query not in queries else lacking
            if unknown and not lenient.drop_unknown:
                raise InputError(
                    f"the task has no {unknown}",
                    file=table.source,
                    place=place,
                    remedy="add it, or remove this line; drop_unknown = true leaves such judgments out",
                )
            if not unknown and document not in empty:
                collector.add(place, query, document, grade)
    return collector.grades


def _up_to_an_error(judgments: Iterator[Judgment]) -> Iterator[list[Judgment]]:
    """Blocks of rows. Rows before an unreadable one are checked first."""
    block: list[Judgment] = []
    try:
        for judgment in judgments:
            block.append(judgment)
            if len(block) == BLOCK:
                yield block
                block = []
    except InputError:
        yield block
        raise
    yield block


def judgment_rows(table: Rows, columns: JudgmentColumns, grades: Mapping[str, int] | None) -> Iterator[Judgment]:
    """Judgments as place, query, document and grade; the caller checks that the pair exists."""
    for place, row in table.rows:
        query = id_of(row, columns.query, table, place)
        document = id_of(row, columns.document, table, place)
        given = columns.grade if isinstance(columns.grade, int) else column_of(row, columns.grade, table, place)
        yield place, query, document, _grade(given, grades, table, place)


def _grade(value: Any, grades: Mapping[str, int] | None, table: Rows, place: str) -> int:
    """A whole number, or a label with a number in `grades`."""
    if grades is not None:
        label = str(value).lower() if isinstance(value, bool) else str(value)
        if label not in grades:
            raise InputError(
                f"unknown grade {label!r}", file=table.source, place=place, remedy=nearest(label, list(grades))
            )
        return grades[label]
    if isinstance(value, str):
        number = whole(value)
    elif isinstance(value, float) and value.is_integer():  # pandas writes whole numbers so beside empty cells
        number = int(value)
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if number is None:
        raise InputError(
            f"grade {value!r} is not a whole number",
            file=table.source,
            place=place,
            remedy='labels need numbers: grades = { "exact" = 3, "related" = 1 }',
        )
    return number


def whole(text: str) -> int | None:
    """A whole number in any common spelling (2, -1, 2.0), else None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if "_" not in text and number.is_integer() else None
