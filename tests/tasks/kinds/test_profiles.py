"""Golden profiles on four items and vectors of two dimensions: every stage, label and figure by hand."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.core.paths import lineup_file
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.running.runner import Outcome, run
from bakeoff.tasks.formats.snapshot import write_snapshot
from bakeoff.tasks.kinds import load_kind
from bakeoff_providers.errors import InputError

# Cosines to profile p (angle 0): w 1, x 0.8, y 0.6, z 0. Profile q is shut out of everything.
COSINES = {"w": 1.0, "x": 0.8, "y": 0.6, "z": 0.0}
ITEMS: list[dict[str, Any]] = [
    {"id": "w", "title": "W", "description": "w", "amount": 100, "min_gpa": 3.9, "states": [], "keywords": ["art"]},
    {"id": "x", "title": "X", "description": "x", "amount": 200, "min_gpa": 3.0, "states": [], "keywords": ["law"]},
    {
        "id": "y",
        "title": "Y",
        "description": "y",
        "amount": 400,
        "min_gpa": 2.0,
        "states": ["Utah"],
        "keywords": ["art"],
    },
    {"id": "z", "title": "Z", "description": "z", "amount": 900, "min_gpa": 2.0, "states": [], "keywords": ["art"]},
]
PROFILES = [
    {"profile_id": "p", "gpa": 3.5, "state": "Utah", "keywords": ["art", "jazz"]},
    {"profile_id": "q", "gpa": 1.0, "state": "Ohio", "keywords": ["art"]},
]
LINEUP = """
measures = ["ndcg@10", "mrr@10"]
primary = "ndcg@10"
rounds = 2
[task]
name = "four"
kind = "profiles"
snapshot = "."
profiles = "profiles.json"
profile_text = "{state}"
k = 10
SETTINGS
[[task.rules]]
reason = "GPA"
profile = "gpa"
op = "at_least"
item = "min_gpa"
[[task.rules]]
reason = "STATE"
profile = "state"
op = "one_of"
item = "states"
[task.weights]
similarity = 0.5
keywords = 0.5
[task.labels]
match = ["state"]
LABELS
[[contender]]
provider = "precomputed"
label = "own"
store = "faiss"
options = { path = "vectors.npz" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "items.json").write_text(json.dumps(ITEMS))
    keys = {"id_key": "id", "title_key": "title", "text_key_": "description"}
    write_snapshot(tmp_path / "items.json", tmp_path, datetime.date(2026, 1, 1), **keys)
    (tmp_path / "profiles.json").write_text(json.dumps(PROFILES))
    vectors = [[cosine, np.sqrt(1 - cosine**2)] for cosine in COSINES.values()]
    np.savez(
        tmp_path / "vectors.npz",
        ids=np.array([*COSINES, "p", "q"]),
        vectors=np.array([*vectors, [1.0, 0.0], [1.0, 0.0]], dtype=np.float32),
    )
    return tmp_path


def _run(folder: Path, settings: str = "", labels: str = "", more: str = "", **overrides: Any) -> Outcome:
    path = folder / "four.toml"
    path.write_text(LINEUP.replace("SETTINGS", settings).replace("LABELS", labels) + more)
    return run(replace(Lineup.read(path), overrides=overrides))


def test_three_stages(folder: Path) -> None:
    answered = _run(folder).ran[0].rankings
    # w is shut out (3.9). Half similarity, half keywords (one of two): x 0.4, y 0.3 + 0.25, z 0 + 0.25
    assert answered["p"].ids == ("y", "x", "z")
    assert answered["p"].scores == pytest.approx([0.55, 0.4, 0.25])
    assert answered["q"].ids == ()  # nothing is eligible, so the list is empty


def test_the_rerank_lifts_within_its_depth(folder: Path) -> None:
    boost = '[[task.rerank.boosts]]\nprofile = "gpa"\nop = "at_least"\nitem = "min_gpa"\nboost = 1.0\n'
    lifted = _run(folder, more=f"[task.rerank]\ndepth = 2\n{boost}").ran[0].rankings["p"]
    assert lifted.scores == pytest.approx([1.55, 1.4, 0.25])


def test_labels_and_ndcg_in_both_modes(folder: Path) -> None:
    outcome = _run(folder)
    # y: keyword in common and Utah by name: 2. z: keyword, open to all states: 1. x: no keyword: 0
    assert outcome.task.judgments == {"p": {"x": 0, "y": 2, "z": 1}, "q": {}}
    figures = outcome.extras.figures["contenders"]["own+faiss"]
    ideal = 2 + 1 / np.log2(3)
    assert figures["profiles"]["p"]["ndcg"]["no_similarity"] == pytest.approx((2 + 1 / 2) / ideal)
    # hybrid at 0.30: x is similar (0.8), so 1; y, then x and z in any order is ideal
    assert figures["profiles"]["p"]["ndcg"]["hybrid"] == pytest.approx(1)
    assert figures["profiles"]["q"]["ndcg"] == {"no_similarity": "N/A", "hybrid": "N/A"}
    assert figures["ndcg"]["hybrid"] == pytest.approx(1)


def test_a_threshold_is_by_provider(folder: Path) -> None:
    figures = _run(folder, labels="thresholds = { precomputed = 0.9 }").extras.figures
    modes = figures["contenders"]["own+faiss"]["profiles"]["p"]["ndcg"]
    assert modes["hybrid"] == modes["no_similarity"]


def test_hybrid_labels_may_judge_the_matrix_with_a_warning(folder: Path) -> None:
    outcome = _run(folder, labels='mode = "hybrid"')
    assert outcome.scores["own+faiss"]["ndcg@10"] == pytest.approx([1, 0])
    assert any("judged by its own similarities" in warning for warning in outcome.extras.warnings)


