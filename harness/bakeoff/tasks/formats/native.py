"""Bakeoff's own files: articles, queries and the graded ground truth, each checked field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_json
from bakeoff.core.task import Chunking, Document, Query, Task

FORMAT = "native"  # its name in a task.toml
GRADES = {3: "direct match", 2: "related", 1: "tangential", 0: "none"}


class Article(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One article of a pool or of a drawn sample. Places may be unknown; a summary may not be missing in a task."""

    page_id: int
    title: str
    summary: str
    city: str | None = None
    county: str | None = None
    state: str | None = None
    categories: list[str] = []
    embedding_metadata: Chunking = Chunking()


class ArticleFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`evaluate_articles.json`, and the pool it is drawn from."""

    metadata: dict[str, Any] = {}
    articles: list[Article]


class QueryEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One query, with the documents a reader should expect and their grades from 1 up."""

    query_id: str
    query_text: str
    category: str
    expected_results: list[int]
    relevance_annotations: dict[str, int]
    where: dict[str, str | int | bool | list[str | int | bool]] = {}


class QueryFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`evaluate_queries.json`."""

    metadata: dict[str, Any] = {}
    queries: list[QueryEntry]


class GroundTruth(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`ground_truth.json`: the grade of every pair, query → page_id → grade."""

    metadata: dict[str, Any] = {}
    grades: dict[str, dict[str, int]]


def read_articles(path: Path) -> ArticleFile:
    """An article file with no duplicate page and no empty summary."""
    content = read_json(path, ArticleFile)
    seen: dict[int, int] = {}
    for place, article in enumerate(content.articles):
        where = f"$.articles[{place}]"
        if article.page_id in seen:
            raise InputError(
                f"page_id {article.page_id} is a duplicate of $.articles[{seen[article.page_id]}]",
                file=path,
                place=where,
                remedy="remove one of them",
            )
        seen[article.page_id] = place
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
        },
        chunking=article.embedding_metadata,
    )


def load(name: str, base: Path, articles: str, queries: str, ground_truth: str, rel: int = 1) -> Task:
    """The graded task in three files, checked against each other."""
    return read_task(name, base / articles, base / queries, base / ground_truth, rel)


def read_task(name: str, articles: Path, queries: Path, ground_truth: Path, rel: int = 1) -> Task:
    """Each file first by itself, then against the others."""
    pages = read_articles(articles).articles
    known = {str(page.page_id) for page in pages}
    asked = read_json(queries, QueryFile).queries
    graded = read_json(ground_truth, GroundTruth)
    truth = graded.grades
    _check_truth(truth, {entry.query_id for entry in asked}, known, ground_truth)
    for place, entry in enumerate(asked):
        _check_entry(entry, truth.get(entry.query_id, {}), known, queries, f"$.queries[{place}]")
    return Task(
        name=name,
        documents=[document(page) for page in pages],
        queries=[
            Query(id=entry.query_id, text=entry.query_text, category=entry.category, where=entry.where)
            for entry in asked
        ],
        judgments=truth,
        rel=rel,
        graded_by_model=_whole(graded.metadata.get("graded_by_model")),
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _check_truth(truth: dict[str, dict[str, int]], queries: set[str], documents: set[str], file: Path) -> None:
    for query, grades in truth.items():
        if query not in queries:
            raise InputError(
                f"unknown query {query!r}", file=file, place="$.grades", remedy="add it, or drop its grades"
            )
        for document, grade in grades.items():
            where = f"$.grades.{query}.{document}"
            if document not in documents:
                raise InputError("this article is not in the corpus", file=file, place=where, remedy="drop this grade")
            if grade not in GRADES:
                raise InputError(f"grade {grade} is out of range", file=file, place=where, remedy="use 0, 1, 2 or 3")


def _check_entry(entry: QueryEntry, grades: dict[str, int], documents: set[str], file: Path, where: str) -> None:
    """The queries repeat part of the truth for their readers; a repetition that differs is worse than none."""
    if not entry.query_text.strip():
        raise InputError("query_text is empty", file=file, place=where)
    for document, grade in entry.relevance_annotations.items():
        place = f"{where}.relevance_annotations.{document}"
        if document not in documents:
            raise InputError("this article is not in the corpus", file=file, place=place, remedy="drop the annotation")
        if grade not in GRADES:
            raise InputError(f"grade {grade} is out of range", file=file, place=place, remedy="use 0, 1, 2 or 3")
        if grades.get(document) != grade:
            raise InputError(
                f"grade {grade} differs from the ground truth ({grades.get(document)})", file=file, place=place
            )
    expected = {str(page) for page in entry.expected_results}
    direct = {document for document, grade in grades.items() if grade >= 2}
    if expected != direct:
        raise InputError(
            f"expected_results must be the documents graded 2 or 3; off by {sorted(expected ^ direct)}",
            file=file,
            place=f"{where}.expected_results",
        )
