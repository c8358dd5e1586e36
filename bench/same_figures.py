"""Runs the five line-ups with two source trees and compares their figures: python bench/same_figures.py [REVISION]

A refactoring must change no score, p-value, ranking or cache key. The revision (the last one of the old layout unless
another is named) and the working tree run with empty vector caches of their own; whatever holds a clock is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).parent.parent
BEFORE = "38aa2a5"  # the last revision in which the packages were called harness and providers
LINEUPS = ("wikipedia-paraphrased", "films", "neighbours", "trips", "scholarships")
ROW_FIGURES = ("measures", "categories", "ties", "targets", "dimensions", "vector_bytes", "loss", "stable", "not_run")
VERDICT_FIGURES = ("measure", "best", "tie_group", "pairs", "agreement")  # what can be detected counts Holm's step now
PAIR_FIGURES = ("a", "b", "difference", "p", "p_holm", "t_p", "wins", "ties", "losses")  # Wilcoxon's ties are exact now
RENDERED = re.compile(r"matrix\.|evaluation_report|charts/|\.png$|\.md$|metrics_summary|detailed_results")
STAMP = re.compile(rb"\d{8}-\d{6}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("revision", nargs="?", default=BEFORE)
    parser.add_argument("--lineup", action="append", choices=LINEUPS, help="only this one; may be repeated")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="same-figures-") as name:
        work = Path(name)
        unpack(options.revision, work / "tree")
        differences = 0
        print(f"{'line-up':<13} {'what':<34} {options.revision:<9} working tree")
        for lineup in options.lineup or LINEUPS:
            before = run(work / "tree", lineup, work / "before")
            after = run(ROOT, lineup, work / "after")
            for what in sorted(before.keys() | after.keys()):
                same = alike(before.get(what), after.get(what))
                differences += not same
                note = (
                    "equal" if same else f"{digest(after.get(what))}  DIFFERS {first_difference(before, after, what)}"
                )
                print(f"{lineup:<13} {what:<34} {digest(before.get(what)):<9} {note}")
    print(f"{differences} differences")
    sys.exit(differences > 0)


def unpack(revision: str, folder: Path) -> None:
    """The files of a revision, without touching the working tree."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def run(tree: Path, lineup: str, out: Path) -> dict[str, Any]:
    """Runs one built-in line-up with the source of a tree; answers with everything that no clock is in."""
    current = (tree / "harness" / "bakeoff").is_dir()
    package, roots = ("bakeoff", [tree / "harness", tree / "providers"]) if current else ("harness", [tree])
    results, home = out / lineup, out / f"{lineup}-home"
    home.mkdir(parents=True)
    (home / "models").symlink_to(_home() / "models")
    keys = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY", "COHERE_API_KEY")
    environment = {name: value for name, value in os.environ.items() if name not in keys}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, roots)), "BAKEOFF_HOME": str(home), "OMP_NUM_THREADS": "1"}
    named = tree / "lineups" / f"{lineup}.toml"
    file = named if named.exists() else tree / "bakeoff.toml"  # of old, the paraphrased task was the default
    command = [sys.executable, "-c", f"from {package}.cli import main; main()", "run", str(file), "--out", str(results)]
    done = subprocess.run(command, cwd=out, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{lineup} failed in {tree}:\n{done.stderr[-2000:]}")
    (result,) = (path for path in results.iterdir() if path.is_dir())
    return figures_of(result) | cache_of(home / "vectors")


def _home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("BAKEOFF_HOME") or Path(cache) / "bakeoff")


def figures_of(result: Path) -> dict[str, Any]:
    """Scores, tests and rankings of a result folder, and the bytes of every file that is not a rendering of them."""
    summary = json.loads((result / "metrics_summary.json").read_bytes())
    detailed = json.loads((result / "detailed_results.json").read_bytes())
    figures: dict[str, Any] = {
        f"row.{name}": {row["label"]: row.get(name) for row in summary["rows"]} for name in ROW_FIGURES
    }
    figures |= {f"verdict.{name}": summary["verdict"].get(name) for name in VERDICT_FIGURES}
    # Intervals are left out: those of few queries are exact now, and those of differences span Student's too.
    figures["row.measures"] = {
        label: {name: value["mean"] for name, value in measures.items()}
        for label, measures in figures["row.measures"].items()
    }
    _drop_judged(figures)
    figures["verdict.pairs"] = [{name: pair[name] for name in PAIR_FIGURES} for pair in figures["verdict.pairs"]]
    figures["task"], figures["figures"] = summary["task"], summary["figures"]
    figures["queries"], figures["baselines"] = detailed["queries"], detailed["baselines"]
    figures["task"].pop("drawn_from", None)  # samples of a corpus came later
    figures["answers"] = {contender["label"]: contender["queries"] for contender in detailed["contenders"]}
    _drop_judged(figures["answers"])
    for path in sorted(result.rglob("*")):
        name = path.relative_to(result).as_posix()
        if path.is_file() and not RENDERED.search(name):
            figures[STAMP.sub(b"STAMP", name.encode()).decode()] = STAMP.sub(b"STAMP", path.read_bytes())
    return figures


