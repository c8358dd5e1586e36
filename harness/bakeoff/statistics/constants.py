"""Shared defaults, so that no two tests or intervals disagree."""

from __future__ import annotations

ALPHA = 0.05  # an adjusted p up to this separates two contenders
SEED = 42
NOISE = 1e-12  # smaller differences are rounding errors, not wins
