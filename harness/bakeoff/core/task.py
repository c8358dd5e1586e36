"""A task: corpus, queries and judgments.

Tasks may be time-bound: documents are valid from one day to another, and a query may ask about a day (`as_of`). Both
ends are included, and a missing end is open. A query without a day is not time-bound.
"""

from __future__ import annotations

import datetime
import hashlib
import unicodedata
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.facts import Fact, Public
from bakeoff.core.filters import conditions
from bakeoff.core.lazy_sequence import LazySequence

FROM, TO, AS_OF = "valid_from", "valid_to", "as_of"
_DAY = len("2026-11-16")


class Period(NamedTuple):
    """The first and last day on which a document is valid; an empty string is an open end."""

    first: str = ""
    last: str = ""

    def has(self, day: str) -> bool:
        """Whether a day is within the period. ISO dates sort as strings."""
        return self.first <= day and (not self.last or day <= self.last)


def normalise(query: str) -> str:
    """A query's text with compatibility forms, case and white space normalised."""
    return " ".join(unicodedata.normalize("NFKC", query).casefold().split())


def parse_day(value: Any, field: str) -> str:
    """A day such as 2026-11-16; an empty string if the value is missing."""
    if value is None or value != value or value == "":  # pandas' missing values differ from themselves
        return ""
    text = str(value)  # also a date from parquet or a data frame
    try:
        if len(text) != _DAY:
            raise ValueError
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"{field} is {text[:60]!r}, not a day", remedy="write it as 2026-11-16") from None


def period_of(metadata: Mapping[str, Any]) -> Period:
    """A document's validity period from its metadata; always valid if there are no days."""
    period = Period(parse_day(metadata.get(FROM), FROM), parse_day(metadata.get(TO), TO))
    if period.last and period.first > period.last:
        raise InputError(
            f"{FROM} {period.first} is after {TO} {period.last}", remedy="swap them, or leave one out for an open end"
        )
    return period


SHOWN = 60  # characters of a text in a repr

ChunkStrategy = Literal["whole", "fixed", "sentence", "semantic"]


