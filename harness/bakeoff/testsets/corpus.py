"""Documents as people have them → `articles.json`, with what was left out and why."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_bytes, read_json
from bakeoff.core.progress import Progress, silent
from bakeoff.core.task import Chunking
from bakeoff.tasks.formats.cells import Row
from bakeoff.tasks.formats.native import Article, ArticleFile
from bakeoff.testsets import mediawiki, source_tables, text_files, wikipedia_database
from bakeoff.testsets.text_similarity import normalised

IDS = 10**10  # short enough to read, rarely the same for two names


@dataclass(frozen=True, slots=True)
class Options:
    """How to read a source: what its columns and table are called, which wiki to ask, how to cut documents."""

    columns: Mapping[str, str] = field(default_factory=dict)
    table: str | None = None
    api: str | None = None
    whole: bool = False
    chunking: Chunking = field(default_factory=Chunking)
    progress: Progress = silent


@dataclass(slots=True)
class SourceDocuments:
    """Documents with the names that their source gives them, and the names of those that are missing."""

    documents: list[tuple[str, Article]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Imported:
    """The corpus, and everything that is not in it."""

    file: ArticleFile
    duplicates: list[tuple[str, str]]
    empty: list[str]
    missing: list[str]


def import_corpus(source: Path, options: Options, *, date: datetime.date | None = None) -> Imported:
    """Reads a source, leaves out empty documents and duplicates, and names them."""
    source_documents = _reader(source, options)(source, options)
    kept: dict[str, tuple[str, Article]] = {}
    duplicates: list[tuple[str, str]] = []
    empty: list[str] = []
    for name, article in source_documents.documents:
        words = normalised(article.summary)
        if not words:
            empty.append(name)
        elif words in kept:
            duplicates.append((name, kept[words][0]))
        else:
            kept[words] = (name, msgspec.structs.replace(article, embedding_metadata=options.chunking))
    if not kept:
        raise InputError(
            f"no document is left ({len(empty)} empty, {len(source_documents.missing)} missing)",
            file=source,
            remedy="check --column text=…, or the source itself",
        )
    _refuse_shared_ids([(name, str(article.page_id)) for name, article in kept.values()], source)
    metadata = {
        "source": source.name,
        "imported": (date or datetime.date.today()).isoformat(),
        "documents": len(kept),
        "empty": len(empty),
        "duplicates": len(duplicates),
        "missing": len(source_documents.missing),
    }
    if options.api:
        metadata["api"] = options.api
    articles = [article for _, article in kept.values()]
    return Imported(ArticleFile(metadata=metadata, articles=articles), duplicates, empty, source_documents.missing)


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
    raise InputError(f"is of no kind that can be imported ({suffix or 'no suffix'})", file=source, remedy=known)


def _from_folder(folder: Path, options: Options) -> SourceDocuments:
    """Every text below the folder; the names of its folders are its first categories."""
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix.lower() in text_files.READERS
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not paths:
        raise InputError("holds no text", file=folder, remedy=f"files ending in {', '.join(text_files.READERS)}")
    names = [path.relative_to(folder).as_posix() for path in paths]
    numbers = numbered(names)
    collected = SourceDocuments()
    with options.progress("documents", len(paths)) as advance:
        for path, name in zip(paths, names, strict=True):
            try:
                content = path.read_bytes().decode("utf-8-sig")
            except UnicodeDecodeError as error:
                raise InputError(f"is not UTF-8 (byte {error.start})", file=path, remedy="save it as UTF-8") from None
            title, text, fields = text_files.READERS[path.suffix.lower()](content)
            tags = [fields.get(key, "") for key in ("categories", "tags")]
            fields["categories"] = "; ".join(filter(None, [*Path(name).parts[:-1], *tags]))
            row = {**fields, "title": title or path.stem.replace("-", " ").replace("_", " "), "text": text}
            collected.documents.append((name, _article(numbers[name], row)))
            advance(1)
    return collected


def _from_rows(path: Path, options: Options) -> SourceDocuments:
    return _from_table(path, source_tables.read_file(path), options)


def _from_database(path: Path, options: Options) -> SourceDocuments:
    """A database of the `wikipedia.db` shape is joined as `select` joins it; of any other, one table is read."""
    tables = source_tables.tables_of(path)
    if options.table is None and set(wikipedia_database.TABLES) <= set(tables):
        articles = wikipedia_database.read_database(path, options.columns, wikipedia_database.TABLES)
        return SourceDocuments([(f"{article.page_id} {article.title}", article) for article in articles])
    return _from_table(path, source_tables.read_table(path, options.table), options)


def _from_json(path: Path, options: Options) -> SourceDocuments:
    """An article file, or a list of objects."""
    content = read_json(path, Any)
    if isinstance(content, list) and all(isinstance(row, dict) for row in content):
        return _from_table(path, content, options)
    articles = read_json(path, ArticleFile).articles
    return SourceDocuments([(f"{article.page_id} {article.title}", article) for article in articles])


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


def _from_table(path: Path, table: Sequence[Row], options: Options) -> SourceDocuments:
    columns = source_tables.columns_for(table, options.columns, path)
    fields = [{name: row.get(column) for name, column in columns.items()} for row in table]
    names = [_name(row, place) for place, row in enumerate(fields, start=1)]
    numbers = numbered(names)
    return SourceDocuments([(name, _article(numbers[name], row)) for name, row in zip(names, fields, strict=True)])


def _name(row: Mapping[str, Any], place: int) -> str:
    """What a row is called: its id, otherwise its place in the file."""
    given = row.get("id")
    return f"row {place}" if given is None or not str(given).strip() else str(given).strip()


def _article(number: int, row: Mapping[str, Any]) -> Article:
    def place(name: str) -> str | None:
        return str(row.get(name) or "").strip() or None

    text = str(row.get("text") or "").strip()
    return Article(
        page_id=number,
        title=str(row.get("title") or "").strip() or text[:60],
        summary=text,
        city=place("city"),
        county=place("county"),
        state=place("state"),
        categories=list(dict.fromkeys(source_tables.listed(row.get("categories")))),
    )


def numbered(names: Sequence[str]) -> dict[str, int]:
    """Ids as numbers. A name that is one keeps it; others get a hash of the name.

    So a document that comes later changes no other's number, and grades stay with what they were given to.
    """
    if all(name.isascii() and name.isdigit() and int(name) < 2**53 for name in names):
        return {name: int(name) for name in names}
    taken: dict[int, str] = {}
    for name in names:
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % IDS
        while taken.get(number, name) != name:
            number = (number + 1) % IDS
        taken[number] = name
    return {name: number for number, name in taken.items()}


def _refuse_shared_ids(named: Sequence[tuple[str, str]], source: Path) -> None:
    seen: dict[str, str] = {}
    for name, number in named:
        if number in seen:
            raise InputError(
                f"two documents have the id {number} ({seen[number]!r} and {name!r})", file=source,
                remedy="give each its own, or name another column with --column id=…",
            )  # fmt: skip
        seen[number] = name
