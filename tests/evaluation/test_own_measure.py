"""A measure from another package: one class and one entry point, and every part of the harness knows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.evaluation.measures import Measure, families
from bakeoff.evaluation.measures.grammar import measures_of
from bakeoff.evaluation.score import join, random_expectation, score_queries
from bakeoff_providers.errors import InputError

from tests.errors import refuses

MODULE = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bakeoff.evaluation.measures import Measure


@dataclass(frozen=True)
class RankBiased(Measure):
    name: ClassVar = "decay"
    title: ClassVar = "Decay"
    trec_cut_name: ClassVar = "decay_cut"

    p: float = 0.8
    rel: int | None = None

    def values(self, run):
        hits = run.relevant(self.rel)
        weights = self.p ** (hits.ranks - 1.0) * (hits.ranks <= run.cut(self.k))
        per_row = np.bincount(hits.rows, weights, len(hits.total))
        return (1 - self.p) * per_row

    def expected(self, order):
        return order.relevant(self.rel) / order.documents * (1 - self.p ** order.places(self.k))
"""


@pytest.fixture
def decay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rank_biased.py").write_text(MODULE)
    info = tmp_path / "rank_biased-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rank-biased\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bakeoff.measures]\ndecay = rank_biased:RankBiased\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("decay")
def test_it_is_parsed_printed_and_listed() -> None:
    assert "decay" in families()
    measure = Measure.parse("decay(p=0.5)@10")
    assert (str(measure), measure.label) == ("decay(p=0.5)@10", "Decay@10 (p = 0.5)")
    assert measure == Measure.of("decay", 10, p=0.5)
    assert str(Measure.parse("Decay(p=0.8, rel=2)")) == "decay(rel=2)"
    assert [str(each) for each in measures_of("decay_cut.5,10")] == ["decay@5", "decay@10"]
    with refuses(InputError, "'high'"):
        Measure.parse("decay(p=high)")


@pytest.mark.usefixtures("decay")
def test_it_is_worked_out_beside_ours() -> None:
    """By hand: hits at ranks 1 and 3 with p = 0.5 give 0.5 × (1 + 0.25)."""
    measures = [Measure.parse(text) for text in ("decay(p=0.5)", "decay(p=0.5)@2", "p@2")]
    judgments = {"q": {"a": 1, "c": 2}}
    ranked = join({"q": Ranking(("a", "b", "c", "d"), (4, 3, 2, 1))}, judgments, ["q"])
    assert [score_queries(ranked, measures)[measure][0] for measure in measures] == [0.625, 0.5, 0.5]
    expected = random_expectation(judgments, ["q"], 4, measures[:1])
    assert expected[measures[0]].tolist() == pytest.approx([2 / 4 * 0.5 * (1 + 0.5 + 0.25 + 0.125)])


def test_without_its_package_it_is_unknown() -> None:
    with refuses(InputError, "'decay'"):
        Measure.parse("decay(p=0.5)@10")
