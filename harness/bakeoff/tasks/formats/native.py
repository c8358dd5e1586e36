"""Bakeoff's own files: articles, queries and the graded ground truth, each checked field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError, place_words

from bakeoff.core.files import read_json, write_json
from bakeoff.core.task import Document, DocumentChunking, Query, Task
from bakeoff.tasks import ground_truth as truth_file
from bakeoff.tasks.formats.shared_options import Rel
from bakeoff.tasks.ground_truth import GroundTruth, read_truth

FORMAT = "native"  # its name in a task.toml


class Article(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One document. Places may be unknown; a summary may not be missing in a task. `metadata` is the user's own.

    The text is called `summary`, as in the encyclopedia that the format comes from.
    """

    page_id: int | str
    title: str
    summary: str
    city: str | None = None
    county: str | None = None
    state: str | None = None
    categories: list[str] = []
    embedding_metadata: DocumentChunking = DocumentChunking()
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class ArticleFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`evaluate_articles.json`, and the pool it is drawn from."""

    metadata: dict[str, Any] = {}
    articles: list[Article]


class QueryEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One query. Grades belong into the ground truth; `expected_results` and `relevance_annotations`, which older
    files have, repeat some of them.
    """

    query_id: str
    query_text: str
    category: str = ""
    language: str = ""
    where: dict[str, str | int | bool | list[str | int | bool]] = {}
    metadata: dict[str, Any] = {}
    expected_results: list[int | str] | None = None
    relevance_annotations: dict[str, int] | None = None


class QueryFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`evaluate_queries.json`."""

    metadata: dict[str, Any] = {}
    queries: list[QueryEntry]


def read_articles(path: Path) -> ArticleFile:
    """An article file with no duplicate page and no empty summary."""
    content = read_json(path, ArticleFile)
    seen: dict[str, int] = {}
    for place, article in enumerate(content.articles):
        where = f"$.articles[{place}]"
        if (key := str(article.page_id)) in seen:
            raise InputError(
                f"page_id {key} is a duplicate of {place_words(f'$.articles[{seen[key]}]')}",
                file=path,
                place=where,
                remedy="remove one of them",
            )
        seen[key] = place
        if not article.summary.strip():
            raise InputError("summary is empty", file=path, place=where, remedy="write one, or drop the article")
    if not content.articles:
        raise InputError("the corpus is empty", file=path, place="$.articles", remedy="give it at least one article")
    return content


def document(article: Article) -> Document:
    """An article as the document that is embedded and ranked."""
    return Document(
        id=str(article.page_id),
        title=article.title,
        text=article.summary,
        metadata={
            "city": article.city,
            "county": article.county,
            "state": article.state,
            "categories": article.categories,
            **(article.metadata or {}),
        },
        chunking=article.embedding_metadata,
    )


def load(
    name: str,
    base: Path,
    articles: Annotated[str, "file of documents"],
    queries: Annotated[str, "file of queries"],
    ground_truth: Annotated[str, "file of grades; ground_truth.json, if there is one, where it is left out"] = "",
    rel: Rel = 1,
) -> Task:
    """The graded task in its files, checked against each other; a task that nobody graded yet may lack the last."""
    truth = base / (ground_truth or truth_file.FILE)
    return read_task(name, base / articles, base / queries, truth if truth.exists() else None, rel)


def read_task(name: str, articles: Path, queries: Path, ground_truth: Path | None, rel: int = 1) -> Task:
    """Each file first by itself, then against the others."""
    pages = read_articles(articles).articles
    known = {str(page.page_id) for page in pages}
    asked = read_queries(queries).queries
    graded = GroundTruth(grades={})
    if ground_truth is not None:
        graded = read_truth(ground_truth, {entry.query_id for entry in asked}, known)
    for place, entry in enumerate(asked):
        _check_repeated(entry, graded, known, queries, f"$.queries[{place}]")
    return Task(
        name=name,
        documents=[document(page) for page in pages],
        queries=[
            Query(id=entry.query_id, text=entry.query_text, category=entry.category, where=entry.where)
            for entry in asked
        ],
        judgments=graded.grades,
        rel=rel,
        graded_by_model=graded.graded_by_model,
    )


def read_queries(path: Path) -> QueryFile:
    """A query file in which every query has an id of its own and a text."""
    content = read_json(path, QueryFile)
    seen: dict[str, int] = {}
    for place, entry in enumerate(content.queries):
        where = f"$.queries[{place}]"
        if entry.query_id in seen:
            raise InputError(
                f"query_id {entry.query_id!r} is a duplicate of {place_words(f'$.queries[{seen[entry.query_id]}]')}",
                file=path,
                place=where,
                remedy="give each query its own",
            )
        seen[entry.query_id] = place
        if not entry.query_text.strip():
            raise InputError("query_text is empty", file=path, place=where, remedy="write one, or drop the query")
    return content


def drop_repeated_grades(path: Path) -> None:
    """Rewrites the queries of an older task without the grades that they repeat, so that these live in one place."""
    content = read_json(path, QueryFile)
    if any(entry.expected_results is not None or entry.relevance_annotations is not None for entry in content.queries):
        content.queries = [
            msgspec.structs.replace(entry, expected_results=None, relevance_annotations=None)
            for entry in content.queries
        ]
        write_json(path, content)


def _check_repeated(entry: QueryEntry, truth: GroundTruth, documents: set[str], file: Path, where: str) -> None:
    """Grades that a query repeats must be those of the ground truth: a repetition that differs is worse than none."""
    grades = truth.grades.get(entry.query_id, {})
    for document, grade in (entry.relevance_annotations or {}).items():
        place = f"{where}.relevance_annotations.{document}"
        if document not in documents:
            raise InputError("this document is not in the corpus", file=file, place=place, remedy="drop the annotation")
        if grades.get(document) != grade:
            raise InputError(
                f"grade {grade} differs from the ground truth ({grades.get(document)})", file=file, place=place,
                remedy="grades live in the ground truth: remove relevance_annotations",
            )  # fmt: skip
    if entry.expected_results is None:
        return
    expected = {str(page) for page in entry.expected_results}
    direct = {document for document, grade in grades.items() if grade >= 2}
    if expected != direct:
        raise InputError(
            f"expected_results must be the documents graded 2 or 3; off by {sorted(expected ^ direct)}", file=file,
            place=f"{where}.expected_results", remedy="grades live in the ground truth: remove expected_results",
        )  # fmt: skip
