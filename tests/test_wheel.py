"""The wheel, installed with no extras in a clean environment, beside folders that are called harness and providers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import bakeoff
import pytest

pytestmark = pytest.mark.wheel
ROOT = Path(__file__).parent.parent
LINEUP = """
task = "wikipedia"
measures = ["ndcg@10", "mrr"]
rounds = 1

[[contender]]
provider = "fake"
store = ["faiss", "chroma"]

[[contender]]
ranker = "bm25"

[[contender]]
provider = "wordllama"
store = "faiss"
"""
FROM_PYTHON = """
import bakeoff

outcome = bakeoff.run(bakeoff.Lineup.read("bakeoff.toml").narrow(["fake"]))
result = bakeoff.load(bakeoff.save(outcome, "from-python"))
assert callable(bakeoff.run)
print(bakeoff.__version__, *sorted(result.labels), round(result.values("fake+faiss", "ndcg@10").mean(), 3))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from this tree, as `pip wheel` would."""
    folder = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)], folder)
    (built,) = folder.glob("*.whl")
    return built


def _run(command: list[str], folder: Path) -> str:
    """Runs without this checkout on the path; whatever fails shows what it printed."""
    hidden = ("PYTHON", "BAKEOFF", "COV", "PYTEST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {"BAKEOFF_HOME": str(folder / "home"), "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_holds_two_packages_and_the_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"bakeoff", "bakeoff_providers"}
    assert {"bakeoff/py.typed", "bakeoff_providers/py.typed", "bakeoff/data/bakeoff.toml"} <= set(names)
    shipped = [*(ROOT / "lineups").rglob("*.toml"), *(ROOT / "queries").rglob("*.*"), *(ROOT / "corpora").rglob("*.*")]
    assert {f"bakeoff/data/{path.relative_to(ROOT).as_posix()}" for path in shipped if path.is_file()} <= set(names)
    kinds = (".html", ".css", ".js", ".json", ".svg")
    static = [path for path in (ROOT / "harness").rglob("*") if path.suffix in kinds]
    assert {path.relative_to(ROOT / "harness").as_posix() for path in static} <= set(names)


def test_it_runs_beside_folders_of_the_same_names(wheel: Path, tmp_path: Path) -> None:
    environment, project = tmp_path / "venv", tmp_path / "project"
    venv.create(environment, with_pip=True)
    binaries = environment / "bin"
    _run([str(binaries / "pip"), "install", "--quiet", "--no-compile", str(wheel)], tmp_path)
    for package in ("harness", "providers"):
        for module in ("__init__", "errors", "base", "cli", "lineup", "registry"):
            file = project / package / f"{module}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f'raise RuntimeError("{package}.{module} is not for Bakeoff")\n', encoding="utf-8")
    (project / "bakeoff.toml").write_text(LINEUP, encoding="utf-8")

    _run([str(binaries / "bakeoff"), "run"], project)
    assert "bakeoff[wordllama]" in _run([str(binaries / "bakeoff"), "show", "latest", "--full"], project)
    (result,) = (project / "results").iterdir()
    runs = sorted(path.name for path in (result / "runs").iterdir())
    assert runs == ["bm25.trec", "fake+chroma.trec", "fake+faiss.trec"]
    assert (result / "evaluation_report.html").is_file()
    _run([str(binaries / "bakeoff"), "run", "trips", "--out", "named"], project)
    assert "install bakeoff[wordllama]" in _run([str(binaries / "bakeoff"), "list", "wordllama"], project)
    assert _run([str(binaries / "bakeoff"), "--version"], project).strip().endswith(bakeoff.__version__)

    printed = _run([str(binaries / "python"), "-c", FROM_PYTHON], project)
    reference = json.loads((ROOT / "results/reference/metrics_summary.json").read_text(encoding="utf-8"))
    (row,) = (row for row in reference["rows"] if row["label"] == "fake+faiss")  # made in a full environment
    expected = f"{row['measures']['ndcg@10']['mean']:.3f}"
    assert printed.split() == [bakeoff.__version__, "fake+chroma", "fake+faiss", expected]
