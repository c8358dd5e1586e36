"""`bakeoff export-mteb`: write a result in MTEB's layout, for comparison with its leaderboard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import ResultArgument, check_folder
from bakeoff.cli.streams import echo
from bakeoff.core.files import write_json
from bakeoff.extensions.datasets.mteb import MTEB_TASKS
from bakeoff.results.result import Result, load

CUTS = (1, 3, 5, 10, 20, 100, 1000)
NAMES = {"ndcg": "ndcg", "map": "map", "recall": "recall", "p": "precision", "mrr": "mrr"}
MAIN = "ndcg_at_10"


def mteb_files(result: Result, task: str = "") -> dict[str, dict[str, Any]]:
    """One file per contender by path (model, revision, task), with MTEB's figures.

    `task` is MTEB's name, required if the line-up does not have it.
    """
    described = result.summary.lineup.get("task")
    described = described if isinstance(described, dict) else {}
    name = task or str(described.get("task") if described.get("format") == "mteb" else "")
    if name not in MTEB_TASKS:
        raise InputError("the result's task is not an MTEB task", file=result.name, remedy="give --task SciFact")
    known, depth = MTEB_TASKS[name], result.summary.lineup.get("depth")
    if not isinstance(depth, int) or depth < 10:
        raise InputError(f"the rankings end at rank {depth}; MTEB's figures need 10", file=result.name)
    rows = {row.label: row for row in result.summary.ran}
    files = {}
    for label in result.labels:
        figures = {
            f"{theirs}_at_{k}": round(float(result.values(label, f"{ours}@{k}").mean()), 5)
            for ours, theirs in NAMES.items()
            for k in CUTS
            if k <= depth
        }
        score = {**figures, "main_score": figures[MAIN], "hf_subset": "default", "languages": list(known.languages)}
        model = re.sub(r"[^\w.-]+", "__", label if rows[label].row_type != "dense" else rows[label].model)
        files[f"{model}/{re.sub(r'[^A-Za-z0-9.+-]+', '_', label)}/{name}.json"] = {
            "dataset_revision": str(described.get("revision") or ""),
            "task_name": name,
            "mteb_version": None,
            "scores": {str(described.get("split") or known.split): [score]},
            "evaluation_time": result.summary.seconds,
            "kg_co2_emissions": None,
        }
    return files


def export_mteb(
    result: ResultArgument,
    out: Annotated[Path, typer.Option(help="Write into this folder.")] = Path("mteb-results"),
    task: Annotated[str, typer.Option(help="Name the MTEB task if the line-up does not.")] = "",
) -> None:
    """Write a result's rows in MTEB's layout: MODEL/LABEL/TASK.json."""
    check_folder(out)
    for name, content in mteb_files(load(result), task).items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)
        echo(f"Written to {path}")
