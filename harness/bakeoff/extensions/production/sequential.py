"""Looking every day without being fooled: tests and intervals that hold at all looks together, not only at the last.

Robbins' normal mixture: for a mean of n steps with standard error s, |estimate − truth| < s·√((1 + 1/r)·ln((1 + r)/α²))
holds for all n at once with probability 1 − α, where r = n/n₀ (Robbins 1970; Waudby-Smith et al. 2024 for estimated
variances). n₀ says where the interval is tightest, and must be chosen before any data are seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache


def ratio(n: float, planned: float, alpha: float) -> float:
    """The r of the formula that makes the interval tightest when n is as planned."""
    return _tightest(alpha) * n / planned


@cache
def _tightest(alpha: float) -> float:
    """The r with the least width: there, ln((1 + r)/α²) = r."""
    from scipy.special import lambertw

    return float(-lambertw(-(alpha**2) / math.e, -1).real) - 1


def width(r: float, alpha: float) -> float:
    """How many standard errors the interval reaches to either side."""
    return math.sqrt((1 + 1 / r) * math.log((1 + r) / alpha**2))


def p_value(z: float, r: float) -> float:
    """The smallest level at which the interval leaves out 0 when the estimate is z standard errors from it."""
    return min(1.0, math.sqrt(1 + r) * math.exp(-(z**2) * r / (2 * (1 + r))))


def split_p(users: Sequence[int], split: Sequence[float]) -> float:
    """p that users came in the planned proportions, valid at every look.

    The inverse of a likelihood ratio: of proportions drawn evenly from all there are, against the planned ones. Where
    these hold it is a martingale, which ever exceeds 1/p with a probability of p at most (Ville's inequality).
    """
    evidence = math.lgamma(len(users)) - math.lgamma(sum(users) + len(users))
    evidence += sum(
        math.lgamma(n + 1) - n * math.log(share / sum(split)) for n, share in zip(users, split, strict=True)
    )
    return math.exp(min(0.0, -evidence))