class DocumentChunking(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """How a document is chunked. Sizes are in words, so that every model gets the same chunks."""

    chunk_strategy: Annotated[ChunkStrategy, "chunking strategy"] = "whole"
    max_chunk_size: Annotated[int, "maximum words per chunk"] = 512

    def __post_init__(self) -> None:
        if self.max_chunk_size < 1:
            raise ValueError("max_chunk_size must be at least 1")


class Document(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A document. `fields` are further texts that a contender may search instead."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = {}
    chunking: DocumentChunking = DocumentChunking()
    fields: Mapping[str, str] = {}

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= SHOWN else f"{self.text[:SHOWN]}…"
        return f"Document({self.id!r}, {self.title!r}, {text!r})"

    def whole(self, field: str = "") -> str:
        """The text to embed: the title goes before the text, as in BEIR and MTEB; a field is used alone."""
        return self.field(field) if field else f"{self.title} {self.text}".strip()

    def field(self, name: str) -> str:
        """One of the further texts. Every document has `title` and `text`."""
        texts = {"title": self.title, "text": self.text, **self.fields}
        if name not in texts:
            raise InputError(
                f"document {self.id!r} has no field {name!r}", place="field", remedy=nearest(name, [*texts])
            )
        return texts[name]


class Drawn(msgspec.Struct, frozen=True, gc=False):
    """What a query drawn from a log represents: a share of the traffic, in a stratum `of` that many queries."""

    weight: float
    stratum: Public[str]
    of: int


class Query(msgspec.Struct, frozen=True):
    """A query. If it is itself a document, `item` is that document's id, and it never finds itself.

    `identical` is a document of the same id that is not counted among its answers either, as in BEIR.
    """

    id: str
    text: str
    category: str = ""
    item: str = ""
    where: Mapping[str, Any] = {}  # filter on the documents' metadata: bakeoff.core.filters
    identical: str = ""
    drawn: Drawn | None = None  # no part of the fingerprint: the question is the same
    cluster: str = ""  # queries that ask for the same thing share one: no part of the fingerprint either
    as_of: str = ""  # the day it asks about, as 2026-11-16

    @property
    def excluded(self) -> str:
        """The document left out of its ranking; empty if there is none."""
        return self.item or self.identical


Judgments = Mapping[str, Mapping[str, int]]


class DocumentsOnDisk(LazySequence[Document]):
    """Documents too many for memory. Their ids are kept."""

    ids: list[str]
    plain: bool  # no document has metadata

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def blocks(self) -> Iterator[list[Document]]:
        """All documents in their order, in blocks."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Documents, queries and grades, validated against each other on creation."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]
    judgments: Judgments
    kind: str = "graded"
    rel: int = 1
    targets: Mapping[str, float] = {}
    about: str = ""  # one sentence
    graded_by_model: int = 0  # grades given by a model, not by a person
    drawn_from: int = 0  # size of the corpus that the documents were sampled from
    notes: Sequence[Fact] = ()  # remarks on how the files were read
    planned_looks: tuple[int, ...] = ()  # queries at each planned look; these are those of one, in the drawn order

    def __post_init__(self) -> None:
        if not self.documents:
            raise InputError(f"task {self.name!r} has an empty corpus", remedy="give it at least one document")
        if not self.queries:
            raise InputError(f"task {self.name!r} has no queries", remedy="give it at least one query")
        if self.rel < 1:
            raise InputError(
                f"task {self.name!r}: rel = {self.rel} would count grade 0 as relevant", remedy="use 1 or more"
            )
        documents = _find_named(self.documents, self.queries, self.judgments, self.name)
        queries = _unique([query.id for query in self.queries], "query", self.name)
        for asked in self.queries:
            if asked.item and asked.item not in documents:
                raise InputError(f"query {asked.id!r} is item {asked.item!r}, which is not in the corpus")
            conditions(asked.where)
            parse_day(asked.as_of, f"query {asked.id!r}: {AS_OF}")
        if self.time_bound and (wrong := first_wrong_period(self.documents)):
            raise InputError(f"document {wrong[0]!r}: {wrong[1].problem}", remedy=wrong[1].remedy)
        for query, grades in self.judgments.items():
            if query not in queries:
                raise InputError(f"a judgment names query {query!r}, which task {self.name!r} does not have")
            for document, grade in grades.items():
                if document not in documents:
                    raise InputError(
                        f"query {query!r} has a grade for document {document!r}, which is not in the corpus"
                    )
                if grade < 0:
                    raise InputError(f"query {query!r}, document {document!r}: grade {grade} is negative")

    @classmethod
    def from_dicts(
        cls,
        corpus: Mapping[Any, str | Mapping[str, Any]],
        queries: Mapping[Any, str | Mapping[str, Any]],
        qrels: Mapping[Any, Mapping[Any, int]],
        *,
        name: str = "task",
        rel: int = 1,
    ) -> Task:
        """From BEIR's three dicts: texts by id (or {"title", "text"}), queries by id, grades by query and document."""
        return cls(
            name=name,
            documents=[_document(str(item), content) for item, content in corpus.items()],
            queries=[_query(str(item), content) for item, content in queries.items()],
            judgments={str(q): {str(d): int(grade) for d, grade in grades.items()} for q, grades in qrels.items()},
            rel=rel,
        )

    @classmethod
    def from_pandas(cls, corpus: Any, queries: Any, qrels: Any, *, name: str = "task", rel: int = 1) -> Task:
        """From three frames: corpus (id, text, title …), queries (id, text), qrels (query, document, grade)."""
        for what, frame, columns in (
            ("corpus", corpus, ("id", "text")),
            ("queries", queries, ("id", "text")),
            ("qrels", qrels, ("query", "document", "grade")),
        ):
            if lacking := [column for column in columns if column not in frame.columns]:
                known = ", ".join(map(str, frame.columns))
                raise InputError(f"{what} has no column {lacking[0]!r}", remedy=f"its columns: {known}")
        grades: dict[str, dict[str, int]] = {}
        for row in qrels.to_dict("records"):
            grades.setdefault(str(row["query"]), {})[str(row["document"])] = row["grade"]
        tables = [{str(row.pop("id")): row for row in frame.to_dict("records")} for frame in (corpus, queries)]
        for what, frame, table in zip(("corpus", "queries"), (corpus, queries), tables, strict=True):
            if len(table) < len(frame):
                raise InputError(f"{what} has {len(frame) - len(table)} duplicate ids", remedy="keep one row for each")
        return cls.from_dicts(tables[0], tables[1], grades, name=name, rel=rel)

    def __repr__(self) -> str:
        judged = sum(map(len, self.judgments.values()))
        sizes = f"{len(self.documents)} documents, {len(self.queries)} queries, {judged} judgments"
        return f"Task({self.name!r}: {sizes})"

    @property
    def categories(self) -> list[str]:
        """The queries' categories in order of first appearance."""
        return list(dict.fromkeys(query.category for query in self.queries if query.category))

    @property
    def time_bound(self) -> bool:
        """Whether any query asks about a day."""
        return any(query.as_of for query in self.queries)

    @property
    def candidates(self) -> int:
        """How many documents a query can find: all, or all but itself if queries are items."""
        return len(self.documents) - any(query.excluded for query in self.queries)

    @property
    def metadata(self) -> dict[str, Mapping[str, Any]]:
        """The metadata of documents that have any, by id."""
        plain = isinstance(self.documents, DocumentsOnDisk) and self.documents.plain
        blocks = () if plain else document_blocks(self.documents)
        return {document.id: document.metadata for block in blocks for document in block if document.metadata}

    def without_relevant(self) -> list[str]:
        """Queries without a relevant document. Every contender scores 0 on them."""
        return [
            query.id
            for query in self.queries
            if not any(grade >= self.rel for grade in self.judgments.get(query.id, {}).values())
        ]

    def fingerprint(self) -> str:
        """Equal for equal tasks. Results are comparable only if their fingerprints match."""
        content = (
            [(q.id, q.text, q.category, *filter(None, (q.item, q.where, q.identical, _day(q)))) for q in self.queries],
            sorted((query, sorted(grades.items())) for query, grades in self.judgments.items()),
            self.rel,
        )
        digest, encode = hashlib.sha256(), msgspec.json.Encoder().encode
        has_fields = False
        for number, block in enumerate(document_blocks(self.documents)):  # the corpus may not fit into memory
            digest.update(b"," if number else b"[[")
            digest.update(encode([(d.id, d.title, d.text, d.chunking) for d in block])[1:-1])
            has_fields = has_fields or any(d.fields for d in block)
        digest.update(b"]" + b"".join(b"," + encode(part) for part in content))
        for block in document_blocks(self.documents) if has_fields else ():
            for document in block:
                if document.fields:
                    digest.update(b"," + encode((document.id, sorted(document.fields.items()))))
        for block in document_blocks(self.documents) if self.time_bound else ():
            for document in block:
                if any(period := period_of(document.metadata)):
                    digest.update(b"," + encode((document.id, period)))
        digest.update(b"]")
        return digest.hexdigest()[:16]


def document_ids(documents: Sequence[Document]) -> list[str]:
    """Their ids. Documents on disk are not read for this."""
    return documents.ids if isinstance(documents, DocumentsOnDisk) else [document.id for document in documents]


def document_blocks(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    """All documents in their order. Those in memory are one block."""
    yield from documents.blocks() if isinstance(documents, DocumentsOnDisk) else [documents]


def first_wrong_period(documents: Sequence[Document]) -> tuple[str, InputError] | None:
    """The first document with an invalid period, and the error."""
    for block in document_blocks(documents):
        for document in block:
            try:
                period_of(document.metadata)
            except InputError as error:
                return document.id, error
    return None


def _document(item: str, content: str | Mapping[str, Any]) -> Document:
    if isinstance(content, str):
        return Document(id=item, text=content)
    metadata = {key: value for key, value in content.items() if key not in ("text", "title")}
    return Document(id=item, text=str(content["text"]), title=str(content.get("title") or ""), metadata=metadata)


def _query(item: str, content: str | Mapping[str, Any]) -> Query:
    if isinstance(content, str):
        return Query(id=item, text=content)
    day = parse_day(content.get(AS_OF), f"query {item!r}: {AS_OF}")
    category, cluster = (str(content.get(key) or "") for key in ("category", "cluster"))
    return Query(id=item, text=str(content["text"]), category=category, as_of=day, cluster=cluster)


def _day(query: Query) -> tuple[str, str] | None:
    """What a time-bound query adds to the fingerprint."""
    return (AS_OF, query.as_of) if query.as_of else None


def _find_named(documents: Sequence[Document], queries: Sequence[Query], judgments: Judgments, task: str) -> set[str]:
    """The corpus's documents that queries and grades name. Creates no object per document."""
    from bakeoff.core.id_rows import IdRows  # here because results are read without numpy

    ids = document_ids(documents)
    rows = IdRows(ids)
    if "" in rows or rows.has_repeats():
        _unique(ids, "document", task)
    named = {query.item for query in queries if query.item}
    return rows.among(list(named.union(*judgments.values())))


def _unique(ids: list[str], what: str, task: str) -> set[str]:
    seen = set(ids)
    if len(seen) == len(ids) and "" not in seen:
        return seen
    seen.clear()
    for item in ids:
        if not item:
            raise InputError(f"task {task!r} has a {what} with an empty id")
        if item in seen:
            raise InputError(f"{what} id {item!r} appears twice in task {task!r}")
        seen.add(item)
    return seen
