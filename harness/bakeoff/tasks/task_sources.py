"""Finds the task in a folder, files or a name, and writes a checked first line-up."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers import PROVIDERS, weights
from bakeoff_providers.errors import InputError
from bakeoff_providers.files import replacing
from bakeoff_providers.registry import nearest

from bakeoff.core.clock import SAMPLES_FOR
from bakeoff.core.files import read_bytes, read_toml
from bakeoff.core.paths import task_names
from bakeoff.core.task import Task
from bakeoff.core.toml_values import toml_value
from bakeoff.lineup.lineup import Lineup
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.formats.source_tables import describe_columns
from bakeoff.tasks.formats.table_columns import COLUMNS, columns_of, complete_labels, find_columns
from bakeoff.tasks.formats.tables import JSON_LINES, READERS
from bakeoff.tasks.ground_truth import FILE, GRADES, rel_line
from bakeoff.tasks.load import load_task

BY_NAME = {"hub": "dataset", "mteb": "task", "ir_datasets": "dataset"}  # formats of data sets, and where the name goes
QRELS = (".qrels", ".trec", ".txt")
# What tables in a folder are usually called.
TABLES = {
    "documents": ("documents", "docs", "corpus", "articles"),
    "queries": ("queries", "questions", "topics"),
    "judgments": ("judgments", "qrels", "grades"),
}


@dataclass(frozen=True, slots=True)
class TaskSource:
    """A task as written in a line-up: the path of its description, or its format with options."""

    name: str
    own: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)  # by table, which column became which field


@dataclass(frozen=True, slots=True)
class Files:
    """A user's files, their columns, and the grades of their labels."""

    documents: Path | None = None
    queries: Path | None = None
    judgments: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, int] = field(default_factory=dict)


def source_of(given: str, base: Path) -> TaskSource | Files:
    """A task by name, by its task.toml or folder, as FORMAT:NAME, or as a folder of tables.

    Paths in a description are relative to `base`, the folder of the line-up.
    """
    format_name, colon, rest = given.partition(":")
    if colon and format_name in BY_NAME:
        return TaskSource(rest.rpartition("/")[2], options={"format": format_name, BY_NAME[format_name]: rest})
    path = Path(given)
    if given in task_names():
        return TaskSource(given, own=given)
    if path.suffix == ".toml":
        if not {"format", "kind"} & read_toml(path, dict[str, Any]).keys():
            raise InputError("is already a line-up", file=path, remedy=f"bakeoff validate {path} checks it")
        return TaskSource(path.stem, own=_relative(path, base))
    if path.is_file():
        return Files(documents=path)
    if not path.is_dir():
        formats = ", ".join(f"{name}:NAME" for name in BY_NAME)
        raise InputError(
            "no such folder or file", file=path,
            remedy=f"name a task's folder, a BEIR folder, the file of the documents, or {formats}",
        )  # fmt: skip
    return _of_folder(path, base)


def _of_folder(path: Path, base: Path) -> TaskSource | Files:
    name, where = path.resolve().name, _relative(path, base)
    if (path / "task.toml").is_file():
        return TaskSource(name, own=where)
    if any((path / f"corpus.jsonl{packed}").is_file() for packed in ("", ".gz")):
        splits = sorted(file.name.partition(".tsv")[0] for file in (path / "qrels").glob("*.tsv*"))
        split = {"split": splits[0]} if splits and "test" not in splits else {}
        return TaskSource(name, options={"format": "beir", "folder": where, **split})
    if (path / "README.md").is_file() and b"config_name: corpus" in read_bytes(path / "README.md"):
        return TaskSource(name, options={"format": "hub", "dataset": where})
    tables = _tables_in(path)
    if {"documents", "queries"} <= tables.keys():
        return Files(tables["documents"], tables["queries"], tables.get("judgments"))
    if inner := sorted(path.glob("*/task.toml")):
        raise InputError("is not a task", file=path, remedy=f"name the one in it: {inner[0].parent}")
    raise InputError(
        "contains no readable task", file=path,
        remedy=f"for texts, run `bakeoff corpus import {path}`, then `bakeoff queries import`; for tables, give "
        f"--documents and --queries; formats: {', '.join(FORMATS.names())}",
    )  # fmt: skip