def test_coverage_amounts_reasons_and_stability(folder: Path) -> None:
    figures = _run(folder).extras.figures
    own = figures["contenders"]["own+faiss"]
    assert (own["coverage"], own["coverage_share"]) == (3, 0.75)
    assert own["amounts"] == {"mean": 500, "median": 400, "max": 900}
    assert own["eligibility_precision"] == 1
    assert own["stable"] is True
    # p: w by GPA. q: all four by GPA, y by state as well
    assert figures["shut_out"] == {"GPA": 5, "STATE": 1}
    assert figures["eligible"] == {"p": 3, "q": 0}


def test_answers_from_elsewhere_are_audited(folder: Path) -> None:
    (folder / "theirs.jsonl").write_text('{"query": "p", "ranked": ["w", "y"]}\n{"query": "q", "ranked": ["y"]}\n')
    outcome = _run(folder, more='[[contender]]\nanswers = "theirs.jsonl"\n')
    theirs = outcome.extras.figures["contenders"]["theirs"]
    assert theirs["eligibility_precision"] == pytest.approx(1 / 3)
    assert theirs["violations"] == [
        {"profile": "p", "item": "w", "reasons": ["GPA"]},
        {"profile": "q", "item": "y", "reasons": ["GPA", "STATE"]},
    ]


def test_calibration_is_told_and_not_applied(folder: Path) -> None:
    plain, calibrated = _run(folder), _run(folder, calibrate_thresholds=True)
    figures = calibrated.extras.figures["contenders"]["own+faiss"]
    # only x is eligible for p without a common keyword, and q has nothing: the cut is x's own 0.8
    assert figures["calibrated_threshold"] == pytest.approx(0.8)
    assert figures["ndcg"] == plain.extras.figures["contenders"]["own+faiss"]["ndcg"]
    assert plain.extras.figures["contenders"]["own+faiss"]["calibrated_threshold"] is None


def test_random_is_among_the_eligible(folder: Path) -> None:
    baseline = {str(measure): values for measure, values in _run(folder).baselines["random"].items()}
    # two of three eligible items are labelled: first with 2/3, else second
    assert baseline["mrr@10"] == pytest.approx([2 / 3 + 1 / 3 * 1 / 2, 0])


def test_weights_come_from_a_file(folder: Path) -> None:
    (folder / "best.json").write_text('{"similarity": 1.0, "keywords": 0.0}')
    (folder / "other.json").write_text('{"similarity": 0.0, "keywords": 1.0}')
    best = 'best_weights = "best.json"'
    assert _run(folder, best).ran[0].rankings["p"].ids == ("x", "y", "z")
    assert _run(folder, best, use_best_weights=False).ran[0].rankings["p"].ids == ("y", "x", "z")
    named = _run(folder, best, weights_file=str(folder / "other.json"))
    assert named.ran[0].rankings["p"].ids == ("y", "z", "x")
    assert named.extras.figures["weights_from"] == "other.json"


def test_the_report_and_the_artefact_are_dated(folder: Path) -> None:
    target = save(_run(folder), folder / "results")
    (page,) = target.glob("profiles_report_*.md")
    (data,) = target.glob("profiles_artifact_*.json")
    text = page.read_text()
    assert "share features with the ranker" in text
    assert "moves by up to 0.050" in text  # from 2.5 / 2.63 to 1
    assert "Nothing is eligible for q" in text
    assert json.loads(data.read_text())["contenders"]["own+faiss"]["profiles"]["p"]["items"] == ["y", "x", "z"]


@pytest.mark.parametrize(
    ("settings", "labels", "said"),
    [
        ("k = 0", "", "k: 0 is not from 1"),
        ("colour = 1", "", "has no option 'colour'"),
        ("", 'mode = "wild"', "labels.mode: 'wild' is not one of: hybrid, no_similarity"),
        ("", "matches = []", "labels: there is no key 'matches'"),
    ],
)
def test_bad_settings_are_named(folder: Path, settings: str, labels: str, said: str) -> None:
    text = LINEUP.replace("k = 10\n", "") if settings.startswith("k") else LINEUP
    path = folder / "four.toml"
    path.write_text(text.replace("SETTINGS", settings).replace("LABELS", labels))
    lineup = Lineup.read(path)
    with pytest.raises(InputError, match=said):
        run(lineup)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ps: ps.append(ps[0]), "'p' appears twice"),
        (lambda ps: ps[0].pop("profile_id"), "a profile without 'profile_id'"),
        (lambda ps: ps[0].pop("state"), "a profile has no 'state'"),
    ],
)
def test_bad_profiles_are_named(folder: Path, change: Any, said: str) -> None:
    profiles = json.loads(json.dumps(PROFILES))
    change(profiles)
    (folder / "profiles.json").write_text(json.dumps(profiles))
    with pytest.raises(InputError, match=said):
        _run(folder)


def test_the_task_can_be_asked_for_again(folder: Path) -> None:
    _run(folder)
    lineup = Lineup.read(folder / "four.toml")
    kind = load_kind(lineup.task, lineup.folder)
    assert kind.task() == kind.task()


def test_the_built_in_example_has_sixty_items_and_twelve_profiles() -> None:
    lineup = Lineup.read(lineup_file(Path("scholarships")))
    task = load_kind(lineup.task, lineup.folder).task()
    assert (len(task.documents), len(task.queries)) == (60, 12)
    assert task.judgments["lena"] == {}
    grades = {grade for labels in task.judgments.values() for grade in labels.values()}
    assert grades == {0, 1, 2}
