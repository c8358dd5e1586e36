"""Runs two source trees over the same line-ups and compares every figure: python bench/same_figures.py REVISION

A refactoring must change no figure. REVISION is exported into a temporary folder; it and the working tree run all
built-in line-ups and those of `every_row/`, whose hosted providers are counting servers on the loopback interface. Both
are driven by the command line alone, with a cache each, so the sources may be laid out otherwise. Compared are the
result files, the dry run, `score`, `compare`, `gate`, grades of a chat model, what the servers were sent, and what the
working tree makes of the revision's cache and results. Each difference is printed with its path; any makes the exit
code 1.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402
from bakeoff.core.facts import Fact, Failure, Section  # noqa: E402
from bakeoff.report.sections import text_table  # noqa: E402
from bakeoff.report.words import failure_words, words  # noqa: E402
from every_row.files import SearchServer, write_files  # noqa: E402

from tests.wire import PROXIES, Fault, WireServer  # noqa: E402

BUILT_IN = ("", *sorted(path.stem for path in (ROOT / "lineups").glob("*.toml")))  # "" is the default line-up
OPTIONS = {"films": ["--tune-weights"], "scholarships": ["--set", "calibrate_thresholds=true"]}
OWN = ("every-row", "filtered", "grading")  # they need services
KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY", "CO_API_KEY", "COHERE_API_KEY")
RESULT_FILES = ("metrics_summary", "detailed_results")
SHOWN = 20  # differences of one output, unless --all
ABSENT = "absent"

# What no tree can repeat: clocks, dates, and paths. Everything else is compared.
NOT_COMPARED = (
    "metrics_summary/started",
    "metrics_summary/seconds",
    "metrics_summary/machine",
    "metrics_summary/command",
    "metrics_summary/format",
    "latency/*/p50",
    "latency/*/p95",
    "latency/*/p99",
    "latency/cold_embed_ms",
    "latency/cold_search_ms",
    "latency/doubts",
    "build_seconds",
    "second_stage/*/median_ms",
    "second_stage/*/gain_per_ms",
    "sections/*/stage p50 ms",
    "sections/*/gain per ms",
    "verdict/picks",  # by times
    "verdict/take",  # of rows that score alike, the fastest
    "*/text",  # words, times among them
    "rows/*lancedb*/index_bytes",  # its files hold times, as numbers of any length
    "detailed_results/contenders/*/timing",
)
TIMED = re.compile(r"\b(ms|seconds|minutes|faster|slower|timings?)\b")  # a sentence about time
RENDERED = re.compile(r"matrix\.|evaluation_report|charts/|\.(png|md)$|metrics_summary|detailed_results")
STAMP = re.compile(r"\d{8}[-_]\d{6}|\d{4}-\d\d-\d\dT[\d:.]+(?:\+[\d:]+|Z)?")  # the date in a name or a file
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
NAMES = (("label",), ("title",), ("use",), ("a", "b"), ("contender",), ("name", "tag"))  # what names a list's entries
Pattern = re.Pattern[str]


@dataclass(frozen=True)
class Output:
    """What a command answered."""

    code: int
    out: str
    err: str

    def document(self) -> Any:
        """The JSON that it printed, or how it failed."""
        return in_words(json.loads(self.out)) if self.code == 0 else self.failure()

    def failure(self) -> dict[str, Any]:
        """Exit code and messages."""
        return {"code": self.code, "errors": self.err.splitlines()}


@dataclass(frozen=True)
class Tree:
    """A source tree, the folder that it works in, and its cache; `hosted`: keys for services are set."""

    source: Path
    work: Path
    home: Path
    hosted: bool = False

    def bakeoff(self, *arguments: str | Path, expected: Sequence[int] = (0,)) -> Output:
        """One command of this tree; where the revision itself fails, there is nothing to compare with."""
        command = [sys.executable, "-m", "bakeoff", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self.work, env=self.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode not in expected and self.source != ROOT:
            sys.exit(f"the revision fails with {done.returncode}: {' '.join(command[1:])}\n{done.stderr[-2000:]}")
        return Output(done.returncode, self.without_paths(done.stdout), self.without_paths(done.stderr))

    def environment(self) -> dict[str, str]:
        """Its own packages and cache, one thread, and lines that are never wrapped."""
        project = tomllib.loads((self.source / "pyproject.toml").read_text())
        packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        roots = dict.fromkeys(str(self.source / Path(package).parent) for package in packages)
        kept = {name: value for name, value in os.environ.items() if name not in {*KEYS, *PROXIES}}
        keys = dict.fromkeys(KEYS, "made-up") if self.hosted else {}
        own = {"PYTHONPATH": os.pathsep.join(roots), "BAKEOFF_HOME": str(self.home)}
        return kept | keys | own | {"OMP_NUM_THREADS": "1", "COLUMNS": "5000"}

    def without_paths(self, text: str) -> str:
        """The same text, whichever tree wrote it, and whenever."""
        for folder, name in ((self.source, "SOURCE"), (self.work, "WORK"), (self.work.parent / "old", "WORK")):
            text = text.replace(str(folder), name)
        return STAMP.sub("STAMP", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("revision", help="what the working tree is compared with, such as HEAD or main")
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="PATH",
        help="a path or a part of one that may differ: rows/*/cost, lineup, words (wording apart from its numbers)",
    )  # fmt: skip
    parser.add_argument("--lineup", action="append", choices=[*BUILT_IN[1:], "default", *OWN], help="only this one")
    parser.add_argument("--all", action="store_true", help=f"print every difference, not only {SHOWN} of each output")
    options = parser.parse_args()
    chosen = [{"default": ""}.get(name, name) for name in options.lineup or [*BUILT_IN, *OWN]]
    with tempfile.TemporaryDirectory(prefix="same-figures-") as name:
        work = Path(name)
        old = Tree(work / "revision", work / "old", work / "old" / "home")
        new = Tree(ROOT, work / "new", work / "new" / "home")  # a path as long: some indexes hold their own
        unpack(options.revision, old.source)
        for tree in (old, new):
            prepare(tree)
        for name in [name for name in chosen if name in BUILT_IN[1:]]:
            if not (old.source / "lineups" / f"{name}.toml").is_file():
                print(f"{name}: not in {options.revision}, left out")
                chosen.remove(name)
        before, after = figures_of(old, new, work, chosen)
    differences = list(differing(before, after, [as_pattern(path) for path in (*NOT_COMPARED, *options.ignore)]))
    report(differences, everything=options.all)
    for name, labels in not_run(before).items():
        print(f"{name}: did not run: {', '.join(labels)}")
    print(f"{len(differences)} differences in {sum(1 for _ in leaves(before)):,} figures of {len(before)} parts")
    sys.exit(bool(differences))


def unpack(revision: str, folder: Path) -> None:
    """The files of a revision, without touching the working tree."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def prepare(tree: Tree) -> None:
    """An empty cache but for the model weights that are here; the tree's own packages must be what is imported."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    here = Path(os.environ.get("BAKEOFF_HOME") or Path(cache) / "bakeoff")
    (here / "models").mkdir(parents=True, exist_ok=True)
    tree.home.mkdir(parents=True)
    (tree.home / "models").symlink_to(here / "models")
    code = "import bakeoff, bakeoff_providers; print(bakeoff.__file__, bakeoff_providers.__file__, sep='\\n')"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=tree.environment(), capture_output=True, text=True, check=True).stdout
    if any(not Path(file).is_relative_to(tree.source) for file in found.splitlines()):
        sys.exit(f"{tree.source} is not what Python imports:\n{found}")


def figures_of(old: Tree, new: Tree, work: Path, chosen: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Everything that each tree answers, by line-up: the built-in ones side by side, those with services in turn."""
    own = work / "every-row"
    own.mkdir()

    def built_in(tree: Tree) -> dict[str, Any]:
        answers = {}
        for name in (name for name in chosen if name not in OWN):
            print(name or "default", file=sys.stderr)
            answers[name or "default"] = of_lineup(tree, name)
        return answers

    with ThreadPoolExecutor(2) as pool, WireServer() as wire, SearchServer(own) as search:
        wire.answer = chat_answer
        before, after = pool.map(built_in, (old, new))
        hosted = [(replace(tree, hosted=True), figures) for tree, figures in ((old, before), (new, after))]
        lineups = {path.stem: path for path in write_files(own, wire.url, search.url)}
        counting = Counting(wire, search)
        for name in (name for name in chosen if name in lineups):
            print(name, file=sys.stderr)
            for tree, figures in hosted:
                figures[name] = of_services(tree, lineups[name], counting)
            for tree, figures in hosted:
                figures[f"{name}, cache of the revision"] = of_kept_vectors(tree, old, lineups[name], counting)
                figures[f"{name}, result of the revision"] = of_result(tree, only_folder(old.work / name))
        for tree, figures in hosted if "grading" in chosen else ():
            figures["grading"] = of_grading(tree, own / "grading", counting)
    return before, after


