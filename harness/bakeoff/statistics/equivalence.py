"""Equivalence within a margin, which is more than "not significantly different"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bakeoff.core.arrays import Values
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.guarded import WORST, equivalence_p
from bakeoff.statistics.tests import holm_of_distinct, hypothesis_of

Relation = Literal["better", "worse", "equivalent", "undecided"]


def equivalence_tests(differences: Sequence[Values], margin: float, *, worst: float | None = WORST) -> Values:
    """The Holm-adjusted p of each pair. Equal differences are one hypothesis."""
    p = [equivalence_p(d, margin, worst=worst) for d in differences]
    return holm_of_distinct(p, [hypothesis_of(d) or b"" for d in differences])


def relation(difference: float, p: float, p_equivalent: float | None, alpha: float = ALPHA) -> Relation:
    """The relation of a pair. A difference within the margin is equivalence, even if it is significant."""
    if p_equivalent is not None and p_equivalent <= alpha:
        return "equivalent"
    if p <= alpha:
        return "better" if difference > 0 else "worse"
    return "undecided"
