"""Item → item in two spaces and their fusion, on angles whose order can be read off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.core.paths import lineup_file, root
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.running.runner import Outcome, run
from bakeoff.tasks.kinds import load_kind
from bakeoff_providers.errors import InputError

# Degrees on the circle in each space; b asks like all others, and the order of angles is the order of similarity.
ANCHOR = {"a": 0, "b": 10, "c": 25, "d": 55}
FEEL = {"a": 0, "b": 80, "c": 30, "d": 10}
TRUTH = [
    {"id": "a", "overall": ["b", "d"], "feel": ["d", "c"]},
    {"id": "b", "overall": ["a", "c"], "feel": ["c", "d"]},
]
LINEUP = """
measures = ["ndcg(gain=exp)@2", "mrr"]
rounds = 2
[task]
name = "four"
kind = "ordered"
items = "items.json"
truth = "truth.json"
length = 2
k = [1, 2, 3]
cluster = "group"
texts = []
facets = { anchor = "overall", feel = "feel" }
overall = "anchor"
[[contender]]
label = "DenseAnchor"
provider = "precomputed"
field = "anchor"
store = "faiss"
options = { path = "anchor.npy", ids = "ids.txt" }
[[contender]]
label = "DenseFeel"
provider = "precomputed"
field = "feel"
store = "faiss"
options = { path = "feel.npy", ids = "ids.txt" }
[[fusion]]
label = "rrf"
of = ["DenseAnchor", "DenseFeel"]
weights = [1, 3]
c = 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, degrees in (("anchor", ANCHOR), ("feel", FEEL)):
        angle = np.deg2rad(np.array(list(degrees.values()), dtype=np.float64))
        np.save(tmp_path / f"{name}.npy", np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32))
    (tmp_path / "ids.txt").write_text("a\nb\nc\nd\n")
    items = [{"id": name, "title": name, "text": name, "group": "x" if name == "a" else "y"} for name in "abcd"]
    (tmp_path / "items.json").write_text(json.dumps(items))
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    (tmp_path / "four.toml").write_text(LINEUP)
    return tmp_path


def _run(folder: Path) -> Outcome:
    return run(Lineup.read(folder / "four.toml"))


def test_every_space_ranks_all_others_by_angle(folder: Path) -> None:
    rankings = {e.contender.label: {q: r.ids for q, r in e.rankings.items()} for e in _run(folder).ran}
    assert rankings["DenseAnchor+faiss"] == {"a": ("b", "c", "d"), "b": ("a", "c", "d")}
    assert rankings["DenseFeel+faiss"] == {"a": ("d", "c", "b"), "b": ("c", "d", "a")}
    # c = 1, weights 1 and 3. a: b 1/2 + 3/4, c 1/3 + 3/3, d 1/4 + 3/2. b: a 1/2 + 3/4, c 1/3 + 3/2, d 1/4 + 3/3
    assert rankings["rrf"] == {"a": ("d", "c", "b"), "b": ("c", "a", "d")}