@dataclass(frozen=True)
class Counting:
    """The services, and what they were sent since they were last asked for it."""

    wire: WireServer
    search: SearchServer

    def sent(self) -> dict[str, Any]:
        """By protocol, model and dimensions: requests, texts and their characters."""
        counts: dict[str, Counter[str]] = {}
        for request in self.wire.requests:
            key = f"{request.provider or request.path} {request.model} {request.dimensions or ''}".strip()
            size = {"requests": 1, "texts": len(request.texts), "characters": sum(map(len, request.texts))}
            counts.setdefault(key, Counter()).update(size)
        asked = {"requests": len(self.search.queries), "characters": sum(map(len, self.search.queries))}
        self.wire.requests.clear()
        self.search.queries.clear()
        return {**{key: dict(sizes) for key, sizes in sorted(counts.items())}, "endpoint": asked}


def chat_answer(_model: str, prompt: str) -> str:
    """A grade by the prompt alone; one in twenty answers is none, and is asked for again."""
    drawn = zlib.crc32(prompt.encode())
    return json.dumps({"reason": "by the prompt", "grade": drawn % 4}) if drawn % 20 else "prose"


def of_services(tree: Tree, lineup: Path, counting: Counting) -> dict[str, Any]:
    """A line-up with an empty cache; its services fail twice."""
    counting.wire.faults.extend([Fault(status=429, headers={"Retry-After-Ms": "20"}), Fault(status=500)])
    return of_lineup(tree, lineup, counting.sent)


