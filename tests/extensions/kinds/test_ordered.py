"""Item → item in two spaces and their fusion, on angles whose order can be read off."""

from __future__ import annotations

import datetime
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

from tests.cli.test_wrong_arguments import bakeoff
from tests.errors import refuses
from tests.facts import arguments

# Degrees on the circle in each space; b asks like all others, and the order of angles is the order of similarity.
ANCHOR = {"a": 0, "b": 10, "c": 25, "d": 55}
FEEL = {"a": 0, "b": 80, "c": 30, "d": 10}
TRUTH = [
    {"id": "a", "overall": ["b", "d"], "feel": ["d", "c"]},
    {"id": "b", "overall": ["a", "c"], "feel": ["c", "d"]},
    {"id": "c", "overall": ["b", "a"], "feel": ["d", "a"]},
    {"id": "d", "overall": ["c", "b"], "feel": ["a", "c"]},
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
    rankings = {e.contender.label: {q: "".join(r.ids) for q, r in e.rankings.items()} for e in _run(folder).ran}
    assert rankings["DenseAnchor+faiss"] == {"a": "bcd", "b": "acd", "c": "bad", "d": "cba"}
    assert rankings["DenseFeel+faiss"] == {"a": "dcb", "b": "cda", "c": "dab", "d": "acb"}
    # c = 1, weights 1 and 3. a: b 1/2 + 3/4, c 1/3 + 3/3, d 1/4 + 3/2. b: a 1/2 + 3/4, c 1/3 + 3/2, d 1/4 + 3/3
    # c: b 1/2 + 3/4, a 1/3 + 3/3, d 1/4 + 3/2. d: c 1/2 + 3/3, b 1/3 + 3/4, a 1/4 + 3/2
    assert rankings["rrf"] == {"a": "dcb", "b": "cad", "c": "dab", "d": "acb"}


def test_weights_that_are_given_are_called_so(folder: Path) -> None:
    assert arguments(_run(folder).warnings, "weights_as_given") == [{"labels": ["rrf"]}]
    alike = LINEUP.replace("weights = [1, 3]", "weights = [2, 2]")
    (folder / "four.toml").write_text(alike)
    assert arguments(_run(folder).warnings, "weights_as_given") == []


def test_the_report_is_what_hand_work_says(folder: Path) -> None:
    target = save(_run(folder), folder / "results")
    report = json.loads((target / "ordered_report_k2.json").read_text())
    # grades 2 and 1 have the gains 3 and 1, so the ideal of two places is 3 + 1/log2(3)
    ideal = 3 + 1 / np.log2(3)
    # DenseAnchor by `overall`: a finds b first and misses d (third): 3; b, c and d find theirs as listed: ideal
    anchor = report["per_query"]["a"]["DenseAnchor"]
    assert anchor == {"hits": 0.5, "rr": 1.0, "ndcg": pytest.approx(3 / ideal), "topK": ["b", "c"]}
    assert report["DenseAnchor"] == {"mean_hits": 0.875, "mean_mrr": 1, "mean_ndcg": pytest.approx((3 / ideal + 3) / 4)}
    # DenseFeel by its own list `feel`: all as listed
    assert report["DenseFeel"] == {"mean_hits": 1, "mean_mrr": 1, "mean_ndcg": pytest.approx(1)}
    # the fusion by `overall` only: a has d (gain 1) first, b only third; b has c (1) first, a (3) second;
    # c has a (1) second; d has c (3) second
    assert report["per_query"]["a"]["combined"] == {
        "hits": 0.5, "rr": 1.0, "ndcg": pytest.approx(1 / ideal), "topK": ["d", "c"],
    }  # fmt: skip
    ndcg = np.array([1, 1 + 3 / np.log2(3), 1 / np.log2(3), 3 / np.log2(3)]) / ideal
    assert report["combined_weighted_rrf"] == {
        "mean_hits": 0.625, "mean_mrr": 0.75, "mean_ndcg": pytest.approx(ndcg.mean())
    }  # fmt: skip
    assert {file.name for file in target.glob("ordered_report_*")} == {f"ordered_report_k{k}.json" for k in (1, 2, 3)}


def test_the_table_shows_hits_as_a_share(folder: Path) -> None:
    table = _run(folder).extras.sections[0]
    shown = {(row[0], row[2]): row[3] for row in table.rows}
    # of a's list only b is among the first two; all three others hold the whole list
    assert (shown["DenseAnchor+faiss", 2], shown["DenseAnchor+faiss", 3]) == (0.875, 1)


def test_random_is_the_expectation_over_all_others(folder: Path) -> None:
    outcome = _run(folder)
    # two of the three others are in the list: the first is one of them in 2 of 3 orders, else the second is
    expected = 2 / 3 + 1 / 3 * 1 / 2
    baseline = {str(measure): values for measure, values in outcome.baselines["random"].items()}
    assert baseline["mrr"] == pytest.approx([expected] * 4)
    table = outcome.extras.sections[0]
    # one place holds 2/3 of an item, a third of the list
    (random,) = [row for row in table.rows if row[0] == "random" and row[2] == 1]
    assert random[3:] == pytest.approx([1 / 3, 2 / 3, (3 + 1) / 3 / 3])


def test_clusters_are_told_apart(folder: Path) -> None:
    table = _run(folder).extras.sections[2]
    assert [row[:2] for row in table.rows] == [["x", 1], ["y", 3]]
    assert table.rows[1][2] == pytest.approx(1)


FILMS = [f"tt{number:07d}" for number in range(1, 13)]
SPACES = {"denseanchor": "overall", "densecontent": "content", "densevibe": "vibes"}
WEIGHTS, C, TOP_N = {"denseanchor": 0.5, "densecontent": 0.3, "densevibe": 0.2}, 60, 6


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """Twelve films in the film guide's own schema, three spaces, and a fusion that reads six places of each."""
    rng = np.random.default_rng(1)
    lineup = ["rounds = 1", 'measures = ["recall@5"]', "[task]", 'kind = "ordered"', 'items = "ids.txt"', "texts = []"]
    lineup += ['truth = "truth.json"', 'id_key = "movie_id"', 'overall = "denseanchor"', "k = [5]", "[task.facets]"]
    lineup += [f'{space} = "5_most_similar_movies_{facet}_ordered"' for space, facet in SPACES.items()]
    for space in SPACES:
        vectors = rng.normal(size=(12, 4)).astype(np.float32)
        vectors[5] = vectors[3]  # a tie, which the id decides
        np.save(tmp_path / f"{space}.npy", vectors)
        lineup += ["[[contender]]", f'label = "{space}"', 'provider = "precomputed"', f'field = "{space}"']
        lineup += ['store = "faiss"', f'options = {{ path = "{space}.npy", ids = "ids.txt", model = "{space}-v2" }}']
    of, weights = json.dumps([*SPACES]), json.dumps([*WEIGHTS.values()])
    lineup += ["[[fusion]]", f"of = {of}", f"weights = {weights}", f"c = {C}", f"top_n = {TOP_N}"]
    (tmp_path / "films.toml").write_text("\n".join(lineup))
    (tmp_path / "ids.txt").write_text("\n".join(FILMS))
    truth = [
        {
            "movie_id": film,
            **{
                f"5_most_similar_movies_{facet}_ordered": rng.permutation([f for f in FILMS if f != film])[:5].tolist()
                for facet in SPACES.values()
            },
        }
        for film in FILMS
    ]
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    return tmp_path


def _judge(ranked: list[str], truth: list[str]) -> dict[str, Any]:
    """The guide's three figures at K = 5, worked out on their own."""
    top = ranked[:5]
    gain = {film: 2 ** (5 - place) - 1 for place, film in enumerate(truth)}
    first = [1 / place for place, film in enumerate(top, 1) if film in truth]
    dcg = sum(gain.get(film, 0) / np.log2(place + 1) for place, film in enumerate(top, 1))
    ideal = sum(gain[film] / np.log2(place + 1) for place, film in enumerate(truth, 1))
    return {
        "hits": len(set(top) & set(truth)) / 5, "rr": max(first, default=0), "ndcg": pytest.approx(dcg / ideal),
        "topK": top,
    }  # fmt: skip


def test_the_report_has_the_film_guides_keys_and_figures(films: Path) -> None:
    target = save(run(Lineup.read(films / "films.toml")), films / "results")
    report = json.loads((target / "ordered_report_k5.json").read_text())
    truth = {entry["movie_id"]: entry for entry in json.loads((films / "truth.json").read_text())}
    expected: dict[str, dict[str, Any]] = {film: {} for film in FILMS}
    fused: dict[str, dict[str, float]] = {film: dict.fromkeys(FILMS, 0.0) for film in FILMS}
    for space, facet in SPACES.items():
        vectors = np.load(films / f"{space}.npy").astype(float)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = np.round(vectors @ vectors.T, 6)
        for row, film in enumerate(FILMS):
            others = sorted((f for f in FILMS if f != film), key=lambda f: (-cosines[row, FILMS.index(f)], f))
            expected[film][space] = _judge(others, truth[film][f"5_most_similar_movies_{facet}_ordered"])
            for rank, other in enumerate(others[:TOP_N], 1):
                fused[film][other] += WEIGHTS[space] / (C + rank)
    for film in FILMS:
        ranked = sorted((f for f in FILMS if f != film), key=lambda f: (-round(fused[film][f], 12), f))
        expected[film]["combined"] = _judge(ranked, truth[film]["5_most_similar_movies_overall_ordered"])
    assert report["per_query"] == expected
    for name, column in [*((space, space) for space in SPACES), ("combined_weighted_rrf", "combined")]:
        of = {key: np.mean([expected[film][column][key] for film in FILMS]) for key in ("hits", "rr")}
        assert report[name]["mean_hits"] == pytest.approx(of["hits"])
        assert report[name]["mean_mrr"] == pytest.approx(of["rr"])
    assert list(report) == [
        "K", "timestamp", "models", "weights", "c", "top_n", *SPACES, "combined_weighted_rrf", "per_query",
    ]  # fmt: skip
    assert (report["K"], report["weights"], report["c"], report["top_n"]) == (5, WEIGHTS, C, TOP_N)
    assert report["models"] == {space: f"{space}-v2" for space in SPACES}
    assert datetime.datetime.fromisoformat(report["timestamp"]).tzinfo is not None


@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"], ["validate"]])
def test_a_space_that_lacks_films_stops_before_anything_is_asked(films: Path, command: list[str]) -> None:
    np.save(films / "short.npy", np.load(films / "densevibe.npy")[:10])
    (films / "short.ids.txt").write_text("\n".join(FILMS[:10]))
    lineup = (films / "films.toml").read_text()
    (films / "films.toml").write_text(lineup.replace('"densevibe.npy", ids = "ids.txt"', '"short.npy"'))
    code, _, said = bakeoff(films, command[0], "films.toml", *command[1:])
    assert code == 2
    assert all(word in said for word in ("densevibe", "short.npy", *FILMS[10:]))
    assert not (films / "results").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t[0]["overall"].pop(), "'a'"),
        (lambda t: t[0]["overall"].append("c"), "'a'"),
        (lambda t: t[0].pop("feel"), "'a'"),
        (lambda t: t[0].update(overall=["a", "b"]), "'a'"),
        (lambda t: t[0].update(overall=["b", "b"]), "'b'"),
        (lambda t: t[0].update(overall=["b", "z"]), "'z'"),
        (lambda t: t.pop(), "'d'"),  # though it is an item
        (lambda t: t[0].update(id="z"), "'z'"),
        (lambda t: t[0].pop("id"), "'id'"),
        (lambda t: t.append(t[0]), "'a'"),
        (lambda t: t.clear(), "truth.json"),
    ],
)
def test_every_rule_of_the_lists_is_checked(folder: Path, change: Any, said: str) -> None:
    truth = json.loads(json.dumps(TRUTH))
    change(truth)
    (folder / "truth.json").write_text(json.dumps(truth))
    with refuses(InputError, said, file="truth.json"):
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
