# ruff: noqa: E501, ARG001, ARG005 - a table of targets: long lines and equal signatures read better here
"""Line-ups, tasks and documents: what is read before a run."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

from chaos.target import LINEUP, SMALL, Target, answers, command, load, native_files, write


def _lineup(folder: Path) -> list[Target]:
    given = {f"answers-{seed}.jsonl": answers() for seed in (1, 2)}
    write(folder, {"bakeoff.toml": LINEUP, **native_files(), **given})
    plan = Target(
        "lineup", folder, ["bakeoff.toml"], lambda work, rng: command("run", str(work / "bakeoff.toml"), "--dry-run")
    )
    check = Target(
        "validate",
        folder,
        ["bakeoff.toml"],
        lambda work, rng: command("validate", str(work / "bakeoff.toml"), "--no-health"),
    )
    return [plan, check]


def _native(folder: Path) -> list[Target]:
    files = write(folder, {"bakeoff.toml": SMALL, **native_files(), "answers.jsonl": answers()})
    return [Target("native", folder, files[1:], lambda work, rng: _run(work / "bakeoff.toml"))]


def _run(lineup: Path) -> None:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.save import save
    from bakeoff.running.runner import run

    outcome = run(Lineup.read(lineup))
    if outcome.ran:
        save(outcome, lineup.parent / "results")


def _trec(folder: Path) -> list[Target]:
    qrels = "".join(f"q{query} 0 d{document} {document % 3}\n" for query in range(4) for document in range(6))
    runs = {
        f"{name}.run": "".join(
            f"q{query} Q0 d{(document * step) % 6} {document} {9.5 - document} {name}\n"
            for query in range(4)
            for document in range(5)
        )
        for name, step in (("a", 1), ("b", 5))
    }
    files = write(folder, {"qrels.txt": qrels, **runs})
    return [
        Target(
            "trec",
            folder,
            files,
            lambda work, rng: command("score", *(str(work / name) for name in ("qrels.txt", "a.run", "b.run"))),
        )
    ]


def _tables(folder: Path) -> list[Target]:
    targets = []
    for kind in ("csv", "jsonl", "tsv"):
        mark = {"csv": ",", "tsv": "\t"}.get(kind)
        rows = {
            "documents": [["id", "title", "text"], ["1", "Copper", "copper mine"], ["2", "Boats", "a lake"]],
            "queries": [["id", "text"], ["q1", "copper"], ["q2", "lake"]],
            "grades": [["query", "document", "grade"], ["q1", "1", "3"], ["q2", "2", "2"]],
        }
        files: dict[str, Any] = {}
        for name, table in rows.items():
            head, *body = table
            files[f"{name}.{kind}"] = (
                "\n".join(mark.join(row) for row in table)
                if mark
                else "\n".join(json.dumps(dict(zip(head, row, strict=True))) for row in body)
            )
        task = f'format = "tables"\ndocuments = "documents.{kind}"\nqueries = "queries.{kind}"\njudgments = "grades.{kind}"\n'
        names = write(folder / kind, {**files, "task.toml": task})
        targets.append(Target(f"tables {kind}", folder / kind, names, load))
    return targets


def _beir(folder: Path) -> list[Target]:
    corpus = "\n".join(json.dumps({"_id": f"d{n}", "title": f"t{n}", "text": f"word{n} text"}) for n in range(4))
    queries = "\n".join(json.dumps({"_id": f"q{n}", "text": f"word{n}"}) for n in range(3))
    qrels = "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(3))
    files = {"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": qrels}
    names = write(folder, {**files, "task.toml": 'format = "beir"\npath = "."\n'})
    return [Target("beir", folder, names, load)]


def _import_one(kind: str, work: Path, rng: random.Random) -> None:
    command("corpus", "import", str(work / f"source.{kind}"), "--out", str(work / "out.json"))


def _import(folder: Path) -> list[Target]:
    files = {
        "a.md": "# Title\n\nText with a [link](http://x/) and `code`.\n\n## Part\n\n* a\n* b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n",
        "b.html": "<html><head><title>T</title></head><body><h1>H</h1><p>Text <b>b</b></p><table><tr><td>1</td></tr></table></body></html>",
        "c.txt": "Plain text.\nSecond line.\n",
    }
    names = write(folder / "folder", files)
    targets = [
        Target(
            "import folder",
            folder / "folder",
            names,
            lambda work, rng: command("corpus", "import", str(work), "--out", str(work / "out.json")),
        )
    ]
    for kind, text in (
        ("csv", "id,title,text\n1,Copper,copper mine\n2,Boats,lake\n"),
        ("jsonl", '{"id": "1", "title": "a", "text": "b"}\n{"id": "2", "title": "c", "text": "d"}\n'),
        ("json", '[{"id": "1", "title": "a", "text": "b"}]'),
    ):
        names = write(folder / kind, {f"source.{kind}": text})
        targets.append(
            Target(
                f"import {kind}", folder / kind, names,
                partial(_import_one, kind),
            )
        )  # fmt: skip
    pool = {"articles": native_files()["articles.json"]["articles"]}
    names = write(folder / "pool", {"pool.json": pool})
    targets.append(
        Target(
            "select",
            folder / "pool",
            names,
            lambda work, rng: command("select", str(work / "pool.json"), "--n", "2", "--out", str(work / "out.json")),
        )
    )
    return targets


MAKERS = [_lineup, _native, _trec, _tables, _beir, _import]