def of_kept_vectors(tree: Tree, old: Tree, lineup: Path, counting: Counting) -> dict[str, Any]:
    """The same with what the revision kept: nothing is paid for again."""
    home = tree.work / f"{lineup.stem}-home"
    shutil.copytree(old.home, home, symlinks=True)
    return of_run(replace(tree, home=home), lineup, tree.work / f"{lineup.stem}-again", counting.sent)[0]


def of_grading(tree: Tree, task: Path, counting: Counting) -> dict[str, Any]:
    """Grades of a chat model: planned, asked for, and asked for again, when all of them are kept."""
    folder = tree.work / "grading"
    shutil.copytree(task, folder)
    settings = (f"base_url={counting.wire.base('openai')}", "price_in=0.15", "price_out=0.6")
    judge = ["--judge", "llm", "--model", "openai:judge", *(part for text in settings for part in ("--set", text))]
    figures: dict[str, Any] = {}
    for name, more in (("dry_run", ["--dry-run"]), ("grade", []), ("again", [])):
        done = tree.bakeoff("grade", folder, *judge, *more, expected=(0, 1))  # 1: a pair got no grade
        figures[name] = {"code": done.code, "said": done.out.splitlines(), "errors": done.err.splitlines()}
        figures[name]["sent"] = counting.sent()
    grades = {path.name: json.loads(path.read_bytes()) for path in sorted((folder / "annotations").glob("*.json"))}
    return figures | {"grades": grades}


def of_lineup(tree: Tree, lineup: str | Path, sent: Callable[[], Any] = dict) -> dict[str, Any]:
    """A line-up: its dry run, its result, and what other commands make of that."""
    out = tree.work / (Path(lineup).stem or "default")
    figures, result = of_run(tree, lineup, out, sent)
    return figures | (of_result(tree, result) if result else {})


