"""What every test and interval starts from, so that two of them never disagree by their defaults."""

from __future__ import annotations

ALPHA = 0.05  # an adjusted p up to this separates two contenders
SEED = 42
NOISE = 1e-12  # differences below this are rounding of equal scores, not wins
