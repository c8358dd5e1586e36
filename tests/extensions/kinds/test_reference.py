"""Neighbours reproduced, on vectors in a plane whose angles give every neighbour by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.paths import lineup_file
from bakeoff.extensions.kinds.reference import _std, pair_similarities, sample_pairs, spearman
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.results.save import save
from bakeoff.results.schema import read_summary
from bakeoff.running.plan import plan
from bakeoff.running.runner import Outcome, run
from bakeoff.running.settings import Settings
from bakeoff.tasks.kinds import load_kind
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.errors import BakeoffError, InputError
from scipy import stats

from tests.errors import refuses
from tests.facts import arguments, section

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
    first, second = sample_pairs(1000, 5000, seed=1)
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


def test_the_sample_is_numpys_over_rows_in_file_order(folder: Path) -> None:
    # np.random.seed(42); np.random.choice(12, 5, replace=False) gives 10, 9, 0, 8, 5 in every numpy
    names = [f"z{99 - row}" for row in range(12)]  # the order of the ids is not that of the rows
    (folder / "many.txt").write_text("\n".join(names))
    source = {"kind": "reference", "corpus": "many.txt", "k": [1], "n": 5, "seed": 42,
              "reference": {"provider": "fake"}}  # fmt: skip
    drawn = [query.id for query in load_kind(source, folder).task().queries]
    assert drawn == [names[row] for row in (0, 5, 8, 9, 10)]
    assert len(load_kind({**source, "n": 500}, folder).task().queries) == 12


def test_the_files_say_what_the_table_says(folder: Path) -> None:
    target = save(_run(folder), folder / "results")
    render(target, pictures=True)
    rows = list(csv.DictReader(io.StringIO((target / "base_results.csv").read_text())))
    assert [row["k"] for row in rows] == ["1", "3"]
    assert float(rows[1]["recall_mean"]) == pytest.approx(13 / 15)
    # hits at 123, 12, 123, 23, 123 of three: the mean of the precisions at hits, and their sum over three
    assert float(rows[1]["map_mean"]) == pytest.approx((4 + (1 / 2 + 2 / 3) / 2) / 5)
    assert float(rows[1]["map_over_relevant_mean"]) == pytest.approx((3 + 2 / 3 + (1 / 2 + 2 / 3) / 3) / 5)
    assert (target / "metrics_vs_k.png").read_bytes().startswith(b"\x89PNG")
    table = section(read_summary(target).sections, "kinds.neighbours")
    recall = [3 / 3, 2 / 3, 3 / 3, 2 / 3, 3 / 3]
    assert table.rows[1][:3] == ["base+faiss", 3, pytest.approx([np.mean(recall), np.std(recall, ddof=1)])]
    assert "0.867±0.183" in (target / "matrix.md").read_text()
    assert "0.867±0.183" in (target / "evaluation_report.html").read_text()


def test_a_model_in_two_stores_has_a_csv_for_each(folder: Path) -> None:
    path = folder / "plane.toml"
    path.write_text(LINEUP.format(task=TASK.format(task="")).replace('store = "faiss"', 'store = ["faiss", "hnswlib"]'))
    names = run(Lineup.read(path)).extras.files
    assert set(names) == {
        f"{model}+{store}_results.csv" for model in ("base", "same") for store in ("faiss", "hnswlib")
    }


ARRAYS = """
measures = ["recall@10"]
primary = "recall@10"
rounds = 1
[task]
kind = "reference"
corpus = "ada.npy"
n = 50
improvement_over = "base_st"
validation = "val.csv"
[task.reference]
provider = "precomputed"
options = { path = "ada.npy" }
[[contender]]
provider = "precomputed"
label = "base_st"
store = "faiss"
options = { path = "base.npy" }
[[contender]]
provider = "precomputed"
label = "finetuned_st"
store = "faiss"
options = { path = "finetuned.npy" }
"""


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    """Three arrays without any ids, and forty pairs of rows with the reference's own similarities."""
    rng = np.random.default_rng(7)
    ada = rng.normal(size=(200, 16)).astype(np.float32)
    np.save(tmp_path / "ada.npy", ada)
    for name, noise in (("base", 2.0), ("finetuned", 0.7)):
        np.save(tmp_path / f"{name}.npy", (ada + noise * rng.normal(size=ada.shape))[:, :12].astype(np.float32))
    pairs = rng.permutation(200)[:80].reshape(40, 2)
    targets = [_cosines(ada)[a, b] for a, b in pairs]
    lines = [f"{a},{b},{target!r}" for (a, b), target in zip(pairs.tolist(), map(float, targets), strict=True)]
    (tmp_path / "val.csv").write_text("\n".join(["first,second,ada_sim", *lines]))
    (tmp_path / "arrays.toml").write_text(ARRAYS)
    return tmp_path


