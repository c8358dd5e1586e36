# ruff: noqa: ARG001 - a table of targets: equal signatures read better here
"""Data sets by name, and files in formats of other programs: parquet, SQLite, PDF, qrels."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chaos.mutations import mutated_bytes
from chaos.target import Target, command, load, native_files, write

TABLES: dict[str, list[dict[str, Any]]] = {
    "documents": [{"id": "1", "title": "Copper", "text": "copper mine"}, {"id": "2", "title": "Boats", "text": "lake"}],
    "queries": [{"id": "q1", "text": "copper"}, {"id": "q2", "text": "lake"}],
    "grades": [{"query": "q1", "document": "1", "grade": 3}, {"query": "q2", "document": "2", "grade": 2}],
}  # fmt: skip
QRELS = "q1 0 1 3\nq1 0 2 0\nq2 0 2 2\n"


def _hub(folder: Path) -> list[Target]:
    """Folders that are laid out as MTEB lays out its data sets on the hub, by format `hub` and by MTEB's own name."""
    if find_spec("datasets") is None:
        return []
    tables: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"_id": "d1", "title": "Copper", "text": "metal"}, {"_id": "d2", "title": "", "text": "lakes"}],
        "queries": [{"_id": "1", "text": "metal"}, {"_id": "2", "text": "lakes"}],
        "qrels": [{"query-id": "1", "corpus-id": "d1", "score": 1.0}, {"query-id": "2", "corpus-id": "d2", "score": 2}],
    }
    head = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: {split}\n    path: {file}/rows.jsonl\n"
        for name, split, file in (
            ("corpus", "corpus", "corpus"), ("queries", "queries", "queries"), ("default", "test", "qrels"),
        )
    )  # fmt: skip
    targets = []
    for name, place, task in (
        ("hub", "own", 'format = "hub"\ndataset = "own"\n'),
        ("mteb", "mteb/scifact", 'format = "mteb"\ntask = "SciFact"\n'),
    ):
        files = {f"{place}/{table}/rows.jsonl": _lines(rows) for table, rows in tables.items()}
        files |= {f"{place}/README.md": f"---\nconfigs:\n{head}---\n", "task.toml": task}
        targets.append(Target(name, folder / name, write(folder / name, files), load))
    return targets


def _ir_datasets(folder: Path) -> list[Target]:
    """A data set that is registered under a name of its own, over files that the library's readers read."""
    if find_spec("ir_datasets") is None:
        return []
    files = {
        "docs.tsv": "d1\tcopper is a metal\nd2\tsailing on lakes\n",
        "queries.tsv": "1\tmetal\n2\tlakes\n",
        "qrels": "1 0 d1 2\n1 0 d2 0\n2 0 d2 1\n",
        "task.toml": 'format = "ir_datasets"\ndataset = "bakeoff-fuzz/own"\n',
    }

    def read(work: Path, rng: random.Random) -> None:
        import ir_datasets
        from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries
        from ir_datasets.util import LocalDownload

        if "bakeoff-fuzz/own" not in ir_datasets.registry:  # every input lies in the same folder
            data = ir_datasets.Dataset(
                TsvDocs(LocalDownload(work / "docs.tsv"), namespace="own", lang="en"),
                TsvQueries(LocalDownload(work / "queries.tsv"), lang="en"),
                TrecQrels(LocalDownload(work / "qrels"), {0: "no", 1: "some", 2: "yes"}),
            )
            ir_datasets.registry.register("bakeoff-fuzz/own", data)
        load(work, rng)

    return [Target("ir_datasets", folder, write(folder, files), read)]


def _qrels(folder: Path) -> list[Target]:
    """TREC's qrels as the judgments of a task."""
    task = 'format = "tables"\ndocuments = "documents.jsonl"\nqueries = "queries.jsonl"\njudgments = "grades.qrels"\n'
    files = {f"{name}.jsonl": _lines(TABLES[name]) for name in ("documents", "queries")}
    names = write(folder, {**files, "grades.qrels": QRELS, "task.toml": task})
    return [Target("task trec", folder, names, load)]


def _parquet(folder: Path) -> list[Target]:
    """Columns of other types, and torn bytes: as a task, and as documents to import."""
    task = "".join(
        f'{name} = "{file}.parquet"\n'
        for name, file in (("documents", "documents"), ("queries", "queries"), ("judgments", "grades"))
    )
    names = write(folder, {f"{name}.json": rows for name, rows in TABLES.items()})
    write(folder, {"task.toml": f'format = "tables"\n{task}'})

    def read(work: Path, rng: random.Random) -> None:
        made = [_write_parquet(work / name, rng) for name in names]
        if not all(made):
            return
        if rng.random() < 0.5:
            load(work, rng)
        else:
            command("corpus", "import", str(work / "documents.parquet"), "--out", str(work / "out.json"))

    return [Target("tables parquet", folder, names, read)]


