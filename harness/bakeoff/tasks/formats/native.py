"""Bakeoff's own files: articles, queries and the graded ground truth, each checked field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError, place_words

from bakeoff.core.data_files import read_data
from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import check_keys_once, file_exists, write_json
from bakeoff.core.printable import pluralise, some
from bakeoff.core.task import (
    AS_OF,
    FROM,
    TO,
    Document,
    DocumentChunking,
    Judgments,
    Query,
    Task,
    first_wrong_period,
    parse_day,
)
from bakeoff.tasks import ground_truth as truth_file
from bakeoff.tasks.formats.rows import Rel
from bakeoff.tasks.ground_truth import GRADES, GroundTruth, one_of, read_truth

FORMAT = "native"  # its name in a task.toml
_NAMED = 10  # pairs in a message


class Article(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One document. Places are optional; a task needs the summary. `metadata` holds the user's own keys.

    `valid_from` and `valid_to` are its first and last day, for time-bound queries.

    The text is called `summary`, as in Wikipedia, where the format comes from.
    """

    document_id: int | str = msgspec.field(name="page_id")
    title: str
    summary: str
    city: str | None = None
    county: str | None = None
    state: str | None = None
    categories: list[str] = []
    html_file: str | None = None
    valid_from: str | msgspec.UnsetType | None = msgspec.UNSET
    valid_to: str | msgspec.UnsetType | None = msgspec.UNSET
    embedding_metadata: DocumentChunking = DocumentChunking()
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class ArticleFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`evaluate_articles.json`, and the pool it is drawn from."""

    metadata: dict[str, Any] = {}
    articles: list[Article]


class QueryEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One query. `relevance_annotations` and `expected_results` are its grades if there is no ground truth, and
    repeat some of them if there is. `as_of` is the day it asks about. Queries that ask for the same thing share
    a `cluster`.
    """

    query_id: str
    query_text: str
    category: str = ""
    cluster: str = ""
    language: str = ""
    where: dict[str, str | int | bool | list[str | int | bool]] = {}
    as_of: str | None = None
    metadata: dict[str, Any] = {}
    expected_results: list[int | str] | None = None
    relevance_annotations: dict[str, int] | None = None


class QueryFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`evaluate_queries.json`."""

    metadata: dict[str, Any] = {}
    categories: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    queries: list[QueryEntry]


def count_categories(entries: Iterable[QueryEntry]) -> dict[str, int] | msgspec.UnsetType:
    """Queries per category, in order of appearance."""
    return dict(Counter(entry.category for entry in entries if entry.category)) or msgspec.UNSET


def read_articles(path: Path) -> tuple[ArticleFile, list[Fact]]:
    """A checked article file and its unknown keys."""
    content, notes = read_data(path, ArticleFile)
    seen: dict[str, int] = {}
    for place, article in enumerate(content.articles):
        where = f"$.articles[{place}]"
        if (key := str(article.document_id)) in seen:
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
    return content, notes


def document(article: Article) -> Document:
    """An article as the document that is embedded and ranked."""
    period = {FROM: article.valid_from, TO: article.valid_to}
    return Document(
        id=str(article.document_id),
        title=article.title,
        text=article.summary,
        metadata={
            "city": article.city,
            "county": article.county,
            "state": article.state,
            "categories": article.categories,
            **(article.metadata or {}),
            **{field: day for field, day in period.items() if day},
        },
        chunking=article.embedding_metadata,
    )


def load(
    name: str,
    base: Path,
    articles: Annotated[str, "file of documents"],
    queries: Annotated[str, "file of queries"],
    ground_truth: Annotated[str, "file of grades; default: ground_truth.json, if it exists"] = "",
    rel: Rel = 1,
) -> Task:
    """Load the task; an ungraded one may lack ground_truth.json."""
    truth = base / (ground_truth or truth_file.FILE)
    return read_task(name, base / articles, base / queries, truth if file_exists(truth) else None, rel)


def read_task(name: str, articles: Path, queries: Path, ground_truth: Path | None, rel: int = 1) -> Task:
    """Reads and checks each file, then checks them against each other."""
    corpus, notes = read_articles(articles)
    asked, of_queries = read_queries(queries)
    documents = [document(page) for page in corpus.articles]
    days = [_day(entry, place, queries) for place, entry in enumerate(asked.queries)]
    _check_periods(corpus.articles, documents, articles, own=any(days))
    known = {str(page.document_id) for page in corpus.articles}
    truth = GroundTruth(grades={})
    of_truth: list[Fact] = []
    if ground_truth is not None:
        truth, of_truth = read_truth(ground_truth, {entry.query_id for entry in asked.queries}, known)
    if truth.grades:
        _check_repeated(asked.queries, truth.grades, known, rel, queries)
    else:
        truth.grades = _grades_of(asked.queries, known, rel, queries)
    return Task(
        name=name,
        documents=documents,
        queries=[
            Query(
                id=entry.query_id,
                text=entry.query_text,
                category=entry.category,
                where=entry.where,
                as_of=day,
                cluster=entry.cluster,
            )
            for entry, day in zip(asked.queries, days, strict=True)
        ],
        judgments=truth.grades,
        rel=rel,
        graded_by_model=truth.graded_by_model,
        notes=[*notes, *of_queries, *_doubts(asked.queries, known, rel, queries), *of_truth],
    )


def read_queries(path: Path) -> tuple[QueryFile, list[Fact]]:
    """A checked query file, its unknown keys, and its wrong counts."""
    content, notes = read_data(path, QueryFile)
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
    if content.categories:
        there = count_categories(content.queries) or {}
        said = content.categories
        wrong = [name for name in dict.fromkeys([*said, *there]) if there.get(name, 0) != said.get(name, 0)]
        if wrong:
            named = wrong[:_NAMED]
            given, found = ([counts.get(name, 0) for name in named] for counts in (said, there))
            notes.append(
                fact("wrong_counts", file=path.name, count=len(wrong), categories=named, given=given, found=found)
            )
    return content, notes


def _day(entry: QueryEntry, place: int, file: Path) -> str:
    try:
        return parse_day(entry.as_of, AS_OF)
    except InputError as error:
        raise InputError(error.problem, file=file, place=f"$.queries[{place}]", remedy=error.remedy) from None


def _check_periods(articles: Sequence[Article], documents: Sequence[Document], file: Path, *, own: bool) -> None:
    """Check the dates of articles; those in `own` metadata matter only if a query has a date."""
    for place, (article, made) in enumerate(zip(articles, documents, strict=True)):
        if (own or article.valid_from or article.valid_to) and (wrong := first_wrong_period([made])):
            raise InputError(wrong[1].problem, file=file, place=f"$.articles[{place}]", remedy=wrong[1].remedy)


def drop_repeated_grades(path: Path) -> None:
    """Rewrite the query file without grades that repeat the ground truth."""
    content, _ = read_data(path, QueryFile)
    if any(entry.expected_results is not None or entry.relevance_annotations is not None for entry in content.queries):
        content.queries = [
            msgspec.structs.replace(entry, expected_results=None, relevance_annotations=None)
            for entry in content.queries
        ]
        write_json(path, content)


def _grades_of(
    entries: Sequence[QueryEntry], documents: Collection[str], rel: int, file: Path
) -> dict[str, dict[str, int]]:
    """Grades in a query file. An expected result without one gets the lowest relevant grade."""
    if any(entry.relevance_annotations for entry in entries):
        check_keys_once(file)
    grades: dict[str, dict[str, int]] = {}
    for place, entry in enumerate(entries):
        for name, grade in (entry.relevance_annotations or {}).items():
            if grade not in GRADES:
                raise InputError(
                    f"grade {grade} is out of range", file=file, remedy=one_of(GRADES),
                    place=f"$.queries[{place}].relevance_annotations.{name}",
                )  # fmt: skip
        expected = dict.fromkeys(map(str, entry.expected_results or ()), rel)
        given = {**expected, **(entry.relevance_annotations or {})}
        if row := {name: grade for name, grade in given.items() if name in documents}:
            grades[entry.query_id] = row
    return grades


def _doubts(entries: Sequence[QueryEntry], documents: Collection[str], rel: int, file: Path) -> list[Fact]:
    """Warnings about grades of unknown documents, and about expected results graded not relevant."""
    lost: list[tuple[str, str]] = []
    low: list[tuple[str, str]] = []
    for entry in entries:
        grades = entry.relevance_annotations or {}
        expected = list(map(str, entry.expected_results or ()))
        lost += [(entry.query_id, name) for name in dict.fromkeys([*expected, *grades]) if name not in documents]
        low += [(entry.query_id, name) for name in expected if grades.get(name, rel) < rel]
    notes = []
    if lost:
        notes.append(fact("unknown_graded", file=file.name, count=len(lost), **_pairs(lost)))
    if low:
        notes.append(fact("expected_below", file=file.name, rel=rel, count=len(low), **_pairs(low)))
    return notes


def _pairs(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The first pairs of query and document, as arguments of a fact."""
    return {"queries": [query for query, _ in pairs[:_NAMED]], "documents": [name for _, name in pairs[:_NAMED]]}


def _check_repeated(
    entries: Sequence[QueryEntry], truth: Judgments, documents: Collection[str], rel: int, file: Path
) -> None:
    """Grades repeated in a query file must equal the ground truth, where an absent pair counts as 0."""
    differing: list[str] = []
    first = ""
    for place, entry in enumerate(entries):
        settled, given = truth.get(entry.query_id, {}), entry.relevance_annotations or {}
        off = {name: str(grade) for name, grade in given.items() if settled.get(name, 0) != grade}
        expected = [name for name in map(str, entry.expected_results or ()) if name not in given]
        off |= {name: "expected" for name in expected if settled.get(name, 0) < rel}
        pairs = [name for name in off if name in documents]
        differing += [f"{entry.query_id} {name} ({off[name]}, there {settled.get(name, 'none')})" for name in pairs]
        if pairs and not first:
            field = "relevance_annotations" if pairs[0] in given else "expected_results"
            first = f"$.queries[{place}].{field}.{pairs[0]}"
    if differing:
        raise InputError(
            f"{pluralise(len(differing), 'grade')} other than in the ground truth: {some(differing, _NAMED)}",
            file=file,
            place=first,
            remedy="correct one of the files, or remove relevance_annotations and expected_results from this one",
        )
