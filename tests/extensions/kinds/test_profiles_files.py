"""Golden profiles from files that someone else made, by the command line: snapshot, sidecar, weights, reports."""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.results.schema import read_summary
from bakeoff.running.runner import Outcome, Settings, run
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError

from tests.cli.test_wrong_arguments import bakeoff
from tests.errors import says
from tests.facts import arguments

ITEMS: list[dict[str, Any]] = [
    {"scholarship_id": "S1", "title": "Bridges", "description": "For engineers.", "amount_max": 5000.0,
     "min_gpa": 3.0, "states_allowed": ["UT"], "keywords": ["design"], "deadline": datetime.date(2026, 5, 1)},
    {"scholarship_id": "S2", "title": "Robots", "description": "For robotics teams.", "amount_max": 2500.0,
     "min_gpa": None, "states_allowed": [], "keywords": ["robotics"], "deadline": None},
    {"scholarship_id": "S3", "title": "Law", "description": "For future lawyers.", "amount_max": None,
     "min_gpa": 3.9, "states_allowed": [], "keywords": ["law"], "deadline": None},
    {"scholarship_id": "S4", "title": "Arts", "description": "For painters.", "amount_max": 800.0,
     "min_gpa": None, "states_allowed": ["UT", "CA"], "keywords": [], "deadline": None},
]  # fmt: skip
STUDENT = {"profile_id": "golden_ut_eng", "gpa": 3.5, "state": "UT", "keywords": ["design", "robotics"]}
TASK = """
kind = "profiles"
snapshot = "none_snapshot_20200101.parquet"
profiles = "none.json"
profile_text = "{state} {keywords}"
id_key = "scholarship_id"
amount = "amount_max"
best_weights = "best_weights.json"
[[rules]]
reason = "GPA"
profile = "gpa"
op = "at_least"
item = "min_gpa"
[[rules]]
reason = "STATE"
profile = "state"
op = "one_of"
item = "states_allowed"
[weights]
similarity = 1.0
keywords = 0.0
[labels]
match = ["state"]
"""
LINEUP = """
name = "golden"
task = "task"
measures = ["ndcg@10"]
rounds = 2
"""
FAKE = '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
TFIDF = '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'


def _key(item: dict[str, Any]) -> str:
    """A key as other pipelines make one."""
    return hashlib.sha1(f"{item['scholarship_id']}|{item['title']}".encode()).hexdigest()


def _whole(item: dict[str, Any]) -> str:
    return f"{item['title']} {item['description']}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The task's folder is another one than that of the data, and the user stands above both."""
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "task.toml").write_text(TASK)
    processed = tmp_path / "data" / "processed"
    processed.mkdir(parents=True)
    keyed = pd.DataFrame(ITEMS).assign(embedding_key=[_key(item) for item in ITEMS])
    keyed.to_parquet(processed / "scholarships_snapshot_20260301.parquet")
    keyed.head(1).to_parquet(processed / "scholarships_snapshot_20260228.parquet")
    (tmp_path / "students.json").write_text(json.dumps([STUDENT]))
    (tmp_path / "golden.toml").write_text(LINEUP + FAKE)
    return tmp_path


SET = ("--set", "snapshot=data/processed", "--set", "profiles=students.json")


def _result(folder: Path) -> Path:
    (result,) = (folder / "results").iterdir()
    return result


def _figures(folder: Path) -> dict[str, Any]:
    return read_summary(_result(folder)).figures


def test_paths_are_relative_to_where_the_user_stands(folder: Path) -> None:
    (folder / "golden.toml").write_text(LINEUP + FAKE + FAKE.replace("faiss", "chroma"))  # it keeps the attributes, too
    code, _, err = bakeoff(folder, "run", "golden.toml", "--no-charts", *SET, "--set", "reports=reports")
    assert code == 0, err
    figures = _figures(folder)
    assert (figures["snapshot"], figures["items"]) == ("scholarships_snapshot_20260301.parquet", 4)
    assert figures["eligibility"]["golden_ut_eng"]["eligibility_precision"] == 3 / 4  # all but S3
    assert figures["contenders"]["fake+faiss"]["amounts"] == {"mean": 8300 / 3, "median": 2500, "max": 5000}
    assert [note["id"] for note in figures["notes"]] == ["kinds.foreign_keys", "kinds.no_weights"]
    assert figures["notes"][0]["arguments"]["count"] == 4
    (page,) = (folder / "reports").glob("golden_eval_????????_??????.md")
    artifact = json.loads((folder / "reports" / "artifacts" / f"{page.stem}.json").read_text())
    assert artifact["eligibility_precision"] == 3 / 4
    assert (_result(folder) / page.name).read_text() == page.read_text()


