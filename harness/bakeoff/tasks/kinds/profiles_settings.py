"""What a task of golden profiles can be set to: its stages, its rules and its labels."""

from __future__ import annotations

from typing import Literal

import msgspec

from bakeoff.tasks.kinds.eligibility import Rule

LabelMode = Literal["hybrid", "no_similarity"]


class StageWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much similarity and common keywords count in the second stage."""

    similarity: float = 0.7
    keywords: float = 0.3


class Rerank(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The third stage: rules that hold lift an item by their boost, within the first `depth` places."""

    depth: int = 30
    boosts: list[Rule] = []


class LabelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which labels judge the matrix, which attributes must match for a 2, and from which similarity on a 1 is given."""

    mode: LabelMode = "no_similarity"
    match: tuple[str, ...] = ("major", "state", "education_level")
    needs: Literal["all", "any"] = "all"
    # by provider; `embeddings` stands for all that have none of their own
    thresholds: dict[str, float] = msgspec.field(default_factory=lambda: {"tfidf": 0.12, "embeddings": 0.30})


class ProfileSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the task file that have a shape of their own."""

    rules: list[Rule]
    weights: StageWeights = StageWeights()
    rerank: Rerank = Rerank()
    labels: LabelSettings = LabelSettings()
    k: int = 10
