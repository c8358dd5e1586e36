"""MTEB's names and its layout of results: a folder laid out as on the hub, against pytrec_eval's figures."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytrec_eval
from bakeoff.cli.main import app
from bakeoff.extensions.datasets.mteb import MTEB_TASKS
from bakeoff.extensions.datasets.mteb_results import MAIN
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.running.runner import run
from bakeoff.tasks.formats.trec import read_qrels, read_run
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

from tests.errors import refuses
from tests.hub_folder import stay_offline, write_hub_folder

WORDS = ["copper", "lake", "forest", "rail", "boat", "stone"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stay_offline(tmp_path / "cache", monkeypatch)
    tables: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"_id": f"d{n}", "title": "", "text": f"{WORDS[n % 6]} {WORDS[n % 5]} {n}"} for n in range(30)],
        "queries": [{"_id": f"q{n}", "text": f"{WORDS[n]} {WORDS[n % 4]}"} for n in range(6)],
        "qrels": [{"query-id": f"q{n}", "corpus-id": f"d{6 * m + n}", "score": 1.0} for n in range(6) for m in (0, 2)],
    }
    write_hub_folder(tmp_path / "mteb" / "scifact", tables)
    return tmp_path


class TaskResult(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of mteb 2.26.24's `mteb.results.task_result.TaskResult`, a pydantic model, with their types there.

    `date` and `evaluation_phases` are newer and may be left out; the library's own check is in `make test-torch`.
    """

    dataset_revision: str
    task_name: str
    mteb_version: str | None
    scores: dict[str, list[dict[str, str | float | list[str]]]]
    evaluation_time: float | None
    kg_co2_emissions: float | None = None
    date: datetime.datetime | None = None


def exported(folder: Path) -> tuple[Path, Path]:
    """The result of a small task by MTEB's name, and what was exported of it."""
    (folder / "lineup.toml").write_text(
        'task = {format = "mteb", task = "SciFact"}\nmeasures = ["ndcg@10"]\n[[contender]]\nranker = "bm25"\n'
    )
    result = save(run(Lineup.read(folder / "lineup.toml")), folder / "results")
    done = CliRunner().invoke(app, ["export-mteb", str(result), "--out", str(folder / "out")])
    assert done.exit_code == 0, done.output
    (file,) = (folder / "out").glob("*/*/SciFact.json")
    return result, file


def test_a_task_by_mtebs_name_and_its_result_in_mtebs_layout(folder: Path) -> None:
    result, file = exported(folder)
    stored = msgspec.json.decode(file.read_bytes(), type=TaskResult)
    for subset in (subset for split in stored.scores.values() for subset in split):  # what its validator asks for
        assert isinstance(subset["main_score"], float)
        assert isinstance(subset["hf_subset"], str)
        assert isinstance(subset["languages"], list)
    content = json.loads(file.read_text())
    assert (content["task_name"], list(content["scores"])) == ("SciFact", ["test"])
    (score,) = content["scores"]["test"]
    assert (score["hf_subset"], score["languages"]) == ("default", ["eng-Latn"])
    assert score["main_score"] == score["ndcg_at_10"]
    measured = pytrec_eval.RelevanceEvaluator(
        read_qrels(result / "judgments.qrels"), {"ndcg_cut.10", "map_cut.100", "recall.5", "P.3"}
    ).evaluate(read_run(result / "runs" / "bm25.trec"))
    names = {
        "ndcg_at_10": "ndcg_cut_10",
        "map_at_100": "map_cut_100",
        "recall_at_5": "recall_5",
        "precision_at_3": "P_3",
    }
    for ours, theirs in names.items():
        assert score[ours] == pytest.approx(sum(row[theirs] for row in measured.values()) / 6, abs=1e-5), ours


def test_mteb_itself_reads_the_file(folder: Path) -> None:
    mteb = pytest.importorskip("mteb", reason="make test-torch")
    _, file = exported(folder)
    read = mteb.TaskResult.from_disk(file)
    assert read.task_name == "SciFact"
    assert read.get_score() == json.loads(file.read_text())["scores"]["test"][0]["ndcg_at_10"]
    assert read.validate_and_filter_scores().get_score() == read.get_score()  # split and subset are the task's own


def test_mteb_itself_has_the_tasks_on_these_data_sets_and_splits() -> None:
    mteb = pytest.importorskip("mteb", reason="make test-torch")
    for name, known in MTEB_TASKS.items():
        metadata = mteb.get_task(name).metadata
        assert (metadata.dataset["path"], metadata.eval_splits) == (known.dataset, [known.split])
        assert (tuple(metadata.eval_langs), metadata.main_score) == (known.languages, MAIN)


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with refuses(InputError, "'SciFakt'", place="task") as error:
        load_task({"format": "mteb", "task": "SciFakt"}, tmp_path)
    assert "SciFact" in error.value.remedy
