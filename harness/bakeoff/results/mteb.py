"""A result in the layout of MTEB's own files, so that a row can stand beside its leaderboard."""

from __future__ import annotations

import re
from typing import Any

from bakeoff_providers.errors import InputError

from bakeoff.results.result import Result
from bakeoff.tasks.formats.mteb import MTEB_TASKS

CUTS = (1, 3, 5, 10, 20, 100, 1000)
NAMES = {"ndcg": "ndcg", "map": "map", "recall": "recall", "p": "precision", "mrr": "mrr"}
MAIN = "ndcg_at_10"


def mteb_files(result: Result, task: str = "") -> dict[str, dict[str, Any]]:
    """By path (model, revision, task): one file for each contender, with the figures that MTEB has.

    `task` is MTEB's name, needed where the line-up does not have it.
    """
    described = result.summary.lineup.get("task")
    described = described if isinstance(described, dict) else {}
    name = task or str(described.get("task") if described.get("format") == "mteb" else "")
    if name not in MTEB_TASKS:
        raise InputError("the result is not of a task that MTEB names", file=result.name, remedy="give --task SciFact")
    known, depth = MTEB_TASKS[name], result.summary.lineup.get("depth")
    if not isinstance(depth, int) or depth < 10:
        raise InputError(f"the rankings end at {depth}, and MTEB's figure needs 10", file=result.name)
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
