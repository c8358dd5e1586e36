# ruff: noqa: ARG001 - a table of targets: equal signatures read better here
"""Search logs, drawn samples, recordings of a provider and questions: what is read after the choice, or beside it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from chaos.target import LINEUP, SMALL, Target, answers, command, native_files, write


def _logs(folder: Path) -> list[Target]:
    rows: list[dict[str, Any]] = [
        {
            "time": f"2026-11-{1 + number % 28:02d}T10:00:00", "query": f"query {number % 7}",
            "user": f"u{number % 10}", "session": f"s{number}", "shown": ["1", "2", "3"],
            "clicked": ["2"] if number % 3 else [],
            "arm": "ab"[number % 2], "team": ["a", "b", "a"],
        }
        for number in range(40)
    ]  # fmt: skip
    head = list(rows[0])
    cells = [[row[name] if isinstance(row[name], str) else " ".join(row[name]) for name in head] for row in rows]
    tables = {
        "jsonl": "\n".join(map(json.dumps, rows)),
        "json": rows,
        "csv": "\n".join(",".join(map(str, line)) for line in [head, *cells]),
    }
    return [
        Target(f"log {kind}", folder / kind, write(folder / kind, {f"log.{kind}": text}), _log)
        for kind, text in tables.items()
    ]


def _log(work: Path, rng: random.Random) -> None:
    log, out = str(next(work.glob("log.*"))), str(work / "out.jsonl")
    more = rng.choice([[], ["--json"], ["--metrics-file", str(work / "m.prom")]])
    match rng.randrange(6):
        case 0:
            command("log", "import", log, "--out", out, *rng.choice([[], ["--drop-personal"]]), *more)
        case 1:
            command("log", "sample", log, "--size", "6", "--out", out, *more)
        case 2:
            command("log", "judge", log, "--out", out, "--model", rng.choice(["position", "ctr"]), *more)
        case 3:
            command("interleave", log, *more)
        case 4:
            split = rng.choice([[], ["--sequential"], ["--split", "2:1"]])
            command("ab", log, "--control", "a", "--treatment", "b", *split, *more)
        case 5:
            command("queries", "import", log, "--log", "--out", str(work / "out"))


def _questions(folder: Path) -> list[Target]:
    articles = native_files()["articles.json"]
    sources: dict[str, Any] = {
        "csv": "id,text,category,language\nq1,copper,x,en\nq2,lake,y,de\n",
        "jsonl": '{"id": "q1", "text": "copper", "category": "x"}\n{"id": "q2", "text": "lake"}\n',
        "json": [{"query_id": "q1", "query_text": "copper"}, {"query_id": "q2", "query_text": "lake"}],
    }

    def read(work: Path, rng: random.Random) -> None:
        source = str(next(work.glob("source.*")))
        command("queries", "import", source, "--articles", str(work / "articles.json"), "--out", str(work / "out"))

    targets = []
    for kind, text in sources.items():
        names = write(folder / kind, {f"source.{kind}": text, "articles.json": articles})
        targets.append(Target(f"questions {kind}", folder / kind, names, read))
    return targets


def _sample(folder: Path) -> list[Target]:
    """A drawn sample beside the result of its run."""
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.save import save
    from bakeoff.running.runner import run

    drawn = [
        {"id": query, "text": text, "category": category, "count": 3, "weight": 0.5, "stratum_queries": 2}
        for query, text, category in (("q1", "copper", "head"), ("q2", "lake", "tail"))
    ]
    files = {"bakeoff.toml": SMALL, **native_files(), "answers.jsonl": answers()}
    write(folder, {**files, "sample.jsonl": "\n".join(map(json.dumps, drawn))})
    save(run(Lineup.read(folder / "bakeoff.toml")), folder / "results").rename(folder / "result")

    def read(work: Path, rng: random.Random) -> None:
        sample = ["--sample", str(work / "sample.jsonl")]
        if rng.random() < 0.5:
            command("log", "matrix", str(work / "result"), *sample)
        else:
            command("log", "replay", "bm25", "given", "--lineup", str(work / "bakeoff.toml"), *sample)

    return [Target("log sample", folder, ["sample.jsonl"], read)]


def _canary(folder: Path) -> list[Target]:
    texts = [{"role": ("query", "document")[number % 2], "text": f"text number {number}"} for number in range(40)]
    write(folder, {"texts.jsonl": "\n".join(map(json.dumps, texts))})
    command("canary", "record", "fake", "--calls", "2", "--out", str(folder / "fake.canary"))
    files = [name for name in ("texts.jsonl", "fake.canary") if (folder / name).exists()]

    def read(work: Path, rng: random.Random) -> None:
        if rng.random() < 0.5:
            command("canary", "check", str(work / "fake.canary"), "--calls", "2")
        else:
            texts = ["--texts", str(work / "texts.jsonl")]
            command("canary", "record", "fake", *texts, "--calls", "2", "--force", "--out", str(work / "x.canary"))

    return [Target("canary", folder, files, read)]


def _grading(folder: Path) -> list[Target]:
    """A task of one's own with two annotators, under every command that reads their grades."""
    command("queries", "copy", "wikipedia", str(folder / "task"))
    written = [path for path in sorted((folder / "task").rglob("*")) if path.suffix in (".json", ".toml")]
    files = [str(path.relative_to(folder)) for path in written]
    write(folder, {"bakeoff.toml": 'task = "task"\nrounds = 1\ncontender = [{ ranker = "bm25" }]\n'})

    def read(work: Path, rng: random.Random) -> None:
        task, lineup = str(work / "task"), ["--lineup", str(work / "bakeoff.toml")]
        match rng.randrange(6):
            case 0:
                command("adjudicate", task, "--majority")
            case 1:
                command("grade", "next", task, *lineup)
            case 2:
                command("grade", "corrected", task, *lineup)
            case 3:
                names = sorted(path.stem for path in (work / "task" / "annotations").glob("*.json"))
                command("audit", task, rng.choice([*names, "nobody"]), "--samples", "20", *lineup)
            case 4:
                command("validate", task)
            case 5:
                command("grade", "pairs", task, "--judge", "llm", "--model", "openai:x", "--dry-run", *lineup)

    return [Target("grading", folder, files, read)]