def _tables_in(folder: Path) -> dict[str, Path]:
    """Tables in a folder, by their usual names."""
    there: dict[str, Path] = {}
    for table, stems in TABLES.items():
        known = (folder / f"{stem}{ending}" for stem in stems for ending in (*READERS, *JSON_LINES))
        if match := next((path for path in known if path.is_file()), None):
            there[table] = match
    return there


def source_of_files(files: Files, base: Path) -> TaskSource:
    """Tables of documents, queries and optional judgments, or Bakeoff's own files."""
    assert files.documents is not None
    assert files.queries is not None
    named = {"documents": files.documents, "queries": files.queries, "judgments": files.judgments}
    paths = {table: path for table, path in named.items() if path is not None}
    for path in paths.values():
        if path.is_dir():
            raise InputError(
                "is a folder", file=path, remedy=f"run `bakeoff corpus import {path}` to make a table of texts"
            )
        if not path.is_file():
            raise InputError("no such file", file=path, remedy="check the path")
    known = [f"{table}.{column}" for table in paths for column in COLUMNS[table]]
    if unknown := [key for key in files.columns if key not in known]:
        raise InputError(f"unknown column {unknown[0]!r}", place="--column", remedy=nearest(unknown[0], known))
    name = files.documents.resolve().parent.name or "mine"
    if _holds(files.documents, "articles"):
        return _native(paths, base, name)
    columns = {
        table: find_columns(table, path, _select_columns(files.columns, table), f"{table}.")
        for table, path in paths.items()
        if not _qrels(path)
    }
    labels = dict(files.grades)
    if "judgments" in columns:
        labels = complete_labels(paths["judgments"], columns["judgments"]["grade"], files.grades)
    places = {table: _relative(path, base) for table, path in paths.items()}
    grades = {"grades": labels} if labels else {}
    metadata = [column for column in columns_of(files.documents) if column not in columns["documents"].values()]
    others = {"documents": metadata}  # other columns of queries and judgments are dropped
    return TaskSource(
        name,
        options={"format": "tables", **places, **grades, "columns": columns},
        taken={table: describe_columns(named, others.get(table, ())) for table, named in columns.items()},
    )


def _select_columns(columns: Mapping[str, str], table: str) -> dict[str, str]:
    """The columns given for one table: `documents.text=body`."""
    return {key.removeprefix(f"{table}."): name for key, name in columns.items() if key.startswith(f"{table}.")}


def _native(paths: Mapping[str, Path], base: Path, name: str) -> TaskSource:
    """Bakeoff's own files without a task.toml. A table of queries must be imported first."""
    articles, queries = paths["documents"], paths["queries"]
    if not _holds(queries, "queries"):
        raise InputError(
            "the documents are in Bakeoff's own format, but the queries are not", file=queries,
            remedy=f"bakeoff queries import {queries} --articles {articles}, then bakeoff init task",
        )  # fmt: skip
    truth = paths.get("judgments") or articles.parent / FILE
    if "judgments" in paths and not _holds(truth, "grades"):
        raise InputError(
            f"is not a {FILE}", file=truth, remedy="grades by query and document: docs/reference/tasks.md#native"
        )
    files = {"articles": articles, "queries": queries} | ({"ground_truth": truth} if truth.is_file() else {})
    return TaskSource(name, options={"format": "native"} | {key: _relative(file, base) for key, file in files.items()})