def test_the_report_is_what_hand_work_says(folder: Path) -> None:
    target = save(_run(folder), folder / "results")
    report = json.loads((target / "ordered_report_k2.json").read_text())
    assert list(report) == [
        "K", "weights", "c", "DenseAnchor", "DenseFeel", "combined_weighted_rrf", "per_query",
    ]  # fmt: skip
    assert (report["K"], report["c"], report["weights"]) == (2, 1, {"DenseAnchor": 1, "DenseFeel": 3})
    # grades 2 and 1 have the gains 3 and 1, so the ideal of two places is 3 + 1/log2(3)
    ideal = 3 + 1 / np.log2(3)
    # DenseAnchor by `overall`: a finds b first and misses d (third): 3; b finds a, c as listed: ideal
    anchor = report["per_query"]["a"]["DenseAnchor"]
    assert anchor == {"hits": 1, "rr": 1.0, "ndcg": pytest.approx(3 / ideal), "topK": ["b", "c"]}
    assert report["DenseAnchor"] == {"mean_hits": 1.5, "mean_mrr": 1, "mean_ndcg": pytest.approx((3 / ideal + 1) / 2)}
    # DenseFeel by its own list `feel`: both as listed
    assert report["DenseFeel"] == {"mean_hits": 2, "mean_mrr": 1, "mean_ndcg": pytest.approx(1)}
    # the fusion by `overall` only: a has d (gain 1) first, b only third; b has c (1) first, a (3) second
    assert report["per_query"]["a"]["combined_weighted_rrf"] == {
        "hits": 1, "rr": 1.0, "ndcg": pytest.approx(1 / ideal), "topK": ["d", "c"],
    }  # fmt: skip
    assert report["combined_weighted_rrf"]["mean_ndcg"] == pytest.approx((1 / ideal + (1 + 3 / np.log2(3)) / ideal) / 2)
    assert {file.name for file in target.glob("ordered_report_*")} == {f"ordered_report_k{k}.json" for k in (1, 2, 3)}


def test_random_is_the_expectation_over_all_others(folder: Path) -> None:
    outcome = _run(folder)
    # two of the three others are in the list: the first is one of them in 2 of 3 orders, else the second is
    expected = 2 / 3 + 1 / 3 * 1 / 2
    baseline = {str(measure): values for measure, values in outcome.baselines["random"].items()}
    assert baseline["mrr"] == pytest.approx([expected, expected])
    table = outcome.extras.sections[0]
    assert ["random", "any", "1", "0.667", "0.667", f"{(3 + 1) / 3 / 3:.3f}"] in table.rows


def test_clusters_are_told_apart(folder: Path) -> None:
    table = _run(folder).extras.sections[2]
    assert [row[:2] for row in table.rows] == [["x", "1"], ["y", "1"]]
    assert table.rows[1][2] == "1.000"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t[0]["overall"].pop(), r"entry 1, overall: the list of 'a' has 1 items"),
        (lambda t: t[0]["overall"].append("c"), r"the list of 'a' has 3 items"),
        (lambda t: t[0].pop("feel"), r"entry 1, feel: the list of 'a' is missing"),
        (lambda t: t[0].update(overall=["a", "b"]), "'a' is in its own list"),
        (lambda t: t[0].update(overall=["b", "b"]), "'b' appears twice in the list of 'a'"),
        (lambda t: t[0].update(overall=["b", "z"]), "unknown item 'z' in the list of 'a'"),
        (lambda t: t[0].update(id="z"), r"entry 1: unknown item 'z'"),
        (lambda t: t[0].pop("id"), r"entry 1: an entry without 'id'"),
        (lambda t: t.append(t[0]), r"entry 3: 'a' has two entries"),
        (lambda t: t.clear(), "there is no entry"),
    ],
)
def test_every_rule_of_the_lists_is_checked(folder: Path, change: Any, said: str) -> None:
    truth = json.loads(json.dumps(TRUTH))
    change(truth)
    (folder / "truth.json").write_text(json.dumps(truth))
    with pytest.raises(InputError, match=said):
        _run(folder)


def test_the_films_are_fifty_with_three_texts_and_three_lists() -> None:
    lineup = Lineup.read(lineup_file(Path("films")))
    task = load_kind(lineup.task, lineup.folder).task()
    assert len(task.documents) == len(task.queries) == 50
    assert all(document.id.startswith("tt") and len(document.id) == 9 for document in task.documents)
    texts = [text for document in task.documents for text in document.fields.values()]
    assert len(texts) == len(set(texts)) == 150
    assert all(sorted(grades.values()) == [1, 2, 3, 4, 5] for grades in task.judgments.values())
    truth = json.loads((root() / "queries" / "films" / "similar_films.json").read_text())
    assert set(truth[0]) == {
        "movie_id",
        *(f"5_most_similar_movies_{facet}_ordered" for facet in ("overall", "content", "vibes")),
    }
