"""Retrieval tasks by MTEB name: the data set and split on the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.core.task import Task
from bakeoff.extensions.datasets import hub
from bakeoff.tasks.formats.rows import HubRevision, Rel

EXTRA = hub.EXTRA


class MtebTask(NamedTuple):
    """Where a task's tables are; its languages as MTEB writes them."""

    dataset: str
    split: str = "test"
    languages: tuple[str, ...] = ("eng-Latn",)


# As in mteb 2.26.
MTEB_TASKS = {
    "ArguAna": MtebTask("mteb/arguana"),
    "ClimateFEVER": MtebTask("mteb/climate-fever"),
    "DBPedia": MtebTask("mteb/dbpedia"),
    "FEVER": MtebTask("mteb/fever"),
    "FiQA2018": MtebTask("mteb/fiqa"),
    "HotpotQA": MtebTask("mteb/hotpotqa"),
    "MSMARCO": MtebTask("mteb/msmarco", "dev"),
    "NFCorpus": MtebTask("mteb/nfcorpus"),
    "NQ": MtebTask("mteb/nq"),
    "QuoraRetrieval": MtebTask("mteb/quora"),
    "SCIDOCS": MtebTask("mteb/scidocs"),
    "SciFact": MtebTask("mteb/scifact"),
    "TRECCOVID": MtebTask("mteb/trec-covid"),
    "Touche2020": MtebTask("mteb/touche2020"),
}


def load(
    name: str,
    base: Path,
    task: Annotated[str, "its name in MTEB, such as SciFact"],
    split: Annotated[str, "split of the judgments; default: the one that MTEB scores"] = "",
    revision: HubRevision = None,
    rel: Rel = 1,
) -> Task:
    """Load the task through the hub format. A folder `mteb/…` next to the line-up takes precedence."""
    if task not in MTEB_TASKS:
        raise InputError(
            f"unknown MTEB task {task!r}", place="task",
            remedy=f"{nearest(task, list(MTEB_TASKS))}; any other: format = \"hub\" and its dataset",
        )  # fmt: skip
    known = MTEB_TASKS[task]
    called = name if name != "task" else task
    return hub.load(called, base, known.dataset, split or known.split, revision, rel=rel)