def _cosines(vectors: np.ndarray) -> np.ndarray:
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    cosines: np.ndarray = unit @ unit.T
    return cosines


def _by_hand(folder: Path, name: str, k: int) -> dict[str, float]:
    """The four figures at one k over numpy's own sample, from full similarity matrices."""
    tops = []
    for file in ("ada", name):
        cosines = _cosines(np.load(folder / f"{file}.npy"))
        np.fill_diagonal(cosines, -np.inf)
        tops.append(np.argsort(-cosines, axis=1)[:, :k])
    np.random.seed(42)
    figures: dict[str, list[float]] = {"recall": [], "ndcg": [], "mrr": [], "map": []}
    for row in np.random.choice(200, 50, replace=False):
        hit = np.isin(tops[1][row], tops[0][row])
        places = np.flatnonzero(hit) + 1
        figures["recall"].append(len(places) / k)
        figures["ndcg"].append(sum(1 / np.log2(places + 1)) / sum(1 / np.log2(np.arange(2, k + 2))))
        figures["mrr"].append(1 / places[0] if len(places) else 0)
        figures["map"].append(float(np.mean(np.arange(1, len(places) + 1) / places)) if len(places) else 0)
    return {name: float(np.mean(values)) for name, values in figures.items()}


def test_arrays_without_ids_give_the_documents_figures(arrays: Path) -> None:
    target = save(run(Lineup.read(arrays / "arrays.toml")), arrays / "results")
    for model, file in (("base_st", "base"), ("finetuned_st", "finetuned")):
        rows = list(csv.DictReader(io.StringIO((target / f"{model}_results.csv").read_text())))
        assert [*rows[0]][:9] == ["k", *(f"{m}_{p}" for m in ("recall", "ndcg", "mrr", "map") for p in ("mean", "std"))]
        for row in rows:
            for name, value in _by_hand(arrays, file, int(row["k"])).items():
                assert float(row[f"{name}_mean"]) == pytest.approx(value, abs=1e-9), (model, row["k"], name)


def test_improvement_is_relative_to_the_named_contender(arrays: Path) -> None:
    outcome = run(Lineup.read(arrays / "arrays.toml"))
    base, tuned = _by_hand(arrays, "base", 10), _by_hand(arrays, "finetuned", 10)
    found = outcome.extras.figures["finetuned_st+faiss"]["improvement"]["10"]
    assert found["recall"] == pytest.approx(tuned["recall"] / base["recall"] - 1)
    assert found["map(over=found)"] == pytest.approx(tuned["map"] / base["map"] - 1)
    assert "improvement" not in outcome.extras.figures["base_st+faiss"]
    table = section(outcome.extras.sections, "kinds.improvement")
    assert [row[:2] for row in table.rows] == [["finetuned_st+faiss", k] for k in (1, 3, 5, 10)]
    assert table.rows[3][2] == pytest.approx(tuned["recall"] / base["recall"] - 1)


def test_a_base_without_any_hit_has_no_improvement(folder: Path) -> None:
    figures = _run(folder, 'improvement_over = "base"').extras.figures["same+faiss"]["improvement"]
    assert figures["1"]["recall"] is None  # base finds none of the nearest neighbours
    assert figures["3"]["recall"] == pytest.approx(15 / 13 - 1)


@pytest.mark.parametrize(("name", "number"), [("bse", ""), ("precomputed", "2")])
def test_a_base_that_is_no_contender_or_several_is_named(folder: Path, name: str, number: str) -> None:
    with refuses(InputError, f"'{name}'", number, place="improvement_over"):
        _run(folder, f'improvement_over = "{name}"')


def test_validation_pairs_by_id_against_scipy(arrays: Path) -> None:
    figures = run(Lineup.read(arrays / "arrays.toml")).extras.figures
    rows = list(csv.DictReader(io.StringIO((arrays / "val.csv").read_text())))
    targets = [float(row["ada_sim"]) for row in rows]
    for model, file in (("base_st", "base"), ("finetuned_st", "finetuned")):
        cosines = _cosines(np.load(arrays / f"{file}.npy"))
        mine = [cosines[int(row["first"]), int(row["second"])] for row in rows]
        expected = stats.spearmanr(mine, targets).statistic
        assert figures[f"{model}+faiss"]["validation"] == {"spearman": pytest.approx(expected), "pairs": 40}


