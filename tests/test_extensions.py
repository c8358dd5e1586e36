"""Extensions: found by listing their folder, absent without harm, and offered by other packages in the same way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bakeoff.cli.command_table import CORE, GROUPS, all_commands
from bakeoff.core.extensions import extensions, load_place

ROOT = Path(__file__).parent.parent
OFFLINE = ("--contender", "tfidf", "--contender", "bm25")


def _python(tree: Path, *arguments: str, cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(tree / "harness"), str(tree / "providers"), changes.pop("EXTRA_PATH", "")])
    environment = os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)} | changes
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def _bakeoff(tree: Path, *arguments: str, cwd: Path, **changes: str) -> str:
    done = _python(tree, "-m", "bakeoff", *arguments, cwd=cwd, **changes)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def test_every_extension_is_found() -> None:
    folders = {path.parent.name for path in (ROOT / "harness/bakeoff/extensions").glob("*/__init__.py")}
    assert {extension.__name__.rpartition(".")[2] for extension in extensions()} == folders
    assert {"kinds", "production", "ray", "storelab", "testsets"} <= folders


@pytest.mark.parametrize("command", all_commands().values(), ids=lambda command: command.name)
def test_a_command_leads_somewhere_and_has_a_short_summary(command: Any) -> None:
    assert callable(load_place(command.place))
    assert command.group in GROUPS
    assert 10 < len(command.summary) <= 60


def test_help_imports_no_command(tmp_path: Path) -> None:
    script = (
        "import sys\nsys.argv = ['bakeoff', '--help']\nfrom bakeoff.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint(*sys.modules)"
    )
    imported = set(_python(ROOT, "-c", script, cwd=tmp_path).stdout.splitlines()[-1].split())
    assert "bakeoff.cli.command_table" in imported
    assert not {command.place.partition(":")[0] for command in all_commands().values()} & imported


def _figures(folder: Path) -> Any:
    """Everything of a result that no clock, machine or path decides."""
    (result,) = (folder / "results").iterdir()
    summary = json.loads((result / "metrics_summary.json").read_text(encoding="utf-8"))
    rows = [{key: row[key] for key in ("label", "measures", "cost") if key in row} for row in summary["rows"]]
    return rows, summary["pairs"] if "pairs" in summary else summary["verdict"]["pairs"]


@pytest.mark.slow
def test_the_core_runs_without_extensions_and_gives_the_same_figures(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("harness", "providers", "corpora", "queries", "lineups"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("extensions", "__pycache__"))
    shutil.copy(ROOT / "bakeoff.toml", tree)
    assert not (tree / "harness/bakeoff/extensions").exists()
    core, whole = tmp_path / "core", tmp_path / "whole"
    for folder, source in ((core, tree), (whole, ROOT)):
        folder.mkdir()
        _bakeoff(source, "run", *OFFLINE, "--rounds", "1", "--no-charts", cwd=folder)
    assert _figures(core) == _figures(whole)

    dry = [_bakeoff(source, "run", *OFFLINE, "--dry-run", cwd=core) for source in (tree, ROOT)]
    assert dry[0] == dry[1]
    (result,) = (core / "results").iterdir()
    _bakeoff(tree, "report", str(result), cwd=core)
    assert (result / "evaluation_report.html").is_file()
    for arguments in (("show", str(result)), ("compare", str(result)), ("list",), ("validate", "wikipedia")):
        assert _bakeoff(tree, *arguments, cwd=core)
    _bakeoff(tree, "gate", str(result), "--baseline", str(next((whole / "results").iterdir())), cwd=core)
    qrels, runs = result / "judgments.qrels", sorted((result / "runs").glob("*.trec"))
    scored = [
        _bakeoff(source, "score", str(qrels), *map(str, runs), "--format", "json", cwd=core) for source in (tree, ROOT)
    ]
    assert scored[0] == scored[1]
    _bakeoff(tree, "init", "wikipedia", cwd=core)
    assert (core / "bakeoff.toml").is_file()
    listing = "from bakeoff.cli.command_table import all_commands\nprint(*all_commands())"
    assert _python(tree, "-c", listing, cwd=core).stdout.split() == [command.name for command in CORE]

    for script in (
        "from bakeoff import *\nimport bakeoff\nassert not hasattr(bakeoff, 'interleave')",
        "from bakeoff.plugins import *\nfrom bakeoff import plugins\nassert not hasattr(plugins, 'StoreConformance')",
    ):
        assert _python(tree, "-c", script, cwd=core).returncode == 0
    script = "import bakeoff\nfound = bakeoff.evaluate({'a': 'tfidf', 'b': 'bm25'}, rounds=1)\nprint(found.scores)"
    evaluated = [_python(source, "-c", script, cwd=core) for source in (tree, ROOT)]
    assert [done.returncode for done in evaluated] == [0, 0], evaluated[0].stderr
    assert evaluated[0].stdout == evaluated[1].stdout

    (core / "test_one.py").write_text("def test_one(bakeoff):\n    assert callable(bakeoff.gate)\n")
    tested = _python(tree, "-m", "pytest", "-q", "test_one.py", cwd=core)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of somebody else's that is installed and offers a command."""
    site = tmp_path / "site"
    info = site / "greeting-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "greeting.py").write_text(
        "from bakeoff.core.extensions import Command\n"
        "GREET = Command('greet', 'greeting:greet', 'Greetings', 'Greet somebody.')\n"
        "def greet(name: str) -> None:\n    '''Greet somebody.'''\n    print(f'hello {name}')\n"
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bakeoff.commands]\ngreet = greeting:GREET\n")
    return site


def test_a_broken_package_costs_its_own_command(tmp_path: Path, package: Path) -> None:
    (package / "greeting.py").write_text("raise RuntimeError('no library')\n")
    assert "greet" not in _bakeoff(ROOT, "--help", cwd=tmp_path, EXTRA_PATH=str(package)).split()
    assert _bakeoff(ROOT, "cache", "info", cwd=tmp_path, EXTRA_PATH=str(package), BAKEOFF_HOME=str(tmp_path))
    refused = _python(ROOT, "-m", "bakeoff", "greet", "Ada", cwd=tmp_path, EXTRA_PATH=str(package))
    assert refused.returncode == 1
    told = _python(ROOT, "-m", "bakeoff", "--verbose", "--help", cwd=tmp_path, EXTRA_PATH=str(package)).stderr
    assert "Traceback" not in told


def test_another_package_offers_a_command(tmp_path: Path, package: Path) -> None:
    shown = _bakeoff(ROOT, "--help", cwd=tmp_path, EXTRA_PATH=str(package))
    assert "greet" in shown.split()
    assert _bakeoff(ROOT, "greet", "Ada", cwd=tmp_path, EXTRA_PATH=str(package)) == "hello Ada\n"
    assert _python(ROOT, "-m", "bakeoff", "greet", "Ada", cwd=tmp_path).returncode == 2
