"""Continuous evaluation as its page shows it: every shell line of the workflows, and the pytest plug-in, for real."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from bakeoff.core.files import write_json
from bakeoff.extensions.several_results.history import Entry, changes, charts
from bakeoff.results.schema import SUMMARY, Summary, read_summary
from bakeoff_providers import weights

from tests.errors import says
from tests.reporting import wikipedia_result
from tests.terminal import ROOT, SOURCES

PAGE = (ROOT / "docs" / "guides" / "gate-in-ci.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"^`([\w./-]+)`:\n\n```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
FILES = {name: content for name, _, content in _NAMED.findall(PAGE)}
WHEEL = "wheels/bakeoff-0.1.0-py3-none-any.whl"
PIP = f"""case "$*" in
"wheel --no-deps --wheel-dir wheels ../bakeoff") mkdir -p wheels && touch {WHEEL} ;;
"install {WHEEL}[local]") test -f {WHEEL} ;;
*) exit 1 ;;
esac"""
(SETUP,) = re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def _github(job: str) -> list[str]:
    steps: list[dict[str, Any]] = yaml.safe_load(FILES["search.yml"])["jobs"][job]["steps"]
    return [step["run"] for step in steps if "run" in step]


def _gitlab(job: str) -> list[str]:
    whole: dict[str, Any] = yaml.safe_load(FILES[".gitlab-ci.yml"])
    return [*whole["default"]["before_script"], *whole[job]["script"], *whole[job].get("after_script", [])]


class Shell:
    """A checkout with `bakeoff` on its path. `pip` only checks what is to be installed: it is what is tested here."""

    def __init__(self, folder: Path) -> None:
        self.folder, tools = folder, folder.parent / "tools"
        tools.mkdir()
        for name, script in (
            ("bakeoff", f'exec {sys.executable} -c "from bakeoff.cli.main import main; main()" "$@"'),
            ("pip", PIP),
        ):
            (tools / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            (tools / name).chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": SOURCES, "CHROMA_URL": str(folder.parent / "live"),
            "BAKEOFF_HOME": str(weights.home()), "OMP_NUM_THREADS": "1",
        }  # fmt: skip

    def run(self, lines: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-c", lines], cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """After the page's first section, with a live index to probe."""
    import chromadb
    from bakeoff.extensions.storelab.vector_sample import synthetic

    folder = tmp_path_factory.mktemp("ci") / "checkout"
    folder.mkdir()
    (folder / "bakeoff.toml").write_text(FILES["bakeoff.toml"], encoding="utf-8")
    client = chromadb.PersistentClient(str(folder.parent / "live"))
    collection = client.create_collection("docs", configuration={"hnsw": {"space": "cosine"}})
    collection.add(ids=[str(at) for at in range(300)], embeddings=synthetic(300, 16, 10).documents)
    client.close()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    made = Shell(folder)
    done = made.run(SETUP)
    assert done.returncode == 0, done.stderr
    return made


needs_weights = pytest.mark.skipif(not weights.present("minilm"), reason="the weights of minilm are not here")


@needs_weights
def test_both_workflows_ask_for_the_same() -> None:
    for job in ("gate", "nightly"):
        assert _github(job) == _gitlab(job)
    assert set(yaml.safe_load(FILES["search.yml"])["jobs"]) == {"gate", "nightly"}


@pytest.mark.slow
@needs_weights
def test_every_line_of_the_workflows_runs_in_order(shell: Shell) -> None:
    for line in (*_github("gate"), *_github("nightly")):
        done = shell.run(line)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    for made in ("gate.xml", "history.html", "canary.prom", "probe.prom", "history.prom"):
        assert (shell.folder / made).is_file()


@pytest.mark.slow
@needs_weights
def test_the_fixture_gates_and_fails_where_a_contender_dropped(shell: Shell) -> None:
    (shell.folder / "test_search.py").write_text(FILES["test_search.py"], encoding="utf-8")
    options = "-q -p no:cacheprovider --rootdir ."
    command = f"{sys.executable} -m pytest {options} test_search.py"
    passed = shell.run(command)
    assert passed.returncode == 0, passed.stdout
    shutil.copytree(next((shell.folder / "baseline").iterdir()), shell.folder / "better" / "20990101-000000-bakeoff")
    detailed = next((shell.folder / "better").glob("*/detailed_results.json"))
    content = msgspec.json.decode(detailed.read_bytes())
    for contender in content["contenders"]:
        for query in contender["queries"].values():
            query["measures"] = dict.fromkeys(query["measures"], 1.0)
    write_json(detailed, content)
    test = (shell.folder / "test_search.py").read_text(encoding="utf-8")
    (shell.folder / "test_search.py").write_text(
        test.replace('"baseline"', '"better", contenders=["bm25"]'), encoding="utf-8"
    )
    failed = shell.run(command)
    assert failed.returncode == 1
    assert re.search(r"\bgate .*\bbm25\b", failed.stdout)
    assert "Traceback" not in failed.stdout


def _later(summary: Summary, **versions: str) -> Summary:
    machine = msgspec.structs.replace(summary.machine, versions={**summary.machine.versions, **versions})
    return msgspec.structs.replace(summary, machine=machine, started="2099-01-01T00:00:00+00:00")


def test_a_change_of_library_is_told_and_marked(tmp_path: Path) -> None:
    folder = wikipedia_result(tmp_path, "bm25")
    before = read_summary(folder)
    known = next(iter(before.machine.versions))
    after = _later(before, **{known: "99.0"})
    says("\n".join(changes(before, after)), f"{known}", f"{before.machine.versions[known]}", "99.0")
    assert changes(before, _later(before, brandnew="1.0")) == []
    entries = [Entry(name=str(at), link="", summary=summary) for at, summary in enumerate((before, after))]
    (chart,) = charts(entries)
    assert not chart.failure
    assert "library" in str(chart.specs)
    assert (folder / SUMMARY).is_file()
