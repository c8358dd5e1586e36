"""Changing the model: the map against scipy, models whose relation is known, and what is then advised."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.core.arrays import Values
from bakeoff.core.facts import Argument, fact
from bakeoff.core.task import Document, Drawn, Query, Task
from bakeoff.embedding.chunking import document_chunks
from bakeoff.embedding.unit import unit
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.production.migrate import MigrationCost, Side, Way, plan, procrustes, sides, ways
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.settings import Settings
from bakeoff.search.index import Index
from bakeoff.statistics.averaging import averaging_of
from bakeoff_providers.base import ModelCard, Price, Vectors
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group, ttest_1samp
from typer.testing import CliRunner

from tests.errors import says
from tests.facts import arguments, ids, sentences
from tests.providers.real_weights import require

N, Q, D = 1400, 80, 32
NDCG = Measure.parse("ndcg@10")
CARD = ModelCard(
    name="m", tokens_per_minute=1000, price=Price(usd_per_million_tokens=10.0, seen="2026-11-16", source="list")
)


def test_the_map_is_scipys_and_semi_orthogonal_between_dimensions() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(50, 8)), rng.normal(size=(50, 8))
    assert procrustes(a, b) == pytest.approx(orthogonal_procrustes(a, b)[0])
    narrow = procrustes(rng.normal(size=(50, 6)), b)
    assert narrow @ narrow.T == pytest.approx(np.eye(6), abs=1e-9)


class World:
    """Documents with a true place, queries near one of them, and models that see the places more or less well."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(7)
        self.places = self.rng.normal(size=(N, D))
        self.answers = self.rng.choice(N, Q, replace=False)
        self.asked = self.places[self.answers] + self.rng.normal(0, 0.55, (Q, D))
        documents = [Document(id=f"d{at:04d}", text=f"document {at}") for at in range(N)]
        queries = [Query(id=f"q{at}", text=f"query {at}") for at in range(Q)]
        grades = {f"q{at}": {f"d{answer:04d}": 1} for at, answer in enumerate(self.answers)}
        self.task = Task(name="world", documents=documents, queries=queries, judgments=grades)
        chunks = [chunk for document in documents for chunk in document_chunks(document)]
        self.index, self.texts = Index(chunks, 100), [chunk.text for chunk in chunks]

    def model(self, label: str, blur: float, turn: NDArray[np.float64], local: bool = False) -> Side:
        def seen(places: NDArray[np.float64]) -> Vectors:
            return unit(((places + self.rng.normal(0, blur, places.shape)) @ turn).astype(np.float32), label)

        return Side(label, CARD, local, seen(self.places), seen(self.asked))

    def ways(self, old: Side, new: Side, scale: float = 1.0) -> dict[str, Way]:
        found = ways(self.task, self.index, old, new, self.texts, NDCG, scale, seed=1)
        return {way.key: way for way in found}


def test_a_new_model_that_is_only_turned_is_reached_by_the_map() -> None:
    """The same places in another space: mapped queries find on the old index what old ones find."""
    world = World()
    old, new = world.model("old", 0.0, np.eye(D)), world.model("new", 0.0, ortho_group.rvs(D, random_state=1))
    found = world.ways(old, new)
    before = float(found["old"].scores.mean())
    assert float(found["mapped 200"].scores.mean()) == pytest.approx(before, abs=0.01)
    assert float(found["new"].scores.mean()) == pytest.approx(before, abs=0.01)
    mixed = [float(found[f"mixed {share} old"].scores.mean()) for share in ("10%", "25%", "50%", "75%")]
    assert mixed == sorted(mixed, reverse=True)
    assert mixed[-1] < 0.5 * before
    assert mixed[-1] == pytest.approx(0.25 * before, abs=0.12)  # what is still old is still found
    parts = [float(found[f"parts {share}"].scores.mean()) for share in ("10%", "25%", "50%", "75%")]
    assert min(parts) > 2 * min(mixed)  # every document is found by the model that embedded it
    check = plan(list(found.values()), ("old", "new"), NDCG, N)
    assert not check.worse
    assert arguments(check.facts, "production.switch_unproven") == [{"new": "new"}]
    assert "production.switch" not in ids(check.facts)


@pytest.mark.slow
def test_a_better_model_is_advised_and_its_map_helps_meanwhile() -> None:
    world = World()
    old, new = world.model("old", 0.9, np.eye(D)), world.model("new", 0.1, ortho_group.rvs(D, random_state=2))
    found = world.ways(old, new)
    means = {key: float(way.scores.mean()) for key, way in found.items()}
    assert means["new"] > means["old"] + 0.1
    assert means["mapped 1200"] >= means["mapped 200"] - 0.02
    assert means["mapped 1200"] < means["new"]
    check = plan(list(found.values()), ("old", "new"), NDCG, N)
    (interim,) = arguments(check.facts, "production.map")
    assert interim["gain"] == pytest.approx(max(means[key] for key in means if "mapped" in key) - means["old"])
    assert interim["worth"]
    says(sentences(check.facts)[-3:])
    back = plan(list(world.ways(new, old).values()), ("new", "old"), NDCG, N)
    assert back.worse
    assert back.facts[-1] == fact("production.switch_worse", new="old")