def of_run(tree: Tree, lineup: str | Path, out: Path, sent: Callable[[], Any]) -> tuple[dict[str, Any], Path | None]:
    """The dry run, the run, what each of them sent, and where the result is."""
    named = [lineup] if lineup else []
    figures = {"dry_run": plan_of(tree.bakeoff("run", *named, "--dry-run")), "dry_run_sent": sent()}
    done = tree.bakeoff("run", *named, "--no-charts", "--out", out, *OPTIONS.get(str(lineup), []))
    figures["sent"] = sent()
    if done.code:
        return figures | {"run": done.failure()}, None
    result = only_folder(out)
    return figures | stored(tree, result), result


def only_folder(folder: Path) -> Path:
    """The one result in a folder."""
    (found,) = (path for path in folder.iterdir() if path.is_dir())
    return found


def stored(tree: Tree, result: Path) -> dict[str, Any]:
    """Both result files, and a hash of each file that is not rendered from them."""
    figures: dict[str, Any] = {
        name: in_words(json.loads(tree.without_paths((result / f"{name}.json").read_text()))) for name in RESULT_FILES
    }
    for path in sorted(path for path in result.rglob("*") if path.is_file()):
        name = path.relative_to(result).as_posix()
        if not RENDERED.search(name):
            content = STAMP.sub("STAMP", path.read_bytes().decode("latin-1")).encode()
            figures.setdefault("files", {})[STAMP.sub("STAMP", name)] = hashlib.sha256(content).hexdigest()
    return figures