def test_weights_and_label_settings_from_the_command_line(folder: Path) -> None:
    (folder / "mine.json").write_text('{"similarity": 0.0, "keywords": 1.0}')
    (folder / "golden.toml").write_text(LINEUP + FAKE + TFIDF)
    code, _, err = bakeoff(
        folder, "run", "golden.toml", "--no-charts", *SET, "--set", "best_weights=mine.json",
        "--set", "labels.mode=hybrid", "--set", "labels.thresholds.tfidf=0.2",
        "--set", "labels.thresholds.embeddings=-1",
    )  # fmt: skip
    assert code == 0, err
    figures = _figures(folder)
    assert figures["weights"] == {"similarity": 0.0, "keywords": 1.0}
    assert figures["label_mode"] == "hybrid"
    assert figures["thresholds"] == {"tfidf": 0.2, "embeddings": -1}
    assert read_summary(_result(folder)).verdict.leader is None
    # with a threshold of -1 every eligible item of the embedding row has a label; S4 shares no word with the profile
    assert _labelled(folder, "fake") == {"S1", "S2", "S4"}
    assert _labelled(folder, "tfidf") == {"S1", "S2"}


def _labelled(folder: Path, provider: str) -> set[str]:
    from bakeoff.extensions.kinds.profiles import Profiles
    from bakeoff.tasks.kinds import load_kind

    options = {"mode": "hybrid", "match": ["state"], "thresholds": {"tfidf": 0.2, "embeddings": -1}}
    outcome = _run(folder, f'[[contender]]\nprovider = "{provider}"\nstore = "faiss"\n', {"labels": options})
    kind = load_kind("task", folder, _overrides(folder) | {"labels": options})
    assert isinstance(kind, Profiles)
    labels = kind.labels("hybrid", outcome.ran[0])["golden_ut_eng"]
    return {item for item, label in labels.items() if label}


def _overrides(folder: Path) -> dict[str, Any]:
    return {"snapshot": str(folder / "data" / "processed"), "profiles": str(folder / "students.json")}


def _run(folder: Path, rows: str = FAKE, more: dict[str, Any] | None = None, cache: Path | None = None) -> Outcome:
    from dataclasses import replace

    (folder / "golden.toml").write_text(LINEUP + rows)
    lineup = replace(Lineup.read(folder / "golden.toml"), overrides=_overrides(folder) | (more or {}))
    return run(lineup, Settings(cache=cache))


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("labels.mood=hybrid", "'mood'"),
        ("labels.mode=mixed", "'mixed'"),
        ("lables.mode=hybrid", "'labels'"),
        ("k.x=1", "k"),
        ("weights_file=absent.json", "absent.json"),
    ],
)
def test_wrong_settings_are_named(folder: Path, option: str, said: str) -> None:
    code, _, err = bakeoff(folder, "run", "golden.toml", *SET, "--set", option)
    assert code == 2, err
    says(err, said)
    assert not (folder / "results").exists()


def _sidecar(folder: Path, model: str, items: list[dict[str, Any]], **arrays: Any) -> dict[str, Any]:
    """`embeddings.npz` as the other pipeline writes it: keys in order, ids, normalised vectors."""
    file = folder / "data" / "processed" / "embeddings" / model / "embeddings.npz"
    file.parent.mkdir(parents=True)
    width = len(PROVIDERS.create("fake").embed(["x"], Role.QUERY).vectors[0])
    vectors = np.random.default_rng(7).normal(size=(len(items), width)).astype(np.float32)
    keys = [_key(item) for item in items]
    content = {
        "embedding_key": np.array(keys),
        "scholarship_id": np.array([item["scholarship_id"] for item in items]),
        "vectors": vectors,
    }
    np.savez_compressed(file, **(content | arrays))
    return dict(zip([item["scholarship_id"] for item in items], vectors, strict=True))