def test_the_switch_is_the_one_question_and_pays_for_no_other() -> None:
    """Nine queries of 40 gain, none loses. p is Student's with an imagined query on which the new model finds nothing.

    Times 16 ways that change nothing much, it would not be shown.
    """
    rng = np.random.default_rng(5)
    old = rng.uniform(0.2, 0.6, 40)
    new = old + np.where(np.arange(40) < 9, 0.3, 0.0)
    keys = [f"mixed {share}% {asked}" for share in (10, 25, 50, 75) for asked in ("old", "new")]
    keys += [*(f"parts {share}%" for share in (10, 25, 50, 75)), "mapped 200", "mapped 600", "mapped 1200", "both"]
    rest = [_way(key, old + rng.normal(0, 0.05, 40)) for key in keys]
    found = [_way("old", old), _way("new", new), *rest]
    check = plan(found, ("old", "new"), NDCG, N)
    p = ttest_1samp(np.append(new - old, -old.mean()), 0).pvalue
    assert check.figures["ways"]["new"]["against_old"]["p_holm"] == pytest.approx(p)
    assert arguments(check.facts, "production.switch") == [{"new": "new"}]
    side = [check.figures["ways"][key]["against_old"] for key in keys]
    least = min(side, key=lambda pair: pair["p"])
    assert least["p_holm"] == pytest.approx(min(1.0, least["p"] * len(keys)))


def _way(key: str, scores: Values) -> Way:
    abouts: dict[str, dict[str, Argument]] = {
        "mixed": {"share": 0.1, "queries": "old"}, "parts": {"share": 0.1}, "mapped": {"pairs": 200},
    }  # fmt: skip
    kind = key.split()[0]
    return Way(key, {"way": kind, **abouts.get(kind, {})}, scores, MigrationCost())


def _ways(old: Values, new: Values) -> list[Way]:
    return [_way("old", old), _way("new", new), *(_way(key, old) for key in ("parts 10%", "mapped 200", "both"))]


def test_traffic_turns_the_advice() -> None:
    """One query with 90% of the traffic loses 0.2, 59 gain 0.1: +0.095 per drawn query, −0.17 per query asked."""
    gains = np.array([-0.2, *[0.1] * 59])
    drawn = [Drawn(0.9, "head", 1), *[Drawn(0.1 / 59, "tail", 59)] * 59]
    found = _ways(np.full(60, 0.5), 0.5 + gains)
    plain = plan(found, ("old", "new"), NDCG, N)
    assert plain.figures["ways"]["new"]["against_old"]["difference"] == pytest.approx(0.095)
    assert arguments(plain.facts, "production.switch") == [{"new": "new"}]
    asked = plan(found, ("old", "new"), NDCG, N, averaging_of(drawn))
    assert asked.figures["ways"]["new"]["against_old"]["difference"] == pytest.approx(-0.17)
    assert asked.figures["ways"]["new"]["mean"] == pytest.approx(0.33)
    assert asked.worse
    (head,) = arguments(asked.facts, "production.migration")
    assert (head["measure"], head["weighted"]) == ("NDCG@10", True)
    assert asked.facts[-1] == fact("production.switch_worse", new="new")


def test_one_query_has_a_difference_and_no_interval() -> None:
    check = plan(_ways(np.array([0.2]), np.array([0.7])), ("old", "new"), NDCG, N)
    switched = arguments(check.facts, "production.way")[1]
    assert (switched["mean"], switched["difference"], switched["p"]) == pytest.approx((0.7, 0.5, 1.0))
    assert check.figures["ways"]["new"]["against_old"]["low"] is None
    assert check.facts[-1] == fact("production.switch_unproven", new="new")
    says(sentences(check.facts)[2], "0.7000", "+0.5000")


def test_ways_that_score_alike_in_logarithms_are_shown_as_figures() -> None:
    """Average precision ½ before and 1 after, on every query: GMAP ½ and 1, and log 2 between them."""
    rng = np.random.default_rng(1)
    old = np.log(rng.choice([0.25, 1.0], 30))
    old += np.log(0.5) - old.mean()
    check = plan(_ways(old, old + np.log(2)), ("old", "new"), Measure.parse("gm_map"), N)
    before, after, *rest = arguments(check.facts, "production.way")
    assert before["mean"] == pytest.approx(0.5)
    assert (after["mean"], after["difference"]) == pytest.approx((1.0, np.log(2)))
    assert (after["low"], after["logarithms"]) == (None, True)  # alike on all: no interval
    assert (rest[0]["way"], rest[0]["difference"]) == ("parts", 0.0)
    assert check.figures["ways"]["new"]["mean"] == pytest.approx(1.0)


