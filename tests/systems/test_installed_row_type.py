"""A row type of another package: one class and one entry point, and a line-up, a run and a result know it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.results.result import load
from bakeoff.results.save import save
from bakeoff.results.summary import summarise
from bakeoff.running.plan import plan
from bakeoff.running.runner import Settings, run
from bakeoff.systems import SYSTEMS
from bakeoff_providers.errors import InputError

from tests.native_task import native_files, write_lineup

MODULE = """
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bakeoff.core.ranking import make_ranking
from bakeoff.search.answer import Answer, Searcher
from bakeoff.systems.base import Build, Prepared, System


class Fixed(Searcher):
    def __init__(self, ids):
        self.ids = ids

    def ask(self, query):
        return Answer(make_ranking((document, float(-place)) for place, document in enumerate(self.ids)), 1)


@dataclass(frozen=True)
class FixedOrder(System):
    '''The documents in the same order for every query.'''

    row_type: ClassVar[str] = "fixed_order"
    backwards: Annotated[bool, "from the last document to the first"] = False

    def prepare(self, run, scratch, ready):
        ids = sorted((document.id for document in run.task.documents), reverse=self.backwards)
        return Prepared(self, Fixed(ids), Build(seconds=0.0))
"""
CONTENDERS = (
    '[[contender]]\nsystem = "fixed_order"\n'
    '[[contender]]\nsystem = "fixed_order"\nlabel = "last first"\noptions = { backwards = true }\n'
    'rerank = { provider = "fake", depth = 2 }\n'
)


def _lineup(folder: Path, contenders: str = CONTENDERS) -> Path:
    return write_lineup(folder, native_files(), head='measures = ["mrr"]\nrounds = 1', contenders=contenders)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    info = site / "fixed_order-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "fixed_order.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-order\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bakeoff.systems]\nfixed_order = fixed_order:FixedOrder\n")
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.usefixtures("installed")
def test_it_is_read_planned_run_and_written_back(tmp_path: Path) -> None:
    assert "fixed_order" in SYSTEMS.names()
    lineup = Lineup.read(_lineup(tmp_path))
    assert [row.label for row in lineup.contenders] == ["fixed_order", "last-first", "last-first+fake"]
    (second,) = plan(lineup, Settings())
    assert second.rows == ("last-first+fake",)
    outcome = run(lineup)
    assert outcome.not_run == []
    first, last, reranked = outcome.ran
    assert {ranking.ids for ranking in first.rankings.values()} == {("1", "2", "3")}
    assert {ranking.ids for ranking in last.rankings.values()} == {("3", "2", "1")}
    assert {ranking.ids[2:] for ranking in reranked.rankings.values()} == {("1",)}
    row = summarise(outcome).rows[0]
    assert (row.row_type, row.model, row.local) == ("fixed_order", "fixed_order", True)
    assert row.cost is not None
    assert row.cost.usd == 0.0
    (tmp_path / "again.toml").write_text(lineup_text(lineup.to_dict()))
    assert Lineup.read(tmp_path / "again.toml").contenders == lineup.contenders


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ('system = "fixed_order"\nstore = "faiss"\n', "contender[0], store"),
        ('system = "fixed_order"\noptions = { forwards = true }\n', "contender[0]"),
        ('system = "fixed_order"\noptions = { backwards = "very" }\n', "contender[0], backwards"),
        ('system = "fixed_ordre"\n', "contender[0]"),
        ('system = "dense"\n', "contender[0], system"),
    ],
)
def test_what_is_wrong_with_it_is_refused(tmp_path: Path, entry: str, place: str) -> None:
    with pytest.raises(InputError) as raised:
        Lineup.read(_lineup(tmp_path, f"[[contender]]\n{entry}"))
    assert raised.value.place == place


@pytest.mark.usefixtures("installed")
def test_its_result_opens_where_it_is_not_installed(tmp_path: Path) -> None:
    folder = save(run(Lineup.read(_lineup(tmp_path))), tmp_path / "results")
    code = (
        "import sys\nfrom bakeoff.lineup.lineup import lineup_text\nfrom bakeoff.results.result import load\n"
        "from bakeoff.systems import SYSTEMS\nassert 'fixed_order' not in SYSTEMS.names()\n"
        "summary = load(sys.argv[1]).summary\nprint([row.row_type for row in summary.rows])\n"
        "print(lineup_text(summary.lineup))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    types, _, text = done.stdout.partition("\n")
    assert types == str([row.row_type for row in load(folder).summary.rows])
    assert "fixed_order" in types
    assert 'system = "fixed_order"' in text
    shown = subprocess.run(
        [sys.executable, "-m", "bakeoff", "show", str(folder)], capture_output=True, text=True, check=True
    )
    assert "fixed_order" in shown.stdout
