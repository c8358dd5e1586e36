"""Import documents in many formats into `articles.json`, and record what was left out and why."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.secrets import redact_url

from bakeoff.core.data_files import read_data
from bakeoff.core.facts import Fact
from bakeoff.core.files import read_bytes, read_json
from bakeoff.core.progress import Progress, silent
from bakeoff.core.task import DocumentChunking
from bakeoff.extensions.testsets import mediawiki, wikipedia_database
from bakeoff.extensions.testsets.document_files import READERS, Unreadable, read_document
from bakeoff.extensions.testsets.text_similarity import normalise
from bakeoff.tasks.formats import source_tables
from bakeoff.tasks.formats.cells import Row
from bakeoff.tasks.formats.native import Article, ArticleFile
from bakeoff.tasks.formats.tables import read_table

LEFT_OUT = "left_out"  # metadata key with the full lists; the screen shows only the first names
HEADING_OR_NAME = "its heading or its name (one word: its path)"
OF_A_FILE = {field: field for field in source_tables.USUAL["documents"] if field != "id"}  # the id is the path


@dataclass(frozen=True, slots=True)
class Options:
    """How to read a source: columns, table, wiki API and chunking."""

    columns: Mapping[str, str] = field(default_factory=dict)
    table: str | None = None
    api: str | None = None
    whole: bool = False
    chunking: DocumentChunking | None = None  # None: the source's own, or whole documents
    progress: Progress = silent


class ImportedArticle(Article, omit_defaults=True):
    """Omits empty fields when written, since most corpora have no places."""


@dataclass(slots=True)
class SourceDocuments:
    """Documents by their names in the source, missing ones, and skipped files."""

    documents: list[tuple[str, Article]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    taken: str = ""
    places: list[str] = field(default_factory=list)  # in the source, if the names do not tell
    metadata: Mapping[str, Any] = field(default_factory=dict)  # of an article file
    notes: list[Fact] = field(default_factory=list)  # on an article file


@dataclass(slots=True)
class ImportedCorpus:
    """The corpus, everything left out of it, and which column became which field."""

    file: ArticleFile
    duplicates: list[tuple[str, str]]
    empty: list[str]
    missing: list[str]
    skipped: list[str]
    taken: str
    notes: list[Fact]


def import_corpus(source: Path, options: Options, *, date: datetime.date | None = None) -> ImportedCorpus:
    """Read a source; leave out empty documents and duplicates, and list them."""
    source_documents = _reader(source, options)(source, options)
    kept: dict[str, tuple[str, Article]] = {}
    duplicates: list[tuple[str, str]] = []
    empty: list[str] = []
    places: dict[str, str] = {}
    for number, (name, article) in enumerate(source_documents.documents):
        words = normalise(article.summary)
        if not words:
            empty.append(name)
        elif words in kept:
            duplicates.append((name, kept[words][0]))
        else:
            place = source_documents.places[number] if source_documents.places else name
            _refuse_shared_id(str(article.document_id), place, places, source)
            if options.chunking is not None:
                article = msgspec.structs.replace(article, embedding_metadata=options.chunking)
            kept[words] = (name, article)
    if not kept:
        raise InputError(
            f"no document is left ({len(empty)} empty, {len(source_documents.missing)} missing)",
            file=source,
            remedy="check --column text=…, or the source itself",
        )
    left_out = {
        "empty": empty,
        "duplicates": [f"{name} = {first}" for name, first in duplicates],
        "missing": source_documents.missing,
        "skipped": source_documents.skipped,
    }
    metadata = {
        **source_documents.metadata,
        "source": source.name,
        "imported": (date or datetime.date.today()).isoformat(),
        "documents": len(kept),
        **{what: len(names) for what, names in left_out.items()},
        LEFT_OUT: {what: names for what, names in left_out.items() if names},
    }
    if options.api:
        metadata["api"] = redact_url(options.api)
    articles = [article for _, article in kept.values()]
    file = ArticleFile(metadata=metadata, articles=articles)
    left = (source_documents.missing, source_documents.skipped, source_documents.taken, source_documents.notes)
    return ImportedCorpus(file, duplicates, empty, *left)


def _reader(source: Path, options: Options) -> Callable[[Path, Options], SourceDocuments]:
    if options.api is not None:
        return _from_wiki
    if source.is_dir():
        return _from_folder
    if not source.exists():
        raise InputError("no such file or folder", file=source, remedy="check the path")
    if wikipedia_database.is_sqlite(source):
        return _from_database
    suffix = source.suffix.lower()
    if suffix == ".json":
        return _from_json
    if suffix in source_tables.FILES:
        return _from_rows
    known = ", ".join([*source_tables.FILES, ".json", "SQLite", "a folder", "a list of titles with --api"])
    raise InputError(f"can't be imported ({suffix or 'no suffix'})", file=source, remedy=known)


def _from_folder(folder: Path, options: Options) -> SourceDocuments:
    """Every document below the folder, by its path; its folders' names are its first categories."""
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    names = Counter(path.stem for path in paths)
    collected = SourceDocuments()
    with options.progress("documents", len(paths)) as advance:
        for path in paths:
            name = _as_text(path.relative_to(folder).as_posix())
            suffix = path.suffix.lower()
            try:
                if suffix not in READERS:
                    raise Unreadable(f"{suffix} is not supported" if suffix else "has no suffix")
                title, text, fields = read_document(suffix, read_bytes(path))
            except Unreadable as error:
                collected.skipped.append(f"{name}: {error}")
            else:
                tags = [fields.pop(key, "") for key in ("categories", "tags")]
                categories = "; ".join(filter(None, [*Path(name).parts[:-1], *tags]))
                title = title or _title_of(path, folder, names)
                row = {**fields, "categories": categories, "title": title, "text": text}
                collected.documents.append((name, _article(name, row, OF_A_FILE)))
            advance(1)
    metadata = dict.fromkeys(name for _, article in collected.documents for name in article.metadata or {})
    collected.taken = source_tables.describe_columns({"id": "the file's path", "title": HEADING_OR_NAME}, metadata)
    if not collected.documents:
        reasons = f" ({collected.skipped[0]})" if collected.skipped else ""
        raise InputError(f"holds no document{reasons}", file=folder, remedy=f"files ending in {', '.join(READERS)}")
    return collected


