"""What a task of golden profiles can be set to: its stages, its rules and its labels."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from bakeoff.extensions.kinds.eligibility import Rule

LabelMode = Literal["hybrid", "no_similarity"]
THRESHOLDS = {"tfidf": 0.12, "embeddings": 0.30}


class StageWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much similarity and common keywords count in the second stage."""

    similarity: Annotated[float, "weight of the similarity"] = 0.7
    keywords: Annotated[float, "weight of the share of common keywords"] = 0.3


class BoostStage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The third stage: rules that hold lift an item by their boost, within the first `depth` places."""

    depth: Annotated[int, "places of a ranking that boosts may change"] = 30
    boosts: Annotated[list[Rule], "rules that add their boost to what they hold for"] = []


class LabelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which labels judge the matrix, which attributes must match for a 2, and from which similarity on a 1 is given."""

    mode: Annotated[LabelMode, "which labels judge the matrix"] = "no_similarity"
    match: Annotated[tuple[str, ...], "attributes that must match by name for a label of 2"] = (
        "major",
        "state",
        "education_level",
    )
    needs: Annotated[Literal["all", "any"], "how many of them must match"] = "all"
    thresholds: Annotated[
        dict[str, float],
        "a similarity above it makes a label of 1 in hybrid mode, by provider; embeddings: all others",
    ] = msgspec.field(default_factory=lambda: dict(THRESHOLDS))

    @property
    def all_thresholds(self) -> dict[str, float]:
        """With the defaults of those that are not set."""
        return {**THRESHOLDS, **self.thresholds}


class ProfileSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the task file that have a shape of their own."""

    rules: Annotated[list[Rule], "who may have what, each with a reason code"]
    weights: Annotated[StageWeights, "how much similarity and common keywords count"] = StageWeights()
    rerank: Annotated[BoostStage, "rules that lift items at the end"] = BoostStage()
    labels: Annotated[LabelSettings, "how items are labelled without people"] = LabelSettings()
    k: Annotated[int, "items that a profile is given"] = 10
