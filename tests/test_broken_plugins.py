"""A plug-in of another package that can't be loaded costs its own row or line, and says whose it is and why."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from bakeoff.cli.listing import GROUPS, plugins
from bakeoff.evaluation.measures import families
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.running.runner import run
from bakeoff.running.settings import this_machine
from bakeoff.running.validation import examine
from bakeoff_providers.errors import BrokenPlugin

from tests.installed import install
from tests.native_task import native_files, write_lineup
from tests.registries import EVERY
from tests.terminal import SOURCES, bakeoff, bakeoff_process

GROUPS_OFFERED = [group.removeprefix("bakeoff.") for group in (*GROUPS.values(), "bakeoff.commands")]
CAUSE = "ModuleNotFoundError: No module named 'no_such_library'"
ROWS = {
    "provider+faiss": 'provider = "broken"\nlabel = "provider"\nstore = "faiss"\n',
    "store+broken": 'provider = "fake"\nlabel = "store"\nstore = ["faiss", "broken"]\n',
    "ranker": 'ranker = "broken"\nlabel = "ranker"\n',
    "retriever": 'retriever = { kind = "broken" }\nlabel = "retriever"\n',
    "system": 'system = "broken"\nlabel = "system"\n',
    "bm25+broken": 'ranker = "bm25"\nrerank = { provider = "broken", depth = 2 }\n',
}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every sort of plug-in, and each of them in a module that can't be imported."""
    points = dict.fromkeys(GROUPS_OFFERED, "broken = broken_parts:Broken")
    site = install(tmp_path / "site", "acme-parts", {"broken_parts": "import no_such_library\n"}, points, "0.3")
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("group", GROUPS.values())
def test_it_says_whose_it_is_and_why(group: str) -> None:
    with pytest.raises(BrokenPlugin) as raised:
        EVERY[group].get("broken")
    error = raised.value
    assert (error.package, error.cause) == ("acme-parts 0.3", CAUSE)
    assert error.place == f"{group}: broken_parts:Broken"
    assert all(part in str(error) for part in (EVERY[group].noun, error.package, error.place, error.cause))


@pytest.mark.usefixtures("broken")
def test_it_costs_its_own_rows(tmp_path: Path) -> None:
    contenders = "".join(f"[[contender]]\n{row}" for row in ROWS.values())
    head = 'measures = ["mrr"]\nrounds = 1'
    outcome = run(Lineup.read(write_lineup(tmp_path, native_files(), head=head, contenders=contenders)))
    assert [row.contender.label for row in outcome.ran] == ["store+faiss", "bm25"]
    assert {lost.contender.label for lost in outcome.not_run} == set(ROWS)
    assert all(
        "acme-parts 0.3" in failure_words(lost.failure) and CAUSE in failure_words(lost.failure)
        for lost in outcome.not_run
    )


@pytest.mark.usefixtures("broken")
def test_it_costs_its_own_lines(tmp_path: Path) -> None:
    for sort, lines in plugins().items():
        (line,) = [line for line in lines if line.name == "broken"]
        assert "acme-parts 0.3" in line.needs.state(), sort
        assert CAUSE in line.needs.state()
    assert "broken" in bakeoff("list", cwd=tmp_path).stdout.split()
    listing = bakeoff("list", "broken", cwd=tmp_path, COLUMNS="300")
    assert (listing.returncode, listing.stdout.count(CAUSE)) == (0, len(GROUPS))
    for sort in ("measures", "providers", "stores", "broken"):
        shown = bakeoff("options", sort, "--json", cwd=tmp_path)
        (entry, *_) = [one for one in json.loads(shown.stdout) if one["name"] == "broken"]
        assert CAUSE in entry["about"]
    assert [finding.failure.text.endswith(CAUSE) for finding in examine(["broken"]) if finding.failure] == [True]


@pytest.mark.usefixtures("broken")
def test_what_does_not_use_it_goes_on(tmp_path: Path) -> None:
    assert "broken" not in families()
    assert "numpy" in this_machine().versions
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    (tmp_path / "run").write_text("q Q0 a 1 2.0 x\n")
    for measure in ("ndcg@10", "ndcg_cut.5"):
        scored = bakeoff("score", "qrels", "run", "-m", measure, "--format", "json", cwd=tmp_path)
        assert scored.returncode == 0, scored.stderr
    refused = bakeoff("score", "qrels", "run", "-m", "broken@10", cwd=tmp_path)
    assert refused.returncode == 1
    assert CAUSE in refused.stderr


def test_a_broken_command_says_why_when_it_is_called(tmp_path: Path, broken: Path) -> None:
    path = f"{SOURCES}{os.pathsep}{broken}"
    assert bakeoff_process("--help", cwd=tmp_path, PYTHONPATH=path).returncode == 0
    called = bakeoff_process("broken", cwd=tmp_path, PYTHONPATH=path)
    assert called.returncode == 1
    assert "acme-parts 0.3" in called.stderr
    assert CAUSE in called.stderr


def test_what_is_no_adapter_costs_nothing_but_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads, and then it is a function that nobody can use, or one whose needs can't be asked for."""
    source = "def store(): ...\nclass Provider:\n    def needs():\n        raise OSError('no disk')\n"
    points = {"stores": "odd = odd_parts:store", "providers": "odd = odd_parts:Provider"}
    monkeypatch.syspath_prepend(str(install(tmp_path / "site", "odd", {"odd_parts": source}, points)))
    assert "numpy" in this_machine().versions
    (line,) = [line for line in plugins()["provider"] if line.name == "odd"]
    assert "OSError: no disk" in line.needs.state()
