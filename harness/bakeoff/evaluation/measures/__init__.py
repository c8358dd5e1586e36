"""Measures as value objects. A new one is a class in a file here and a line below (plug-ins: `bakeoff.measures`)."""

from __future__ import annotations

from bakeoff_providers.registry import Registry

from bakeoff.core.extensions import collect_entries
from bakeoff.evaluation.measures.base import Measure, deepest, primary_measure

__all__ = ["MEASURES", "Measure", "deepest", "families", "primary_measure"]

_HERE = "bakeoff.evaluation.measures"

MEASURES: Registry[Measure] = Registry(
    "measure",
    "bakeoff.measures",
    {
        "p": f"{_HERE}.hits:Precision",
        "recall": f"{_HERE}.hits:Recall",
        "f1": f"{_HERE}.hits:F1",
        "ndcg": f"{_HERE}.ndcg:NDCG",
        "map": f"{_HERE}.average_precision:AveragePrecision",
        "mrr": f"{_HERE}.hits:ReciprocalRank",
        "acc": f"{_HERE}.hits:Accuracy",
        "rprec": f"{_HERE}.hits:RPrecision",
        "judged": f"{_HERE}.hits:Judged",
        "stale": f"{_HERE}.hits:Stale",
        "dcg": f"{_HERE}.ndcg:DCG",
        "gm_map": f"{_HERE}.average_precision:GeometricMAP",
        **collect_entries("MEASURES"),
        # Aliases: accepted, and printed as the main name.
        "ap": f"{_HERE}.average_precision:AveragePrecision",
        "hit": f"{_HERE}.hits:Accuracy",
        "success": f"{_HERE}.hits:Accuracy",
    },
)


def families() -> dict[str, type[Measure]]:
    """Every measure by its printed name, in the order above."""
    return {family.name: family for _, family in MEASURES.load_all()}