def _qrels(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz")).suffix in QRELS


def _holds(path: Path, key: str) -> bool:
    """Whether a JSON file is an object with this key, like Bakeoff's own files."""
    if path.suffix.lower() != ".json":
        return False
    try:
        content = msgspec.json.decode(read_bytes(path))
    except msgspec.DecodeError:
        return False
    return isinstance(content, dict) and key in content


def _relative(path: Path, base: Path) -> str:
    return Path(os.path.relpath(path.resolve(), base.resolve())).as_posix()


FEWEST_ROUNDS, MOST_ROUNDS = 3, 20


def write_lineup(out: Path, source: TaskSource, grading: str) -> Task:
    """Write the line-up if it can be read back and its task loads; else write nothing.

    `grading` is the command that grades an ungraded task.
    """
    with replacing(out) as part:
        part.write_text(_text(source, ""), encoding="utf-8")
        task = load_task(Lineup.read(part).task, out.parent)
        highest = max((grade for row in task.judgments.values() for grade in row.values()), default=max(GRADES))
        source = replace(source, name=task.name) if source.own else source
        grading = "" if any(task.judgments.values()) else grading
        part.write_text(_text(source, grading, highest, _rounds(len(task.queries))), encoding="utf-8")
        Lineup.read(part)
    return task


def missing_weights(lineup: Path) -> list[str]:
    """The commands that download missing weights."""
    rows = Lineup.read(lineup).contenders
    named = (PROVIDERS.get(row.provider).needs().weights for row in rows if isinstance(row, EmbeddingRow))
    return [weights.pull_command(name) for name in dict.fromkeys(named) if name and not weights.present(name)]


def _rounds(queries: int) -> int:
    """The number of rounds that a p95 needs, within limits."""
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, math.ceil(SAMPLES_FOR[95] / max(queries, 1))))


def _text(source: TaskSource, grading: str, highest: int = max(GRADES), rounds: int = FEWEST_ROUNDS) -> str:
    lines = [
        "# A line-up: a task and the contenders to compare. `bakeoff validate` checks it.",
        "",
        f"name = {toml_value(source.name)}",
        'measures = ["p@5", "recall@10", "mrr", "ndcg@10"]',
        'primary = "ndcg@10"                # the deciding measure',
        f"rounds = {rounds}".ljust(35) + "# times each query is timed",
        '# baseline = "bm25"                # your current system: all others are compared with it',
    ]
    if grading:
        lines += ["", "# This task is not graded yet. Grade it on a page, or with a model (--judge llm):"]
        lines += [f"#     {grading}"]
    lines += [""] + ([f"task = {toml_value(source.own)}"] if source.own else _task_lines(source, highest))
    return "\n".join([*lines, "", _CONTENDERS])


def _task_lines(source: TaskSource, highest: int) -> list[str]:
    """The task as an inline table, followed by its columns."""
    options = dict(source.options)
    columns = options.pop("columns", {})
    lines = ["[task]", f"name = {toml_value(source.name)}"]
    lines += [f"{key} = {toml_value(value)}" for key, value in options.items()]
    if any(option.name == "rel" for option in FORMATS.options(options["format"])):
        lines.append(rel_line(highest))
    if columns:
        lines += ["", "[task.columns]                     # column names of your files"]
        for table, named in columns.items():
            pairs = ", ".join(f"{column} = {toml_value(theirs)}" for column, theirs in named.items())
            lines.append(f"{table} = {{ {pairs} }}")
    return lines


_CONTENDERS = """\
# These need no key and no network.

[[contender]]
ranker = "bm25"                    # keyword search

[[contender]]
provider = "minilm"                # bakeoff models pull minilm
store = "faiss"                    # exact search; `bakeoff list` shows all stores

# To add one of these rows, remove the # of its lines.

# [[contender]]
# provider = "minilm"
# store = "faiss"
# chunking = [{ strategy = "sentence", size = 64 }, { strategy = "whole" }]    # one row each

# [[contender]]
# provider = "minilm"
# store = "lancedb"                # pip install 'bakeoff[lancedb]'
# search = "hybrid"                # vectors and keywords, both in the store

# [[fusion]]                       # hybrid search with any store
# of = ["bm25", "minilm+faiss"]

# [[contender]]
# provider = "openai"              # OPENAI_API_KEY; --dry-run prints the cost
# model = "text-embedding-3-small"
# dimensions = [1536, 256]         # one row each, embedded once
# store = "faiss"
"""
