"""Neighbours reproduced, on vectors in a plane whose angles give every neighbour by hand."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.paths import lineup_file
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.results.save import save
from bakeoff.results.schema import read_summary
from bakeoff.running.runner import Outcome, run
from bakeoff.tasks.kinds import load_kind
from bakeoff.tasks.kinds.reference import pair_similarities, sampled_pairs, spearman
from bakeoff_providers.errors import BakeoffError, InputError
from scipy import stats

# Degrees on the circle: neighbours are those at the smallest angle.
ADA = {"a": 0, "b": 10, "c": 25, "d": 50, "e": 90}
BASE = {"a": 0, "b": 50, "c": 25, "d": 10, "e": 90}  # b and d change places
TASK = """
[task]
name = "plane"
kind = "reference"
corpus = "ids.txt"
k = [1, 3]
{task}
[task.reference]
provider = "precomputed"
options = {{ path = "ada.npy", ids = "ids.txt" }}
"""
LINEUP = """
measures = ["recall@3", "mrr"]
primary = "recall@3"
rounds = 1
{task}
[[contender]]
provider = "precomputed"
label = "base"
store = "faiss"
options = {{ path = "base.npy", ids = "ids.txt" }}
[[contender]]
provider = "precomputed"
label = "same"
store = "faiss"
options = {{ path = "ada.npy", ids = "ids.txt" }}
"""


def _vectors(degrees: dict[str, int]) -> np.ndarray:
    angle = np.deg2rad(np.array(list(degrees.values()), dtype=np.float64))
    return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "ada.npy", _vectors(ADA))
    np.save(tmp_path / "base.npy", _vectors(BASE) * 3)  # length must not matter
    (tmp_path / "ids.txt").write_text("\n".join(ADA) + "\n")
    return tmp_path


def _run(folder: Path, task: str = "") -> Outcome:
    path = folder / "plane.toml"
    path.write_text(LINEUP.format(task=TASK.format(task=task)))
    return run(Lineup.read(path))


def test_the_truth_is_the_references_top_k_without_the_item(folder: Path) -> None:
    outcome = _run(folder)
    # by the angles: a sees b (10°), c (25°), d (50°); e sees d (40°), c (65°), b (80°)
    assert outcome.task.judgments["a"] == {"b": 1, "c": 1, "d": 1}
    assert outcome.task.judgments["e"] == {"d": 1, "c": 1, "b": 1}
    assert all(query not in grades for query, grades in outcome.task.judgments.items())
    for row in outcome.ran:
        assert all(query not in ranking.ids for query, ranking in row.rankings.items())


def test_a_candidate_with_the_same_vectors_reproduces_all(folder: Path) -> None:
    figures = _run(folder).extras.figures["same+faiss"]
    assert all(value["mean"] == 1 for at in figures["at"].values() for value in at.values())
    assert figures["similarity"] == {"spearman": pytest.approx(1), "mae": pytest.approx(0), "pairs": 10}


def test_measures_are_what_hand_work_says(folder: Path) -> None:
    figures = _run(folder).extras.figures["base+faiss"]
    # Top 1 by ada: a→b, b→a, c→b, d→c, e→d. By base (b at 50°, d at 10°): a→d, b→c, c→d, d→a, e→b. None agrees.
    assert figures["at"]["1"]["recall"]["mean"] == 0
    # Top 3 by ada: a bcd, b acd, c bad, d cbe, e dcb.  By base: a dcb, b cde, c dab, d acb, e bcd.
    overlap = np.array([3, 2, 3, 2, 3]) / 3
    assert figures["at"]["3"]["recall"]["mean"] == pytest.approx(overlap.mean())
    assert figures["at"]["3"]["recall"]["std"] == pytest.approx(overlap.std(ddof=1))
    # Places of hits: a 123; b c and d at 1, 2; c 123; d a misses, so 2, 3; e 123
    over_relevant = np.array([1, (1 + 1) / 3, 1, (1 / 2 + 2 / 3) / 3, 1])
    over_found = np.array([1, 1, 1, (1 / 2 + 2 / 3) / 2, 1])
    assert figures["at"]["3"]["map"]["mean"] == pytest.approx(over_relevant.mean())
    assert figures["at"]["3"]["map(over=found)"]["mean"] == pytest.approx(over_found.mean())
    assert figures["at"]["3"]["mrr"]["mean"] == pytest.approx(np.mean([1, 1, 1, 1 / 2, 1]))
    ideal = 1 + 1 / np.log2(3) + 1 / 2
    ndcg = np.array([1, (1 + 1 / np.log2(3)) / ideal, 1, (1 / np.log2(3) + 1 / 2) / ideal, 1])
    assert figures["at"]["3"]["ndcg"]["mean"] == pytest.approx(ndcg.mean())


def test_similarities_against_scipy(folder: Path) -> None:
    figures = _run(folder).extras.figures["base+faiss"]["similarity"]
    ada, base = _vectors(ADA), _vectors(BASE)
    upper = np.triu_indices(5, 1)
    a, b = (ada @ ada.T)[upper], (base @ base.T)[upper]
    assert figures["mae"] == pytest.approx(np.abs(a - b).mean(), abs=1e-6)
    assert figures["spearman"] == pytest.approx(stats.spearmanr(np.round(a, 5), np.round(b, 5)).statistic)


def test_spearman_and_pairs_against_scipy() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 9, 200).astype(float), rng.integers(0, 9, 200).astype(float)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    assert spearman(np.ones(4), np.arange(4.0)) is None
    first, second = sampled_pairs(1000, 5000, seed=1)
    assert len(first) == 5000
    assert (first != second).all()
    assert second.max() < 1000
    vectors = rng.normal(size=(1000, 3)).astype(np.float32)
    assert pair_similarities(vectors, first, second) == pytest.approx(
        (vectors[first] * vectors[second]).sum(axis=1), abs=1e-5
    )


def test_grades_by_place(folder: Path) -> None:
    outcome = _run(folder, 'gain = "rank"')
    assert outcome.task.judgments["a"] == {"b": 3, "c": 2, "d": 1}


def test_the_sample_is_seeded(folder: Path) -> None:
    def drawn(seed: int) -> list[str]:
        source = {"kind": "reference", "corpus": "ids.txt", "k": [1], "n": 3, "seed": seed,
                  "reference": {"provider": "fake"}}  # fmt: skip
        return [query.id for query in load_kind(source, folder).task().queries]

    assert len(drawn(42)) == 3
    assert drawn(42) == drawn(42)
    assert len({tuple(drawn(seed)) for seed in range(20)}) > 1


def test_the_files_say_what_the_table_says(folder: Path) -> None:
    target = save(_run(folder), folder / "results")
    render(target, pictures=True)
    rows = list(csv.DictReader(io.StringIO((target / "base+faiss_results.csv").read_text())))
    assert [row["k"] for row in rows] == ["1", "3"]
    assert float(rows[1]["recall_mean"]) == pytest.approx(13 / 15)
    assert (target / "metrics_vs_k.png").read_bytes().startswith(b"\x89PNG")
    (table,) = [section for section in read_summary(target).sections if "reproduced" in section.title]
    assert table.rows[1][:3] == ["base+faiss", "3", "0.867±0.183"]
    assert "0.867±0.183" in (target / "matrix.md").read_text()
    assert "0.867±0.183" in (target / "evaluation_report.html").read_text()


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("k = [5]", "the top 5 of others needs more than 5 documents"),
        ("k = [0]", "k: 0 is not from 1"),
        ("n = 0", "n: 0 is not from 1"),
        ('gain = "log"', "gain: 'log' is not one of: binary, rank"),
        ("colour = 1", "no option 'colour'"),
    ],
)
def test_bad_settings_are_named(folder: Path, task: str, said: str) -> None:
    path = folder / "plane.toml"
    text = LINEUP.format(task=TASK.format(task=task))
    path.write_text(text.replace("k = [1, 3]\n", "") if "k = " in task else text)
    lineup = Lineup.read(path)
    with pytest.raises(InputError, match=said):
        run(lineup)


def test_without_the_reference_nothing_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    path = folder / "plane.toml"
    task = TASK.format(task="").replace('"precomputed"\noptions = { path = "ada.npy", ids = "ids.txt" }', '"voyage"')
    path.write_text(LINEUP.format(task=task))
    with pytest.raises(BakeoffError, match="the reference voyage can't run: VOYAGE_API_KEY is not set"):
        run(Lineup.read(path))


def test_the_built_in_example_is_valid() -> None:
    lineup = Lineup.read(lineup_file(Path("neighbours")))
    task = load_kind(lineup.task, lineup.folder).task()
    assert (len(task.documents), len(task.queries)) == (54, 54)
    assert {query.category for query in task.queries} == {"Utah", "California"}
