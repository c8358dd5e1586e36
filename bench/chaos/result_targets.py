# ruff: noqa: ARG001, ARG005, SIM105 - a table of targets: long lines and equal signatures read better here
"""Results, arrays, snapshots, grades, spellings and command lines."""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff.cli.main import app
from bakeoff.core.paths import root
from bakeoff_providers.errors import BakeoffError

from chaos.mutations import WEIRD, mutated_bytes
from chaos.target import COMMANDS, LINEUP, SILENT, SMALL, Target, answers, command, native_files, write


def _results(folder: Path) -> list[Target]:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.save import save
    from bakeoff.running.runner import run

    write(folder / "made", {"bakeoff.toml": SMALL, **native_files(), "answers.jsonl": answers()})
    outcome = run(Lineup.read(folder / "made" / "bakeoff.toml"))
    for name in ("old", "new"):
        made = save(outcome, folder / "results")
        (folder / "both").mkdir(parents=True, exist_ok=True)
        made.rename(folder / "both" / name)
    files = [f"new/{name}" for name in ("metrics_summary.json", "detailed_results.json")]

    def read(work: Path, rng: random.Random) -> None:
        old, new = str(work / "old"), str(work / "new")
        match rng.randrange(9):
            case 0:
                command("show", new, "--p95", "5")
            case 1:
                command("compare", new)
            case 2:
                command("compare", old, new)
            case 3:
                command("gate", new, "--baseline", old)
            case 4:
                _pages(Path(new))
            case 5:
                command("history", old, new, "--no-pictures", "--out", str(work / "history.html"))
            case 6:
                command("tasks", old, new, "--out", str(work / "tasks"))
            case 7:
                command("export-mteb", new, "--task", "SciFact", "--out", str(work / "mteb"))
            case 8:
                command("plan-queries", new)

    return [Target("results", folder / "both", files, read)]


def _pages(folder: Path) -> None:
    """What a report is made of, without drawing pictures."""
    from bakeoff.report import render

    render(folder, pictures=False)


def _kinds(folder: Path) -> list[Target]:
    targets = []
    for name in ("films", "scholarships", "trips", "neighbours"):
        shutil.copytree(root() / "queries" / name, folder / name / "queries" / name)
        shutil.copytree(root() / "corpora", folder / name / "corpora", ignore=shutil.ignore_patterns("wikipedia*"))
        files = [
            str(path.relative_to(folder / name))
            for path in sorted((folder / name / "queries").rglob("*"))
            if path.suffix in (".json", ".jsonl", ".toml", ".txt")
        ]
        targets.append(Target(f"kind {name}", folder / name, files, partial(_kind, name)))
    return targets


def _kind(name: str, work: Path, rng: random.Random) -> None:
    from bakeoff.tasks.kinds import load_kind

    load_kind("task.toml", work / "queries" / name).task()


def _arrays(folder: Path) -> list[Target]:
    from bakeoff.extensions.kinds.single import ranks_and_tops, read_targets

    folder.mkdir(parents=True)
    np.save(folder / "scores.npy", np.arange(12.0).reshape(4, 3))
    np.savez(folder / "both.npz", scores=np.arange(12.0).reshape(4, 3), targets=np.array([0, 1, 2, 0]))
    np.save(folder / "targets.npy", np.array([0, 1, 2, 0]))
    np.save(folder / "vectors.npy", np.eye(3, dtype=np.float32))
    (folder / "ids.txt").write_text("a\nb\nc\n")

    def read(work: Path, rng: random.Random) -> None:
        from bakeoff_providers import PROVIDERS
        from bakeoff_providers.base import Role

        match rng.randrange(4):
            case 0:
                read_targets(work / rng.choice(["targets.npy", "both.npz"]))
            case 3:
                provider = PROVIDERS.create(
                    "precomputed", documents=str(work / "vectors.npy"), document_ids=str(work / "ids.txt"),
                    queries=str(work / "vectors.npy"), query_ids=str(work / "ids.txt"),
                )  # fmt: skip
                provider.embed(["a", "c"], Role.DOCUMENT)
            case _:
                ranks_and_tops(work / rng.choice(["scores.npy", "both.npz"]), np.array([0, 1, 2, 0]), 3)

    return [Target("arrays", folder, ["scores.npy", "both.npz", "targets.npy", "vectors.npy", "ids.txt"], read)]