def _drop_judged(figures: dict[str, Any]) -> None:
    """`judged@k` is a share of what matched now; it was of all places, those that were filled up included."""
    for name in [name for name in figures if name.startswith("judged@")]:
        del figures[name]
    for inner in figures.values():
        if isinstance(inner, dict):
            _drop_judged(inner)


def alike(before: Any, after: Any) -> bool:
    """Equal; vectors to a unit in the sixth digit, because TF-IDF's last bits are no longer scikit-learn's."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(alike(before[key], after[key]) for key in before)
    if isinstance(before, Vector) and isinstance(after, Vector):
        return before.rows.shape == after.rows.shape and bool(np.allclose(before.rows, after.rows, rtol=0, atol=1e-6))
    return bool(before == after)


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """One cached vector."""

    rows: npt.NDArray[np.float32]


def cache_of(folder: Path) -> dict[str, Any]:
    """Each space of cached vectors: its name, what identifies it, and what it holds under which key."""
    identities: dict[str, Any] = {}
    vectors: dict[str, dict[str, Vector]] = {}
    for identity in sorted(folder.rglob("identity.json")):
        name = identity.parent.relative_to(folder).as_posix()
        identities[name] = json.loads(identity.read_bytes())
        batches = [batch for path in identity.parent.glob("*.seg") for batch in _segment(path.read_bytes())]
        batches += [batch for path in identity.parent.glob("*.manifest") for batch in _shard(path)]
        vectors[name] = {}
        for keys, rows in batches:
            width = len(rows) // (len(keys) // 16)
            for row in range(len(keys) // 16):
                vector = np.frombuffer(rows[row * width : (row + 1) * width], dtype="<f4")
                vectors[name][keys[16 * row : 16 * row + 16].hex()] = Vector(vector)
    return {"cache identities": identities, "cache vectors": vectors}


def _segment(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and rows of each record, as caches were laid out before they became shards."""
    at = 0
    while at < len(data):
        _, rows, dimensions, _, _ = struct.unpack_from("<4sIIII", data, at)
        keys, end = at + 20, at + 20 + rows * (20 + 4 * dimensions)
        yield data[keys : keys + 16 * rows], data[keys + 20 * rows : end]
        at = end


def _shard(manifest: Path) -> Iterator[tuple[bytes, bytes]]:
    """The keys of each record of a manifest, and their rows from the file beside it."""
    data, matrix = manifest.read_bytes(), manifest.with_suffix(".f32").read_bytes()
    _, length, _ = struct.unpack_from("<4sIQ", data)
    width, at = 4 * json.loads(data[16 : 16 + length])["dimensions"], 16 + length
    while at < len(data):
        _, rows, start, _, _ = struct.unpack_from("<4sIQQQ", data, at)
        keys = at + 40
        yield data[keys : keys + 16 * rows], matrix[start * width : (start + rows) * width]
        at = keys + 20 * rows


def digest(value: Any) -> str:
    """A short name for a value, so that a table can show it."""
    if value is None:
        return "absent"
    content = value if isinstance(value, bytes) else repr(value).encode()
    return hashlib.sha256(content).hexdigest()[:8]


def first_difference(before: Mapping[str, Any], after: Mapping[str, Any], what: str) -> str:
    """Where two values part, as a path of keys."""
    a, b, place = before.get(what), after.get(what), []
    while isinstance(a, dict) and isinstance(b, dict):
        key = next(key for key in [*a, *b] if not alike(a.get(key), b.get(key)))
        a, b = a.get(key), b.get(key)
        place.append(str(key))
    return f"{' / '.join(place)}: {str(a)[:60]} → {str(b)[:60]}"


if __name__ == "__main__":
    main()
