"""As good as another within a margin: a statement of its own, which "not significantly different" is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import spread
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.tests import holm

Relation = Literal["better", "worse", "equivalent", "undecided"]


def equivalence_test(differences: ArrayLike, margin: float) -> float:
    """p of two one-sided paired t-tests (Schuirmann, 1987): small where the mean difference is within ± the margin.

    A single query says nothing, whatever it shows.
    """
    from scipy.special import stdtr

    d = np.asarray(differences, dtype=np.float64)
    if len(d) < 2:
        return 1.0
    mean, sd = float(d.mean()), spread(d)
    room = margin - abs(mean)
    if sd == 0:
        return 0.0 if room > NOISE else 1.0
    return float(stdtr(len(d) - 1, -room / sd * math.sqrt(len(d))))


def equivalence_tests(differences: Sequence[Values], margin: float) -> Values:
    """Holm-adjusted p of each pair."""
    return holm([equivalence_test(d, margin) for d in differences])


def relation(difference: float, p: float, p_equivalent: float | None, alpha: float = ALPHA) -> Relation:
    """What can be said of a pair: a difference within the margin is equivalence, even where it is significant."""
    if p_equivalent is not None and p_equivalent <= alpha:
        return "equivalent"
    if p <= alpha:
        return "better" if difference > 0 else "worse"
    return "undecided"