def in_words(value: Any) -> Any:
    """Facts, failures and tables as they are shown: revisions before format 2 hold them so."""
    if isinstance(value, list):
        return [in_words(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "id" in value and value.keys() <= {"id", "arguments"}:
        return words(msgspec.convert(value, Fact))
    if value.keys() >= {"kind", "error"} and value.keys() & {"text", "lacks"}:
        return failure_words(msgspec.convert(value, Failure))
    if value.keys() == {"title", "head", "rows", "notes"}:
        table = text_table(msgspec.convert(value, Section))
        return {"title": table.title, "head": table.heads, "rows": table.rows, "notes": table.notes}
    return {key: "" if key == "doubt" and part is None else in_words(part) for key, part in value.items()}


def of_result(tree: Tree, result: Path) -> dict[str, Any]:
    """`score`, `compare` and `gate` of one result; the gate also of the worst row in place of the best."""
    summary, detailed = (json.loads((result / f"{name}.json").read_bytes()) for name in RESULT_FILES)
    rows, measure = {row["label"]: row for row in summary["rows"]}, summary["verdict"]["measure"]
    ranked = sorted(
        (rows[contender["label"]]["measures"][measure]["mean"], contender["label"])
        for contender in detailed["contenders"]
    )
    worst, best = ranked[0][1], ranked[-1][1]
    baseline = tree.work / "baselines" / result.name
    shutil.rmtree(baseline, ignore_errors=True)
    shutil.copytree(result, baseline)
    qrels, runs = result / "judgments.qrels", sorted((result / "runs").glob("*.trec"))
    return {
        "score": tree.bakeoff("score", qrels, *runs, "-f", "json", "-q").document() if runs else None,
        "compare": tree.bakeoff("compare", result, "-f", "json").document(),
        "compare_two": tree.bakeoff(
            "compare", result, baseline, "--contender", best, "--contender", worst, "--all-pairs", "-f", "json",
            "--equivalent-within", "0.05",
        ).document(),
        "gate": of_gate(tree, result, baseline),
        "gate_dropped": of_gate(tree, result, baseline, "--contender", f"{worst}={best}", "--max-drop", "0.01"),
    }  # fmt: skip


def of_gate(tree: Tree, result: Path, baseline: Path, *options: str) -> dict[str, Any]:
    """Its exit code, its lines and its JUnit file."""
    file = tree.work / "junit.xml"
    file.unlink(missing_ok=True)
    done = tree.bakeoff("gate", result, "--baseline", baseline, "--junit", file, *options, expected=(0, 1))
    written = ElementTree.fromstring(tree.without_paths(file.read_text())).iter() if file.is_file() else ()
    junit = [{**part.attrib, "tag": part.tag, "text": (part.text or "").strip()} for part in written]
    return {"code": done.code, "said": done.out.splitlines(), "errors": done.err.splitlines(), "junit": junit}


def plan_of(output: Output) -> dict[str, Any]:
    """The table of a dry run by its rows, without the minutes, and the lines below it."""
    if output.code:
        return output.failure()
    lines = [re.split(r"\s{2,}", line.strip()) for line in output.out.splitlines() if line.strip(" ─")]
    head, *rows = lines
    cells = [dict(zip(head, row, strict=False)) for row in rows if len(row) > 1]
    table = {f"{row.get('task', '')} {row['rows']}".strip(): row for row in cells}
    return {
        "table": {name: {key: cell for key, cell in row.items() if key != "minutes"} for name, row in table.items()},
        "said": [row[0] for row in rows if len(row) == 1],
    }


def differing(before: Any, after: Any, ignored: Sequence[Pattern], path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each path at which two documents differ, with both values."""
    if before == after or any(pattern.search(path) for pattern in ignored):
        return
    before, after = keyed(before), keyed(after)
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            one, other = before.get(key, ABSENT), after.get(key, ABSENT)
            yield from differing(one, other, ignored, f"{path}/{key}" if path else str(key))
    elif isinstance(before, str) and isinstance(after, str):
        if min(before.count(" "), after.count(" ")) > 1 and NUMBER.findall(before) == NUMBER.findall(after):
            path = f"{path}/words"
        timed = TIMED.search(before) and TIMED.search(after)
        if not timed and not any(pattern.search(path) for pattern in ignored):
            yield path, before, after
    else:
        yield path, before, after


def keyed(value: Any) -> Any:
    """A list by what names its entries, else by their places, and a table by its head; no sentences about time."""
    if isinstance(value, dict) and {"head", "rows"} <= value.keys():
        return value | {"rows": [dict(zip(value["head"], row, strict=False)) for row in value["rows"]]}
    if not isinstance(value, list):
        return value
    if value and all(isinstance(entry, dict) for entry in value):
        for names in NAMES:
            keys = [" ".join(str(entry.get(name, "")) for name in names) for entry in value]
            if len(set(keys)) == len(keys) and all(key.strip() for key in keys):
                return dict(zip(keys, value, strict=True))
    if value and all(isinstance(entry, str) for entry in value):
        value = [entry for entry in value if not TIMED.search(entry)]
    return {str(place): entry for place, entry in enumerate(value)}


def as_pattern(path: str) -> Pattern:
    """Whole steps of a path, anywhere in it; * stands for anything."""
    return re.compile(rf"(^|/){'.*'.join(map(re.escape, path.strip('/').split('*')))}(/|$)")


def leaves(value: Any) -> Iterator[Any]:
    """Everything in a document that is no list and no table."""
    if isinstance(value, (dict, list)):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from leaves(entry)
    else:
        yield value


def not_run(figures: dict[str, Any]) -> dict[str, list[str]]:
    """The rows of each line-up that can't run here."""
    rows = {name: part.get("metrics_summary", {}).get("rows", ()) for name, part in figures.items()}
    lost = {name: [row["label"] for row in found if row["not_run"]] for name, found in rows.items()}
    return {name: labels for name, labels in lost.items() if labels}


def report(differences: Sequence[tuple[str, Any, Any]], *, everything: bool) -> None:
    """Each difference on a line; of one output of one line-up the first ones, unless all are wanted."""
    shown: Counter[str] = Counter()
    for path, before, after in differences:
        part = "/".join(path.split("/")[:2])
        shown[part] += 1
        if everything or shown[part] <= SHOWN:
            print(f"{path}: {short(before)} → {short(after)}")
    for part, count in shown.items():
        if count > SHOWN and not everything:
            print(f"{part}: {count - SHOWN} more (--all prints them)")


def short(value: Any) -> str:
    """A value on part of a line."""
    text = value if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}…"


if __name__ == "__main__":
    main()