@pytest.mark.parametrize("cached", [False, True])
def test_the_sidecar_has_the_items_vectors(folder: Path, cached: bool) -> None:
    fake = PROVIDERS.create("fake")
    given = _sidecar(folder, fake.model, ITEMS[1:])  # S1 is not in it: it is embedded here
    given["S1"] = fake.embed([_whole(ITEMS[0])], Role.DOCUMENT).vectors[0]
    query = fake.embed(["UT design, robotics"], Role.QUERY).vectors[0]
    expected = {
        name: float(vector @ query / np.linalg.norm(vector) / np.linalg.norm(query)) for name, vector in given.items()
    }
    for _ in range(1 + cached):
        row = _run(folder, cache=folder / "cache" if cached else None).ran[0]
        retrieved = row.retrieved["golden_ut_eng"]
        assert dict(zip(retrieved.ids, retrieved.scores, strict=True)) == pytest.approx(expected, abs=1e-6)
        assert row.search
        assert row.search.embedding
        (given,) = arguments(row.search.embedding.warnings, "given_vectors")
        assert (given["count"], given["documents"]) == (3, 4)
    (folder / "data" / "processed" / "embeddings" / fake.model / "embeddings.npz").unlink()
    plain = _run(folder, cache=folder / "cache" if cached else None).ran[0].retrieved["golden_ut_eng"]
    own = {item["scholarship_id"]: fake.embed([_whole(item)], Role.DOCUMENT).vectors[0] for item in ITEMS}
    assert dict(zip(plain.ids, plain.scores, strict=True)) == pytest.approx(
        {name: float(vector @ query / np.linalg.norm(vector) / np.linalg.norm(query)) for name, vector in own.items()},
        abs=1e-6,
    )


@pytest.mark.parametrize(
    "arrays", [{"vectors": np.zeros(3, np.float32)}, {"embedding_key": np.array(["x"])}, {"vectors": np.array(["x"])}]
)
def test_a_damaged_sidecar_costs_its_row(folder: Path, arrays: dict[str, Any]) -> None:
    _sidecar(folder, PROVIDERS.create("fake").model, ITEMS, **arrays)
    outcome = _run(folder, FAKE + TFIDF)
    assert [row.contender.label for row in outcome.ran] == ["tfidf+faiss"]
    (lost,) = outcome.not_run
    assert "embeddings.npz" in failure_words(lost.failure)


RETRIEVER = """
calls = []

def search(text, k):
    calls.append(text)
    ids = ["S1", "S2", "S4", "S3"]
    return [(name, 1.0 / (place + 1)) for place, name in enumerate(ids if len(calls) % 2 else ids[::-1])]
"""


def test_a_ranking_that_changes_fails_the_run_after_the_report(folder: Path) -> None:
    (folder / "mine.py").write_text(RETRIEVER)
    (folder / "golden.toml").write_text(LINEUP.replace("2", "3") + '[[contender]]\nretriever = "file:mine.py:search"\n')
    code, _, err = bakeoff(folder, "run", "golden.toml", "--no-charts", *SET)
    assert code == 1
    says(err)
    assert (_result(folder) / "evaluation_report.html").is_file()
    (figures,) = _figures(folder)["contenders"].values()
    assert figures["stable"] is False


def test_reports_in_a_file_are_refused_before_anything_runs(folder: Path) -> None:
    with pytest.raises(InputError):
        _run(folder, more={"reports": str(folder / "students.json")})


def test_in_hybrid_mode_the_matrix_is_over_profiles_that_every_row_has_labels_for(folder: Path) -> None:
    """The second student shares no keyword with any item: fake, with a threshold of -1, labels what tfidf does not."""
    students = [STUDENT, STUDENT | {"profile_id": "golden_ut_other", "keywords": ["zebra"]}]
    (folder / "students.json").write_text(json.dumps(students))
    options = {"mode": "hybrid", "match": ["state"], "thresholds": {"embeddings": -1}}
    outcome = _run(folder, FAKE + TFIDF, {"labels": options})
    assert [query.id for query in outcome.task.queries] == ["golden_ut_eng"]
    rows = outcome.extras.figures["contenders"]
    assert rows["fake+faiss"]["profiles"]["golden_ut_other"]["ndcg"]["hybrid"] == 1  # three items, all labelled 1
    assert rows["tfidf+faiss"]["profiles"]["golden_ut_other"]["ndcg"]["hybrid"] == "N/A"
    assert arguments(outcome.extras.warnings, "kinds.left_out") == [{"profiles": ["golden_ut_other"]}]