def _as_text(name: str) -> str:
    """Escape bytes that are not UTF-8, so that names can be written and stay distinct."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _title_of(path: Path, folder: Path, names: Mapping[str, int]) -> str:
    """The file's name as words, with its folders if it is a single word or not unique."""
    words = _as_text(path.stem).replace("-", " ").replace("_", " ")
    below = _as_text(path.relative_to(folder).with_suffix("").as_posix()).replace("-", " ").replace("_", " ")
    return below if len(words.split()) == 1 or names[path.stem] > 1 else words


def _from_rows(path: Path, options: Options) -> SourceDocuments:
    rows = list(read_table(path).rows)
    return from_table(path, [row for _, row in rows], options, [place for place, _ in rows])


def _from_database(path: Path, options: Options) -> SourceDocuments:
    """Join a database in the `wikipedia.db` schema as `select` does; of any other, read one table."""
    tables = source_tables.tables_of(path)
    if options.table is None and set(wikipedia_database.TABLES) <= set(tables):
        articles = wikipedia_database.read_database(path, options.columns, wikipedia_database.TABLES)
        return SourceDocuments([(f"{article.document_id} {article.title}", article) for article in articles])
    return from_table(path, source_tables.read_table(path, options.table), options)


def _from_json(path: Path, options: Options) -> SourceDocuments:
    """An article file, or a list of objects."""
    content = read_json(path, Any)
    if isinstance(content, list) and all(isinstance(row, dict) for row in content):
        return from_table(path, content, options)
    file, notes = read_data(path, ArticleFile)
    documents = [(f"{article.document_id} {article.title}", article) for article in file.articles]
    return SourceDocuments(documents, metadata=file.metadata, notes=[*notes])


def _from_wiki(path: Path, options: Options) -> SourceDocuments:
    """A file of titles, one per line; `#` starts a comment."""
    try:
        lines = read_bytes(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte {error.start})", file=path, remedy="save it as UTF-8") from None
    titles = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not titles:
        raise InputError("names no title", file=path, remedy="write one title per line")
    assert options.api is not None
    fetched = mediawiki.fetch(titles, options.api, whole=options.whole, progress=options.progress)
    return SourceDocuments([(article.title, article) for article in fetched.articles], fetched.missing)


def from_table(path: Path, table: Sequence[Row], options: Options, places: Sequence[str] = ()) -> SourceDocuments:
    """Read rows as documents; columns are found by their usual names or by the options."""
    columns = source_tables.columns_for(table, options.columns, path)
    numbers = source_tables.number_columns(path, table, columns)
    named = [(_id(row, columns, place), row) for place, row in enumerate(table, start=1)]
    documents = [(str(name), _article(name, row, columns, numbers)) for name, row in named]
    metadata = dict.fromkeys(name for _, article in documents for name in article.metadata or {})
    replaced = {"id": "the row's place", "title": "the text's beginning"}
    return SourceDocuments(
        documents,
        taken=source_tables.describe_columns({**replaced, **columns}, metadata, numbers),
        places=list(places) or [f"row {number}" for number in range(1, len(table) + 1)],
    )


def _id(row: Row, columns: Mapping[str, str], place: int) -> int | str:
    """The row's own id, or its position in the file."""
    given = row.get(columns.get("id", ""))
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    return f"row {place}" if given is None or not str(given).strip() else str(given).strip()


def _article(name: int | str, row: Row, columns: Mapping[str, str], numbers: Collection[str] = ()) -> Article:
    """A row as a document; other columns are metadata."""

    def cell(field: str) -> str | None:
        return str(row.get(columns.get(field, "")) or "").strip() or None

    text = cell("text") or ""
    return ImportedArticle(
        document_id=name,
        title=cell("title") or text[:60],
        summary=text,
        city=cell("city"),
        county=cell("county"),
        state=cell("state"),
        categories=list(dict.fromkeys(source_tables.split_list(row.get(columns.get("categories", ""))))),
        html_file=cell("html_file"),
        metadata=source_tables.other_columns(row, columns, numbers) or msgspec.UNSET,
    )


def _refuse_shared_id(name: str, place: str, seen: dict[str, str], source: Path) -> None:
    """Refuse an id that was seen before, and name both places."""
    if name in seen:
        raise InputError(
            f"two documents have the id {name}; the other one is at {seen[name]}", file=source, place=place,
            remedy="give each its own, or name another column with --column id=…",
        )  # fmt: skip
    seen[name] = place