def _storelab(folder: Path) -> list[Target]:
    """Stores alone, over few vectors, with odd values for what can be set."""
    from chaos.mutations import WEIRD

    write(folder, {"bakeoff.toml": LINEUP, **native_files()})
    common = ["--synthetic", "100", "--dimensions", "8", "--store", "faiss"]
    commands = {
        "sweep": ["--rounds", "1", "-k", "3", "--target", "0.9", "--set", "index=Flat"],
        "footprint": ["--set", "index=Flat"],
        "loadtest": ["-k", "3", "--clients", "1", "--rate", "50", "--writes", "0.1", "--set", "index=Flat"],
    }

    def attempt(work: Path, rng: random.Random) -> None:
        name = rng.choice(list(commands))
        arguments = [*common, *commands[name]]
        odd = [str(value).replace("\x00", "") for value in WEIRD]
        for _ in range(rng.randint(1, 2)):  # every other one is a value
            arguments[rng.randrange(len(arguments) // 2) * 2 + 1] = rng.choice([*odd, "index=1", "ef=x", "ef=-1"])
        seconds = ["--seconds", "0.05"] if name == "loadtest" else []
        if any(len(part) > 5 and part.isdigit() for part in arguments):
            return  # a number of vectors, clients or rounds that would only take long
        command(name, *arguments, *seconds, "--out", str(work / "out"))

    return [Target("storelab", folder, [], attempt)]


MAKERS = [_logs, _questions, _sample, _canary, _grading, _storelab]
