# ruff: noqa: E501 - a table of command lines
"""A full disk and a read-only one under every command that writes: one line that says so, before anything is paid."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from chaos.processes import environment
from chaos.row import Figure, Plan, attempts
from chaos.target import SMALL, answers, native_files, write
from tests.wire import WireServer

FULL, READ_ONLY = "full", "read-only"
ENDS = (1, 2)  # failed, or bad input; not 3, which says that a service was not reached; never 70, never 0
RERANKED = """task = "wikipedia"
rounds = 1
[[contender]]
ranker = "bm25"
rerank = { provider = "cohere", depth = 10, options = { base_url = "{{cohere}}" } }
"""
LOCAL = """task = "wikipedia"
rounds = 1
[[contender]]
provider = "fake"
store = "faiss"
"""
FIRST = {  # what other commands read
    "vectors": "run {folder}/local.toml --no-charts --out {folder}/local",
    "task": "queries copy wikipedia {folder}/task",
    "own": "queries import {folder}/queries.csv --articles {folder}/pool.json --out {folder}/own",
}


@dataclass(frozen=True)
class Case:
    """A command line with {out} for what is full or read-only; `copied` is what that folder holds beforehand."""

    name: str
    arguments: Sequence[str]
    copied: str = ""
    home: bool = False  # not --out but Bakeoff's own home is the trouble
    made: bool = False  # with the home that holds the vectors of a run
    ends: Sequence[int] = ENDS  # 0 where another row of the same run needs no disk


@dataclass(frozen=True)
class Seen:
    """How one command ended."""

    case: Case
    trouble: str
    paid: int
    code: int
    said: str

    @property
    def right(self) -> bool:
        """Said in words, and located."""
        if self.code not in self.case.ends or any(word in self.said for word in ("Traceback", "unexpected error")):
            return False
        return any(word in self.said for word in ("can't be written", "are free"))


def disk(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Every command in both conditions; `count` cuts the list for a short run."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = [(case, trouble) for case in _cases(folder) for trouble in (FULL, READ_ONLY)][:count]

    def attempt(number: int, rng: random.Random) -> Seen:  # noqa: ARG001 - nothing is drawn here
        case, trouble = cases[number]
        return _tried(folder, folder / f"case-{number}", case, trouble)

    seen, missing = attempts(plan, "disk", len(cases), attempt)
    wrong = [one for one in seen if not one.right]
    paid = [one for one in seen if one.paid]
    detail = "\n".join(
        f"{one.case.name} on a {one.trouble} disk: exit {one.code}, {one.paid} requests: {one.said.strip()[-300:]}"
        for one in [*wrong, *(one for one in paid if one not in wrong)]
    )
    commands = len({one.case.name for one in seen})
    return [
        Figure(
            f"not said in words: full or read-only disk, {commands} commands, {len(seen)} runs", len(wrong), 0, detail
        ),
        Figure("  of them that had paid first", len(paid)),
        missing,
    ]


def _tried(shared: Path, place: Path, case: Case, trouble: str) -> Seen:
    place.mkdir()
    out = place / ("home" if case.home else "out")
    out.mkdir()
    shutil.copy(shared / "pool.json", place)  # what the copy of a task leads to
    with WireServer() as wire:
        wire.answer = lambda *_: '{"grade": 2, "why": "x"}'
        for name in ("lineup.toml", "two.toml", "reranked.toml"):
            text = (shared / name).read_text().replace("{{base}}", wire.base("openai"))
            (place / name).write_text(text.replace("{{cohere}}", wire.base("cohere")))
        words = {"out": str(out), "place": str(place), "shared": str(shared), "base": wire.base("openai")}
        command = [sys.executable, "-m", "bakeoff", *(argument.format_map(words) for argument in case.arguments)]
        copied = str(shared / case.copied) if case.copied else ""
        process = subprocess.run(
            _mounted(command, out, copied, trouble),
            env=environment(place, **({"BAKEOFF_HOME": str(shared / "home")} if case.made else {})),
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            preexec_fn=None if _can_mount() else _no_room if trouble == FULL else None,
        )
        return Seen(
            case,
            trouble,
            len(wire.embeddings()) + len(wire.chats()),
            process.returncode,
            process.stderr + process.stdout,
        )


@lru_cache
def _can_mount() -> bool:
    """Root in a namespace of its own: what is mounted there goes with the process."""
    return not subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode


def _mounted(command: list[str], out: Path, copied: str, trouble: str) -> list[str]:
    """The command, after a shell has put a small disk in the place of the folder."""
    where = shlex.quote(str(out))
    fill = f"cp -r {shlex.quote(copied)}/. {where}" if copied else "true"
    last = (
        f"dd if=/dev/zero of={where}/.filler bs=4k 2>/dev/null" if trouble == FULL else f"mount -o remount,ro {where}"
    )
    if _can_mount():
        script = f"mount -t tmpfs -o size=4m tmpfs {where} && {fill}; {last}; exec {shlex.join(command)}"
        return ["unshare", "--mount", "sh", "-c", script]
    last = "true" if trouble == FULL else f"chmod -R a-w {where}"  # as no root: a limit of size, or permissions
    return ["sh", "-c", f"{fill}; {last}; exec {shlex.join(command)}"]


def _no_room() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _cases(folder: Path) -> list[Case]:
    """Files that every command reads well, and the commands."""
    (folder / "lineup.toml").write_text(_lineup(1))
    (folder / "two.toml").write_text(_lineup(2))
    (folder / "reranked.toml").write_text(RERANKED)
    (folder / "local.toml").write_text(LOCAL)
    write(folder / "small", {"bakeoff.toml": SMALL, **native_files(), "answers.jsonl": answers()})
    made = subprocess.run(
        [sys.executable, "-m", "bakeoff", "run", str(folder / "small" / "bakeoff.toml"), "--no-charts", "--out",
         str(folder / "made")],
        env=environment(folder), capture_output=True, text=True, check=False,
    )  # fmt: skip
    results = sorted(path for path in (folder / "made").iterdir() if path.is_dir()) if not made.returncode else []
    if not results:
        raise RuntimeError(f"no result to begin with: {made.stderr}")
    results[0].rename(folder / "made" / "old")
    shutil.copytree(folder / "made" / "old", folder / "made" / "new")
    shown = [
        {"query": f"query {n % 9}", "user": f"u{n}", "shown": ["1", "2"], "clicked": ["1"] if n % 2 else [], "team_a": ["1"],
         "team_b": ["2"]} for n in range(60)
    ]  # fmt: skip
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, shown)))
    write(
        folder,
        {"items.json": [{"id": "a", "title": "A", "description": "t"}], "pool.json": native_files()["articles.json"]},
    )
    for name in ("documents", "queries", "judgments"):
        rows = {
            "documents": "id,text\n1,copper\n2,lake\n",
            "queries": "id,text\nq1,copper\n",
            "judgments": "query,document,grade\nq1,1,1\n",
        }
        (folder / f"{name}.csv").write_text(rows[name])
    for name, arguments in FIRST.items():
        command = [sys.executable, "-m", "bakeoff", *arguments.format(folder=folder).split()]
        done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr}")
    small, task = str(folder / "small"), "{out}"
    chat = ["--model", "openai:gpt-4o-mini", "--set", "base_url={base}"]
    return [
        Case("run", ["run", "{place}/lineup.toml", "--no-charts", "--out", "{out}/results"]),
        Case("run", ["run", "{place}/lineup.toml", "--no-charts", "--out", "{place}/results"], home=True),
        Case("sweep", ["sweep", "{place}/lineup.toml", "--out", "{out}/results"]),
        Case("footprint", ["footprint", "{place}/lineup.toml", "--out", "{out}/results"]),
        Case("loadtest", ["loadtest", "--synthetic", "200", "--dimensions", "8", "--seconds", "0.2", "--out", "{out}/results"]),
        Case("queries generate", ["queries", "generate", "{shared}/pool.json", "--maker", "llm", *chat, "--out", "{out}/task"]),
        Case("queries generate", ["queries", "generate", "{shared}/pool.json", "--maker", "llm", *chat, "--out", "{place}/task"], home=True),
        Case("queries copy", ["queries", "copy", "wikipedia", "{out}/task"]),
        Case("grade", ["grade", task, "--judge", "llm", *chat], copied="task"),
        Case("grade", ["grade", "{shared}/task", "--judge", "llm", *chat], home=True),
        Case("canary record", ["canary", "record", "openai", "--set", "base_url={base}", "--out", "{out}/x.canary"]),
        Case("migrate plan", ["migrate", "plan", "a+faiss", "b+faiss", "--lineup", "{place}/two.toml", "--metrics-file", "{out}/m.txt"]),
        Case("migrate plan", ["migrate", "plan", "a+faiss", "b+faiss", "--lineup", "{place}/two.toml"], home=True),
        Case("log replay", ["log", "replay", "a+faiss", "b+faiss", "--lineup", "{place}/two.toml", "--out", "{out}/x.csv"]),
        Case("log import", ["log", "import", "{shared}/log.jsonl", "--out", "{out}/log.jsonl"]),
        Case("log sample", ["log", "sample", "{shared}/log.jsonl", "--size", "6", "--out", "{out}/q.jsonl"]),
        Case("log judge", ["log", "judge", "{shared}/log.jsonl", "--out", "{out}/j.csv"]),
        Case("interleave", ["interleave", "{shared}/log.jsonl", "--metrics-file", "{out}/m.txt"]),
        Case("corpus import", ["corpus", "import", small + "/articles.json", "--out", "{out}/a.json"]),
        Case("select", ["select", "{shared}/pool.json", "--n", "2", "--out", "{out}/a.json"]),
        Case("snapshot", ["snapshot", "{shared}/items.json", "--out", "{out}"]),
        Case("export-mteb", ["export-mteb", "{shared}/made/old", "--task", "X", "--out", "{out}/mteb"]),
        Case("gate", ["gate", "{shared}/made/new", "--baseline", "{shared}/made/old", "--junit", "{out}/junit.xml"]),
        Case("report", ["report", "{shared}/made/old", "--no-pictures", "--out", "{out}/page.html"]),
        Case("history", ["history", "{shared}/made/old", "{shared}/made/new", "--out", "{out}/history.html"]),
        Case("tasks", ["tasks", "{shared}/made/old", "{shared}/made/new", "--out", "{out}/tasks"]),
        Case("init", ["init", "--documents", "{shared}/documents.csv", "--queries", "{shared}/queries.csv", "--judgments",
                      "{shared}/judgments.csv", "--out", "{out}/bakeoff.toml"]),
        Case("agreement", ["agreement", "{shared}/task", "--out", "{out}/agreement.json"]),
        Case("adjudicate", ["adjudicate", task, "--majority"], copied="task"),
        Case("run, reranked", ["run", "{place}/reranked.toml", "--no-charts", "--out", "{out}/results"]),
        Case("run, reranked", ["run", "{place}/reranked.toml", "--no-charts", "--out", "{place}/results"], home=True, ends=(0,)),
        Case("embed", ["embed", "{place}/lineup.toml", "--out", "{out}/shards"]),
        Case("corpus-size", ["corpus-size", "{place}/lineup.toml", "--out", "{out}/sizes.html"]),
        Case("corpus-size", ["corpus-size", "{place}/lineup.toml"], home=True),
        Case("loadtest --provider", ["loadtest", "--provider", "openai", "--set", "base_url={base}", "--requests", "2", "--out", "{out}/results"]),
        Case("queries import", ["queries", "import", "{shared}/queries.csv", "--articles", "{shared}/pool.json", "--out", "{out}/task"]),
        Case("queries import", ["queries", "import", "{shared}/queries.csv", "--force", "--out", task], copied="own"),
        Case("grade import", ["grade", "import", task, "{shared}/judgments.csv", "--who", "ada"], copied="own"),
        Case("vectors export", ["vectors", "export", "{out}/v.npy", "--lineup", "{shared}/local.toml"], made=True),
        Case("vectors export", ["vectors", "export", "{out}/v.parquet", "--lineup", "{shared}/local.toml"], made=True),
        Case("vectors export", ["vectors", "export", "{out}/v.lance", "--lineup", "{shared}/local.toml"], made=True),
        Case("models pull", ["models", "pull", "minilm", "--from", "pypi"], home=True),
    ]  # fmt: skip


def _lineup(rows: int) -> str:
    labels = ("a", "b")[:rows]
    head = 'task = "wikipedia"\nrounds = 1\n'
    return head + "".join(
        f'[[contender]]\nprovider = "openai"\nmodel = "text-embedding-3-{size}"\nstore = "faiss"\nlabel = "{label}"\n'
        'options = { base_url = "{{base}}" }\n'
        for label, size in zip(labels, ("small", "large"), strict=False)
    )