def _write_parquet(file: Path, rng: random.Random) -> bool:
    """The rows of a JSON file as a table; whether there is a table of such rows."""
    import pyarrow
    import pyarrow.parquet

    path = file.with_suffix(".parquet")
    try:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(json.loads(file.read_bytes())), path)
    except Exception:  # torn JSON, columns of two types: no program would have written such a file
        return False
    if rng.random() < 0.2:
        path.write_bytes(mutated_bytes(path.read_bytes(), rng))
    return True


def _pdf(folder: Path) -> list[Target]:
    """Pages as somebody wrote them by hand, and as a library packs them."""
    import io

    import pypdf

    from tests.extensions.testsets.test_corpus import pdf

    by_hand, packed = pdf("Copper is a metal", Title="On metals", Author="Ada"), io.BytesIO()
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(by_hand))
    for page in writer.pages:
        page.compress_content_streams()
    writer.write(packed)
    names = write(folder, {"a.pdf": by_hand, "b.pdf": packed.getvalue()})

    def read(work: Path, rng: random.Random) -> None:
        command("corpus", "import", str(work), "--out", str(work / "out.json"))

    return [Target("import pdf", folder, names, read)]


def _database(folder: Path) -> list[Target]:
    """SQLite keeps values of any type in any column: as `wikipedia.db`, and as a table of one's own."""
    summaries = [
        {"page_id": number, "title": f"Town {number}, Utah", "short_summary": "s", "long_summary": f"text {number}",
         "best_city": "Loa", "best_county": "Wayne", "best_state": "Utah"}
        for number in (1, 2, 3)
    ]  # fmt: skip
    tables = {
        "page_summaries": summaries,
        "articles": [{"pageid": number, "categories": "Towns in Utah; B"} for number in (1, 2, 3)],
    }
    wikipedia = write(folder / "wikipedia", {"tables.json": tables})
    own = write(folder / "own", {"tables.json": {"notes": TABLES["documents"]}})

    def read(work: Path, rng: random.Random) -> None:
        path = work / "made.db"
        if not _write_database(path, work / "tables.json", rng):
            return
        if rng.random() < 0.5:
            command("corpus", "import", str(path), "--out", str(work / "out.json"))
        else:
            command("select", str(path), "--n", "2", "--out", str(work / "out.json"))

    return [
        Target("database wikipedia", folder / "wikipedia", wikipedia, read),
        Target("database own", folder / "own", own, read),
    ]


def _write_database(path: Path, file: Path, rng: random.Random) -> bool:
    """The tables of a JSON file; lists and objects, which SQLite does not keep, become their bytes."""
    try:
        tables = json.loads(file.read_bytes())
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            for table, rows in tables.items():
                columns = list(dict.fromkeys(name for row in rows for name in row))
                listed = ", ".join(f'"{name}"' for name in columns)
                connection.execute(f'CREATE TABLE "{table}" ({listed})')
                marks = ", ".join("?" * len(columns))
                for row in rows:
                    cells = [row.get(name) for name in columns]
                    kept = [json.dumps(cell).encode() if isinstance(cell, list | dict) else cell for cell in cells]
                    connection.execute(f'INSERT INTO "{table}" VALUES ({marks})', kept)
    except Exception:  # torn JSON, names that are none, numbers beyond 64 bits
        return False
    if rng.random() < 0.3:
        path.write_bytes(mutated_bytes(path.read_bytes(), rng))
    return True


def _grade_import(folder: Path) -> list[Target]:
    """Grades in a table, for a task of one's own."""
    task = 'format = "native"\narticles = "articles.json"\nqueries = "queries.json"\nground_truth = "truth.json"\n'
    head = list(TABLES["grades"][0])
    rows = [[str(row[name]) for name in head] for row in TABLES["grades"]]
    tables: dict[str, Any] = {
        "csv": "\n".join(map(",".join, [head, *rows])),
        "json": TABLES["grades"],
        "jsonl": _lines(TABLES["grades"]),
        "qrels": QRELS,
    }
    targets = []
    for kind, text in tables.items():
        place = folder / kind
        names = write(
            place, {f"grades.{kind}": text, **{f"task/{name}": file for name, file in native_files().items()}}
        )
        write(place, {"task/task.toml": task})
        targets.append(Target(f"grade import {kind}", place, names[:1], partial(_import, kind)))
    return targets


def _import(kind: str, work: Path, rng: random.Random) -> None:
    more = rng.choice([[], ["--add"], ["--force"], ["--column", "grade=grade"], ["--grade", "3=2", "--grade", "2=1"]])
    command("grade", "import", str(work / "task"), str(work / f"grades.{kind}"), "--who", "ada", *more)


def _lines(rows: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, rows))


MAKERS = [_hub, _ir_datasets, _qrels, _parquet, _pdf, _database, _grade_import]