TEXTS = [("copper mine", "open pit", 0.8), ("copper mine", "salt lake", 0.3), ("lake boats", "salt lake", 0.7)]


def test_validation_pairs_of_texts_are_embedded(folder: Path) -> None:
    pairs = [{"a": a, "b": b, "target": target} for a, b, target in TEXTS]
    (folder / "val.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    path = folder / "plane.toml"
    items = [{"id": str(number), "text": f"text {number}"} for number in range(5)]
    (folder / "items.json").write_text(json.dumps(items))
    lineup = (
        'measures = ["recall@3"]\nrounds = 1\n[task]\nkind = "reference"\ncorpus = "items.json"\nk = [3]\n'
        'validation = "val.jsonl"\nreference = { provider = "tfidf" }\n'
        '[[contender]]\nprovider = "fake"\nstore = ["faiss", "hnswlib"]\n'
        '[[contender]]\nprovider = "precomputed"\nlabel = "base"\nstore = "faiss"\noptions = { path = "base.npy" }\n'
    )
    path.write_text(lineup)
    outcome = run(Lineup.read(path))
    fake = PROVIDERS.create("fake")
    mine = [_cosines(fake.embed([a, b], Role.DOCUMENT).vectors)[0, 1] for a, b, _ in TEXTS]
    expected = {"spearman": pytest.approx(stats.spearmanr(mine, [0.8, 0.3, 0.7]).statistic), "pairs": 3}
    figures = outcome.extras.figures
    assert figures["fake+faiss"]["validation"] == figures["fake+hnswlib"]["validation"] == expected
    assert figures["base+faiss"]["validation"] == {"spearman": None, "pairs": 3}
    table = section(outcome.extras.sections, "kinds.validation")
    assert [one["label"] for one in arguments(table.notes, "kinds.validation_failed")] == ["base+faiss"]
    # five documents, which ask as items, and the four texts of the pairs; the reference embeds no pairs
    assert {plan.rows[0]: plan.texts for plan in plan(Lineup.read(path), Settings())} == {
        "tfidf": 5, "fake+faiss": 9, "base+faiss": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b,target\na,b,0.5\na,copper,0.2\n", "'copper'"),
        ("a,b,target\na,b,high\n", "val.csv"),
        ("a,b,target\na,b,nan\n", "val.csv"),
        ("a,b,0.5\na,c,0.2\n", "val.csv"),
        ("a,b\na,c\n", "val.csv"),
        ("a,b,target\na,,0.2\n", "val.csv"),
        ("a,b,target\na,c,0.2\n", "val.csv"),
    ],
)
def test_a_wrong_file_of_pairs_is_named_before_anything_runs(folder: Path, content: str, said: str) -> None:
    (folder / "val.csv").write_text(content)
    with refuses(InputError, said, file="val.csv"):
        load_kind({"kind": "reference", "corpus": "ids.txt", "k": [1], "validation": "val.csv",
                   "reference": {"provider": "fake"}}, folder).task()  # fmt: skip


def test_spreads_are_over_n_minus_one() -> None:
    """The framework's example, 117 of 500 right at k = 1, is shown as 0.234±0.424; over n it would be 0.423."""
    hits = np.repeat([1.0, 0.0], [117, 383])
    assert f"{hits.mean():.3f}±{_std(hits):.3f}" == "0.234±0.424"


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("k = [5]", "k"),
        ("k = [0]", "k"),
        ("n = 0", "n"),
        ('gain = "log"', "'log'"),
        ("colour = 1", "'colour'"),
    ],
)
def test_bad_settings_are_named(folder: Path, task: str, said: str) -> None:
    path = folder / "plane.toml"
    text = LINEUP.format(task=TASK.format(task=task))
    path.write_text(text.replace("k = [1, 3]\n", "") if "k = " in task else text)
    lineup = Lineup.read(path)
    with refuses(InputError, said):
        run(lineup)


def test_without_the_reference_nothing_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    path = folder / "plane.toml"
    task = TASK.format(task="").replace('"precomputed"\noptions = { path = "ada.npy", ids = "ids.txt" }', '"voyage"')
    path.write_text(LINEUP.format(task=task))
    with refuses(BakeoffError, "VOYAGE_API_KEY"):
        run(Lineup.read(path))


def test_the_built_in_example_is_valid() -> None:
    lineup = Lineup.read(lineup_file(Path("neighbours")))
    task = load_kind(lineup.task, lineup.folder).task()
    assert (len(task.documents), len(task.queries)) == (54, 54)
    assert {query.category for query in task.queries} == {"Utah", "California"}
