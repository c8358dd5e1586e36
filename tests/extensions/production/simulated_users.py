"""People with known tastes: they look down a list less and less, and click what is relevant to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

EXAMINED = np.array([1.0, 0.7, 0.5, 0.38, 0.3, 0.25, 0.2, 0.17, 0.14, 0.12])  # chance that a place is looked at


def clicks(
    shown: Sequence[str], attraction: Mapping[str, float], rng: np.random.Generator, examined: np.ndarray = EXAMINED
) -> list[str]:
    """Clicked documents under the position-based model: looked at, and attractive."""
    draws = rng.random(len(shown))
    return [
        document
        for place, document in enumerate(shown)
        if draws[place] < examined[place] * attraction.get(document, 0.02)
    ]
