"""As good as another within a margin: a statement of its own, which "not significantly different" is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bakeoff.core.arrays import Values
from bakeoff.statistics.columns import spread
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.small_samples import DIFFERENCES, exact_p_below, too_few
from bakeoff.statistics.tests import holm_of_distinct, hypothesis_of

Relation = Literal["better", "worse", "equivalent", "undecided"]


def equivalence_test(differences: ArrayLike, margin: float, *, bounded: bool = True) -> float:
    """p of two one-sided paired tests (Schuirmann, 1987): small where the mean difference is within ± the margin.

    Student's; of too few queries, or too few that differ, the exact ones for differences from −1 to 1, as a spread that
    was not seen is no proof that there is none. Where values have no bounds, no spread shows nothing.
    """
    from scipy.special import stdtr

    d = np.asarray(differences, dtype=np.float64)
    if len(d) < 2:  # a single query says nothing, whatever it shows
        return 1.0
    if bounded and too_few(d):
        return max(exact_p_below(side, margin, DIFFERENCES) for side in (d, -d))
    room, sd = margin - abs(float(d.mean())), spread(d)
    return float(stdtr(len(d) - 1, -room / sd * math.sqrt(len(d)))) if sd > 0 else 1.0


def equivalence_tests(differences: Sequence[Values], margin: float, *, bounded: bool = True) -> Values:
    """Holm-adjusted p of each pair; equal differences are one hypothesis."""
    p = [equivalence_test(d, margin, bounded=bounded) for d in differences]
    return holm_of_distinct(p, [hypothesis_of(d) or b"" for d in differences])


def relation(difference: float, p: float, p_equivalent: float | None, alpha: float = ALPHA) -> Relation:
    """What can be said of a pair: a difference within the margin is equivalence, even where it is significant."""
    if p_equivalent is not None and p_equivalent <= alpha:
        return "equivalent"
    if p <= alpha:
        return "better" if difference > 0 else "worse"
    return "undecided"
