"""Golden profiles on four items and vectors of two dimensions: every stage, label and figure by hand."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.core.facts import fact
from bakeoff.core.paths import lineup_file, root
from bakeoff.extensions.kinds.snapshot import write_snapshot
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import PAGE, render
from bakeoff.report.matrix import BEST, matrix
from bakeoff.results.compare import compare_results
from bakeoff.results.picks import Limits, choose
from bakeoff.results.result import load
from bakeoff.results.save import save
from bakeoff.results.schema import Summary, read_detailed, read_summary
from bakeoff.running.runner import Outcome, run
from bakeoff.tasks.kinds import load_kind
from bakeoff_providers.errors import InputError

from tests.errors import refuses, says
from tests.facts import arguments, section

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
    assert outcome.task.judgments == {"p": {"x": 0, "y": 2, "z": 1}}
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


def test_above_a_threshold_is_more_than_it(folder: Path) -> None:
    """Of x alone a label depends on similarity; its cosine as FAISS has it is the threshold."""
    cosine = dict(zip(*_retrieved(_run(folder)), strict=True))["x"]
    at = _run(folder, labels=f"thresholds = {{ precomputed = {cosine!r} }}").extras.figures
    below = _run(folder, labels=f"thresholds = {{ precomputed = {cosine - 1e-6!r} }}").extras.figures
    modes = at["contenders"]["own+faiss"]["profiles"]["p"]["ndcg"]
    assert modes["hybrid"] == modes["no_similarity"] == pytest.approx((2 + 1 / 2) / (2 + 1 / np.log2(3)))
    assert below["contenders"]["own+faiss"]["profiles"]["p"]["ndcg"]["hybrid"] == pytest.approx(1)


def _retrieved(outcome: Outcome) -> tuple[tuple[str, ...], tuple[float, ...]]:
    ranking = outcome.ran[0].retrieved["p"]
    return ranking.ids, ranking.scores


def test_a_threshold_that_is_not_set_keeps_its_default(folder: Path) -> None:
    figures = _run(folder, labels="thresholds = { embeddings = 0.5 }").extras.figures
    assert figures["thresholds"] == {"tfidf": 0.12, "embeddings": 0.5}


OTHER_ROW = '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'


def test_hybrid_labels_judge_the_matrix_without_a_verdict(folder: Path) -> None:
    outcome = _run(folder, labels='mode = "hybrid"', more=OTHER_ROW)
    assert outcome.scores["own+faiss"]["ndcg@10"] == pytest.approx([1])
    target = save(outcome, folder / "results")
    summary = read_summary(target)
    verdict = summary.verdict
    assert (verdict.leader, verdict.best_set, verdict.pairs, verdict.standings) == (None, [], [], {})
    assert (verdict.situation, verdict.without_verdict, verdict.picks) == ("not comparable", "labels by row", [])
    assert [row.label for row in summary.rows] == ["own+faiss", "fake+faiss"]  # no oracle: whose labels would it have?
    assert BEST not in render_text(summary)
    render(target)
    assert "There is no verdict" in (target / PAGE).read_text()
    with pytest.raises(InputError, match="compared with each other"):
        compare_results([load(target)])
    assert choose(summary.rows, verdict, Limits(offline=True)).pick is None


def render_text(summary: Summary) -> str:
    return "\n".join(cell.text for line in matrix(summary).lines for cell in line.cells.values())


def test_a_profile_without_a_label_counts_in_no_mean(folder: Path) -> None:
    """r is eligible for x, y and z and shares no keyword with any: it is asked, and N/A."""
    others = [*PROFILES, {"profile_id": "r", "gpa": 3.5, "state": "Utah", "keywords": ["sport"]}]
    (folder / "profiles.json").write_text(json.dumps(others))
    vectors = np.load(folder / "vectors.npz")
    np.savez(
        folder / "vectors.npz",
        ids=[*vectors["ids"], "r"],
        vectors=np.vstack([vectors["vectors"], [[1, 0]]]).astype(np.float32),
    )
    outcome = _run(folder)
    assert outcome.ran[0].rankings["r"].ids == ("x", "y", "z")
    assert outcome.extras.figures["contenders"]["own+faiss"]["profiles"]["r"]["ndcg"]["no_similarity"] == "N/A"
    target = save(outcome, folder / "results")
    summary, detailed = read_summary(target), read_detailed(target)
    of_p = (2 + 1 / 2) / (2 + 1 / np.log2(3))
    assert {row.label: row.measures["ndcg@10"].mean for row in summary.rows} | {"random": 0} == {
        "own+faiss": pytest.approx(of_p),
        "oracle": 1,
        "random": 0,
    }
    assert list(detailed.queries) == ["p"]
    assert arguments(summary.warnings, "kinds.without_label") == [{"profiles": ["q", "r"]}]
    none = fact("kinds.not_labelled")
    assert [row[-1] for row in section(summary.sections, "kinds.by_profile").rows] == [
        pytest.approx(of_p),
        none,
        none,
        pytest.approx(of_p),
    ]


def test_coverage_amounts_reasons_and_stability(folder: Path) -> None:
    figures = _run(folder).extras.figures
    own = figures["contenders"]["own+faiss"]
    assert (own["coverage"], own["coverage_share"]) == (3, 0.75)
    assert own["amounts"] == {"mean": 500, "median": 400, "max": 900}
    assert own["rule_violations"] == []
    assert own["stable"] is True
    # p: w by GPA. q: all four by GPA, y by state as well
    assert figures["shut_out"] == {"GPA": 5, "STATE": 1}
    assert figures["eligibility"] == {
        "p": {"eligible_count": 3, "total_count": 4, "eligibility_precision": 0.75, "reasons": {"GPA": 1}},
        "q": {"eligible_count": 0, "total_count": 4, "eligibility_precision": 0, "reasons": {"GPA": 4, "STATE": 1}},
    }
    assert figures["eligibility_precision"] == pytest.approx(0.75 / 2)


def test_answers_from_elsewhere_are_audited(folder: Path) -> None:
    (folder / "theirs.jsonl").write_text('{"query": "p", "ranked": ["w", "y"]}\n{"query": "q", "ranked": ["y"]}\n')
    outcome = _run(folder, more='[[contender]]\nanswers = "theirs.jsonl"\n')
    theirs = outcome.extras.figures["contenders"]["theirs"]
    assert theirs["rule_violations"] == [
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
    assert baseline["mrr@10"] == pytest.approx([2 / 3 + 1 / 3 * 1 / 2])


def test_weights_come_from_a_file(folder: Path) -> None:
    (folder / "best.json").write_text('{"similarity": 1.0, "keywords": 0.0}')
    (folder / "other.json").write_text('{"similarity": 0.0, "keywords": 1.0}')
    best = 'best_weights = "best.json"'
    assert _run(folder, best).ran[0].rankings["p"].ids == ("x", "y", "z")
    assert _run(folder, best, use_best_weights=False).ran[0].rankings["p"].ids == ("y", "x", "z")
    named = _run(folder, best, weights_file=str(folder / "other.json"))
    assert named.ran[0].rankings["p"].ids == ("y", "z", "x")
    assert named.extras.figures["weights_from"] == "other.json"


def test_absent_best_weights_fall_back_with_a_note(folder: Path) -> None:
    outcome = _run(folder, 'best_weights = "best_weights.json"')
    assert outcome.ran[0].rankings["p"].scores == pytest.approx([0.55, 0.4, 0.25])  # halves, as [task.weights] says
    notes = outcome.extras.figures["notes"]
    assert {"id": "kinds.no_weights", "arguments": {"file": "best_weights.json"}} in notes
    with refuses(InputError, file="absent.json"):  # one that was asked for by name is not replaced
        _run(folder, weights_file="absent.json")


def test_the_report_and_the_artefact_are_dated(folder: Path) -> None:
    outcome = _run(folder, reports=str(folder / "reports"))
    target = save(outcome, folder / "results")
    stamp = f"{outcome.started:%Y%m%d_%H%M%S}"
    page, data = target / f"golden_eval_{stamp}.md", target / "artifacts" / f"golden_eval_{stamp}.json"
    reports = folder / "reports"
    assert (reports / page.name).read_bytes() == page.read_bytes()
    assert (reports / "artifacts" / data.name).read_bytes() == data.read_bytes()
    (folder / "file").touch()
    with refuses(InputError, place="reports", file="file"):
        _run(folder, reports=str(folder / "file"))
    text = page.read_text()
    says(text, "NDCG", "keywords")
    says(text, "0.050")  # from 2.5 / 2.63 to 1
    says(text, "for q:")
    assert json.loads(data.read_text())["contenders"]["own+faiss"]["profiles"]["p"]["items"] == ["y", "x", "z"]


@pytest.mark.parametrize(
    ("settings", "labels", "said"),
    [
        ("k = 0", "", "k"),
        ("colour = 1", "", "'colour'"),
        ("", 'mode = "wild"', "no_similarity"),
        ("", "matches = []", "'matches'"),
    ],
)
def test_bad_settings_are_named(folder: Path, settings: str, labels: str, said: str) -> None:
    text = LINEUP.replace("k = 10\n", "") if settings.startswith("k") else LINEUP
    path = folder / "four.toml"
    path.write_text(text.replace("SETTINGS", settings).replace("LABELS", labels))
    lineup = Lineup.read(path)
    with refuses(InputError, said):
        run(lineup)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ps: ps.append(ps[0]), "'p'"),
        (lambda ps: ps[0].pop("profile_id"), "'profile_id'"),
        (lambda ps: ps[0].pop("state"), "'state'"),
    ],
)
def test_bad_profiles_are_named(folder: Path, change: Any, said: str) -> None:
    profiles = json.loads(json.dumps(PROFILES))
    change(profiles)
    (folder / "profiles.json").write_text(json.dumps(profiles))
    with refuses(InputError, said, file="profiles.json"):
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


def test_eligibility_precision_of_the_built_in_example() -> None:
    """By a few lines of its own, from the files alone."""
    folder = root() / "queries" / "scholarships"
    items = json.loads((root() / "corpora" / "scholarships" / "scholarships.json").read_text())
    shares = {}
    for profile in json.loads((folder / "profiles.json").read_text()):
        eligible = 0
        for item in items:
            lists = [("state", "states"), ("major", "majors"), ("education_level", "education_levels")]
            named = [(profile[mine], item[theirs]) for mine, theirs in [*lists, ("citizenship", "citizenship")]]
            fits = all(not wanted or value in wanted for value, wanted in named)
            eligible += fits and (item["min_gpa"] is None or profile["gpa"] >= item["min_gpa"])
        shares[profile["profile_id"]] = eligible / len(items)
    lineup = replace(Lineup.read(lineup_file(Path("scholarships"))).narrow(["tfidf"]), rounds=1)
    figures = run(lineup).extras.figures
    assert {name: one["eligibility_precision"] for name, one in figures["eligibility"].items()} == shares
    assert figures["eligibility_precision"] == pytest.approx(np.mean(list(shares.values())))
    assert round(figures["eligibility_precision"], 3) == 0.111
    ndcg = figures["contenders"]["tfidf+faiss"]["profiles"]["lena"]["ndcg"]
    assert ndcg == {"no_similarity": "N/A", "hybrid": "N/A"}
