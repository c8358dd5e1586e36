"""The offline evaluation of golden profiles: stages, labels and figures by hand, and every option of the script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers import PROVIDERS, weights
from bakeoff_providers.base import Role

from tests.cli.test_testsets import say
from tests.errors import says
from tests.five_documents.data import scholarships, students
from tests.five_documents.definitions import ndcg_at_k
from tests.five_documents.page import SECTIONS, Played, play, prepare, read_json
from tests.providers.real_weights import require

TITLE = "Offline evaluation of golden profiles"
ATTRIBUTES = {"state": "states_allowed", "major": "majors_allowed", "education_level": "education_levels"}

Entry = Mapping[str, Any]


def _is_eligible(profile: Entry, item: Entry) -> bool:
    """Whatever an item leaves open is open to everyone."""
    listed = all(not item[theirs] or profile[mine] in item[theirs] for mine, theirs in ATTRIBUTES.items())
    return listed and profile["gpa"] >= (item["min_gpa"] or 0)


def _similarities(profile: Entry) -> dict[str, float]:
    """MiniLM's cosines of a profile's text and every item's."""
    text = f"{profile['major']} {profile['education_level']} {profile['state']} {', '.join(profile['keywords'])}"
    items, model = scholarships(), PROVIDERS.create("minilm")
    vectors = model.embed([f"{item['title']} {item['description']}" for item in items], Role.DOCUMENT).vectors
    asked = model.embed([text], Role.QUERY).vectors[0]
    found = vectors @ asked / np.linalg.norm(vectors, axis=1) / np.linalg.norm(asked)
    return {item["scholarship_id"]: float(cosine) for item, cosine in zip(items, found, strict=True)}


def _label(profile: Entry, item: Entry, common: float, similarity: float) -> int:
    """In hybrid mode."""
    if common and all(profile[mine] in item[theirs] for mine, theirs in ATTRIBUTES.items()):
        return 2
    return 1 if common or similarity > 0.30 else 0


def test_the_stages_and_figures(tmp_path: Path) -> None:
    require("minilm")
    played = play(TITLE, tmp_path)
    _check_eligibility(played)
    _check_row(played)
    assert played.figures()["snapshot"] == "scholarships_snapshot_20260315.parquet"  # the newest
    (page,) = (tmp_path / "reports").glob("golden_eval_????????_??????.md")
    says(page.read_text(encoding="utf-8"), "0.311")
    artifact = read_json(tmp_path / "reports" / "artifacts" / f"{page.stem}.json")
    assert artifact["contenders"] == played.figures()["contenders"]


def _check_eligibility(played: Played) -> None:
    items = scholarships()
    for profile in students():
        told = played.figures()["eligibility"][profile["profile_id"]]
        eligible = sum(_is_eligible(profile, item) for item in items)
        assert (told["eligible_count"], told["total_count"]) == (eligible, 30)
        assert told["eligibility_precision"] == pytest.approx(eligible / 30)
        shut = {
            f"OTHER_{mine.upper()}": sum(bool(item[theirs]) and profile[mine] not in item[theirs] for item in items)
            for mine, theirs in ATTRIBUTES.items()
        }
        shut["GPA_BELOW_MINIMUM"] = sum((item["min_gpa"] or 0) > profile["gpa"] for item in items)
        assert told["reasons"] == {reason: count for reason, count in shut.items() if count}


def _check_row(played: Played) -> None:
    """By the best weights, 0.6 and 0.4; what names the profile's state is lifted by 0.05."""
    row, items = (
        played.figures()["contenders"]["minilm+faiss"],
        {item["scholarship_id"]: item for item in scholarships()},
    )
    given, cuts = list[str](), []
    for profile in students():
        similarity, keywords = _similarities(profile), set(profile["keywords"])
        common = {name: len(keywords.intersection(item["keywords"])) / len(keywords)
                  for name, item in items.items() if _is_eligible(profile, item)}  # fmt: skip
        lift = {name: 0.05 * (profile["state"] in items[name]["states_allowed"]) for name in common}
        scores = {name: 0.6 * similarity[name] + 0.4 * share + lift[name] for name, share in common.items()}
        ranking = sorted(scores, key=lambda name: (-round(scores[name], 5), name))[:10]
        labels = {name: _label(profile, items[name], share, similarity[name]) for name, share in common.items()}
        told = row["profiles"][profile["profile_id"]]
        assert told["items"] == ranking
        ndcg = pytest.approx(ndcg_at_k(ranking, labels, 10)) if any(labels.values()) else "N/A"
        assert told["ndcg"]["hybrid"] == ndcg
        given += ranking
        if apart := [similarity[name] for name, share in common.items() if not share]:
            cuts.append(np.quantile(apart, 0.75))
    amounts = [items[name]["amount_max"] for name in given if items[name]["amount_max"] is not None]
    expected = {"mean": np.mean(amounts), "median": np.median(amounts), "max": max(amounts)}
    assert row["amounts"] == pytest.approx(expected)
    assert row["coverage"] == len(set(given))
    assert row["calibrated_threshold"] == pytest.approx(np.median(cuts), abs=1e-4)
    assert row["stable"] is True


# What each option of the page changes; thresholds are set to another value than the default, which the page shows.
OPTIONS: dict[str, tuple[str, Any]] = {
    "--set snapshot=data/processed/scholarships_snapshot_20260301.parquet": ("items", 20),
    "--contender tfidf": ("rows", ["tfidf+faiss"]),
    "--contender minilm": ("rows", ["minilm+faiss"]),
    "--set labels.mode=hybrid": ("label_mode", "hybrid"),
    "--set labels.mode=no_similarity": ("label_mode", "no_similarity"),
    "--set labels.thresholds.tfidf=0.12": ("thresholds", {"tfidf": 0.05, "embeddings": 0.30}),
    "--set labels.thresholds.embeddings=0.30": ("thresholds", {"tfidf": 0.12, "embeddings": 0.05}),
    "--set calibrate_thresholds=true": ("calibrated", True),
    "--set use_best_weights=true": ("weights", {"similarity": 0.6, "keywords": 0.4}),
    "--set use_best_weights=false": ("weights", {"similarity": 0.7, "keywords": 0.3}),
    "--set weights_file=mine.json": ("weights", {"similarity": 0.2, "keywords": 0.8}),
    "--set reports=reports": ("reports", 1),
}


def test_the_page_shows_these_options() -> None:
    rows = re.findall(r"^\| [^|]+ \| `(--[^`]+)`[^|]*\|$", SECTIONS[TITLE], re.M)
    assert set(rows) == set(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_of_the_script(option: str, tmp_path: Path) -> None:
    require("minilm")
    prepare(TITLE, tmp_path)
    words = shlex.split(re.sub(r"(thresholds\.\w+)=.*", r"\1=0.05", option))
    quick = [] if option.startswith("--contender") else ["--contender", "tfidf"]
    say(tmp_path, "run", "golden.toml", "--no-charts", *words, *quick, BAKEOFF_HOME=str(weights.home()))
    (result,) = (tmp_path / "results").iterdir()
    figures = read_json(result / "metrics_summary.json")["figures"]
    rows = figures["contenders"]
    figures["rows"] = list(rows)
    figures["calibrated"] = all(row["calibrated_threshold"] is not None for row in rows.values())
    figures["reports"] = len(list((tmp_path / "reports").glob("*.md")))
    key, value = OPTIONS[option]
    assert figures[key] == value


TESTED = {test_the_stages_and_figures: ("apply_eligibility_filter", "score_stage2", "rerank_stage3")}
