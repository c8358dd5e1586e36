"""A hosted provider that is never quite the same: for canaries that must stay quiet about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.dialects import Asked
from tests.wire import WireServer


class NoisyServer(WireServer):
    """A deployment whose machines differ a little: no two calls answer quite the same."""

    def __init__(self, seed: int, dimensions: int = 64) -> None:
        super().__init__()
        self.models = {"text-embedding-3-small": dimensions, "another model": dimensions}
        self.shift = 0.0  # how far another model's vectors are from these
        self._rng = np.random.default_rng(seed)

    def vectors(self, asked: Asked) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Noise that a whole call shares, noise of each value, and half precision now and then."""
        exact = super().vectors(asked)
        if self.shift:
            other = super().vectors(Asked("another model", asked.texts, asked.task, exact.shape[1]))
            exact = exact + self.shift * other
        noise = self._rng.normal(0, 2e-4, exact.shape[1]) + self._rng.normal(0, 1e-4, exact.shape)
        noisy = exact + noise
        rounded = noisy.astype(np.float16) if self._rng.random() < 0.3 else noisy
        return np.asarray(rounded, dtype=np.float32)