def _snapshot(folder: Path) -> list[Target]:
    items = [
        {"id": "a", "title": "A", "description": "text", "n": 1},
        {"id": "b", "title": "B", "description": "more", "n": None},
    ]
    names = write(folder / "source", {"items.json": items})
    writing = Target(
        "snapshot",
        folder / "source",
        names,
        lambda work, rng: command("snapshot", str(work / "items.json"), "--out", str(work)),
    )
    command("snapshot", str(folder / "source" / "items.json"), "--out", str(folder / "made"), "--date", "2026-01-02")

    def read(work: Path, rng: random.Random) -> None:
        from bakeoff.extensions.kinds.snapshot import read_snapshot

        read_snapshot(work / "items_snapshot_20260102.parquet", id_key="id", title_key="title", text_key_="description")

    return [writing, Target("parquet", folder / "made", ["items_snapshot_20260102.parquet"], read)]


def _grades(folder: Path) -> list[Target]:
    shutil.copytree(root() / "queries" / "wikipedia", folder / "queries" / "wikipedia")
    shutil.copytree(root() / "corpora", folder / "corpora", ignore=shutil.ignore_patterns("films*", "scholar*"))
    annotations = [
        str(path.relative_to(folder))
        for path in sorted((folder / "queries" / "wikipedia" / "annotations").glob("*.json"))
    ]
    return [
        Target(
            "agreement", folder, [*annotations, "queries/wikipedia/task.toml"],
            lambda work, rng: command("agreement", str(work / "queries" / "wikipedia" / "task.toml")),
        )
    ]  # fmt: skip


def _texts(folder: Path) -> list[Target]:
    """Spellings that are parsed by themselves: measures, values, filters, a chat model's answers, a server's waits."""
    folder.mkdir(parents=True)
    spellings = [
        b"ndcg(gain=exp)@10",
        b"p(rel=2)@5",
        b"map(over=found)@100",
        b'{"grade": 2, "why": "x"}',
        b"ef=64",
        b"[1, 2]",
    ]

    def read(work: Path, rng: random.Random) -> None:
        import msgspec
        from bakeoff.cli.shared_options import key_values, parse_day, parse_settings, parse_value
        from bakeoff.core.filters import conditions
        from bakeoff.embedding.chunking import sentences
        from bakeoff.evaluation.measures import Measure
        from bakeoff.extensions.testsets.ask import Unusable, read_object
        from bakeoff_providers.failures import retry_after
        from bakeoff_providers.secrets import redact_url, secret_in_url, without_secrets

        text = mutated_bytes(rng.choice(spellings), rng).decode(errors="replace")
        COMMANDS.append(repr(text[:80]))
        for parse in (parse_value, without_secrets, secret_in_url, redact_url, sentences):
            parse(text)
        retry_after({"Retry-After": text})
        for checked in (
            lambda: Measure.parse(text), lambda: key_values([text]), lambda: parse_settings([text], "k=5"),
            lambda: parse_day(text, "--date"), lambda: conditions({"a": rng.choice(WEIRD), text: text}),
        ):  # fmt: skip
            try:
                checked()
            except BakeoffError:
                pass
        try:
            read_object(text, msgspec.defstruct("Grade", [("grade", int)]))
        except Unusable:
            pass

    return [Target("texts", folder, [], read)]


def _options(folder: Path) -> list[Target]:
    """Command lines of every command that neither serves nor asks, with odd values for odd options."""
    import typer

    write(
        folder,
        {"bakeoff.toml": LINEUP, **native_files(), "answers-1.jsonl": answers(), "answers-2.jsonl": answers()},
    )
    commands = _leaves(typer.main.get_command(app), ())

    def attempt(work: Path, rng: random.Random) -> None:
        path, found = rng.choice(commands)
        known = [str(work / "bakeoff.toml"), str(work), "wikipedia", str(work / "articles.json"), "/nonexistent/x"]
        odd = [str(value).replace("\x00", "") for value in WEIRD]
        arguments = list(path)
        for parameter in found.params:
            if parameter.param_type_name == "argument":
                arguments += [rng.choice(known if rng.random() < 0.7 else odd)]
            elif rng.random() < 0.3 and parameter.name not in ("help", "out", "cache", "junit"):
                arguments.append(rng.choice(parameter.opts))
                if not getattr(parameter, "is_flag", False):
                    arguments.append(rng.choice([*odd, "1", "0.5", "k=5", "ndcg@10", *known]))
        if path in (("run",), ("grade", "pairs")):  # the second would serve a page
            arguments.append("--dry-run")
        if any(parameter.name == "out" for parameter in found.params):
            arguments += ["--out", str(work / "out")]
        command(*arguments)

    return [Target(f"options {part}", folder, [], attempt) for part in "abc"]


def _leaves(found: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    if not hasattr(found, "list_commands"):
        return [(path, found)]
    names = [name for name in found.list_commands(None) if name not in SILENT]
    inner = [((*path, name), found.get_command(None, name)) for name in names]
    return [leaf for place, part in inner for leaf in _leaves(part, place)]


MAKERS = [_results, _kinds, _arrays, _snapshot, _grades, _texts, _options]