def test_other_dimensions_share_no_index_but_can_be_mapped() -> None:
    world = World()
    narrow = world.model("new", 0.05, ortho_group.rvs(D, random_state=3)[:, :24])
    found = world.ways(world.model("old", 0.9, np.eye(D)), narrow)
    assert not any(key.startswith("mixed") for key in found)
    assert "mapped 600" in found
    check = plan(list(found.values()), ("old", "new"), NDCG, N)
    assert "production.dimensions_differ" in ids(check.facts)
    says(sentences(check.facts)[-3:])


def test_costs_by_hand() -> None:
    """1,400 texts of 10 to 13 characters (13 letters make 3.25 tokens), ten times as many in production."""
    world = World()
    found = world.ways(world.model("old", 0.1, np.eye(D)), world.model("new", 0.1, np.eye(D)), scale=10)
    tokens = 10 * sum(len(text) / 4 for text in world.texts)
    cost = found["new"].cost
    assert cost.tokens == pytest.approx(tokens)
    assert cost.dollars == pytest.approx(tokens / 1e6 * 10)
    assert cost.hours == pytest.approx(tokens / 1000 / 60)
    assert cost.bytes == 10 * N * D * 4
    assert found["mixed 50% new"].cost.tokens == pytest.approx(tokens / 2, rel=0.01)
    assert found["mapped 200"].cost.tokens == pytest.approx(tokens / 10 / 7, rel=0.05)  # pairs do not grow
    assert found["old"].cost.tokens == 0


LINEUP = """
task = "wikipedia"
[[contender]]
provider = "fake"
options = { dimensions = 64 }
label = "old"
store = "faiss"
[[contender]]
provider = "fake"
options = { dimensions = 64, seed = 3 }
label = "new"
store = "faiss"
[[contender]]
ranker = "bm25"
"""


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    (tmp_path / "bakeoff.toml").write_text(LINEUP, encoding="utf-8")
    run = CliRunner().invoke
    done = run(app, ["migrate", "plan", "old+faiss", "new+faiss", "--json", "--documents", "1000000"])
    assert done.exit_code in (0, 1), done.output
    figures = json.loads(done.stdout)["ways"]
    assert figures["new"]["more_bytes"] == pytest.approx(1_000_000 * 64 * 4)
    assert figures["new"]["dollars"] == 0.0  # it runs here
    for wrong in (["bm25", "new+faiss"], ["old+faiss", "old+faiss"], ["old+faiss", "none"]):
        assert isinstance(run(app, ["migrate", "plan", *wrong]).exception, InputError)


def test_two_real_models_of_equal_dimension_share_no_space(tmp_path: Path) -> None:
    """MiniLM and granite have 384 dimensions each, so one index takes the vectors of both."""
    require("minilm")
    require("granite")
    lineup = tmp_path / "lineup.toml"
    rows = "".join(f'[[contender]]\nprovider = "{name}"\nstore = "faiss"\n' for name in ("minilm", "granite"))
    lineup.write_text(f'task = "wikipedia"\n{rows}', encoding="utf-8")
    settings = Settings(cache=tmp_path / "vectors")
    task, index, old, new, texts = sides(Lineup.read(lineup), "minilm+faiss", "granite+faiss", settings)
    assert old.documents.shape[1] == new.documents.shape[1] == 384
    found = {way.key: float(way.scores.mean()) for way in ways(task, index, old, new, texts, NDCG, 1.0, seed=1)}
    assert min(found["old"], found["new"]) > 0.7
    for asked, other in (("old", "75%"), ("new", "10%")):  # most of the index was made by the other model
        assert found[f"mixed {other} {asked}"] < 0.7 * found[asked]
        assert found[f"mixed {other} {asked}"] < found[f"parts {other}"]


def test_a_way_that_is_shown_to_be_better_is_named_where_the_new_model_alone_is_not() -> None:
    """Both indexes gain on 20 of 40 queries and lose nowhere; the new model wins as often as it loses."""
    old = np.full(40, 0.5)
    new = old + np.where(np.arange(40) % 2, 0.1, -0.1)
    ways_found = _ways(old, new)
    ways_found[-1] = _way("both", old + 0.2 * (np.arange(40) < 20))
    check = plan(ways_found, ("old", "new"), NDCG, N)
    (better,) = arguments(check.facts, "production.better_way")
    assert (better["way"], better["difference"]) == ("both", pytest.approx(0.1))
    assert "production.switch_unproven" in ids(check.facts)
    says(sentences(check.facts)[-2:])
