"""What the tests on real weights share: the reference vectors, and what to do where the weights are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers import weights
from bakeoff_providers.base import Provider, Role, check_batch

TEXT = "river rose overnight by four centimetres while quarterly profits of the vitamin maker fell sharply"


def reference_vectors(name: str) -> dict[str, Any]:
    """Vectors that somebody else's code made, with how it made them."""
    content: dict[str, Any] = json.loads((Path(__file__).parent / f"{name}_reference.json").read_text("utf-8"))
    return content


def require(name: str) -> None:
    """Missing weights fail a test: a skipped one would prove nothing."""
    if not weights.present(name):
        pytest.fail(f"the weights of {name} are not in {weights.folder(name)}; {weights.remedy(name)}")


def check_agreement(provider: Provider, reference: dict[str, Any]) -> None:
    """Unit vectors in the direction of the reference's."""
    texts = reference["texts"]
    batch = check_batch(provider.embed(texts, Role.DOCUMENT), texts, provider.card)
    expected = np.array(reference["vectors"])
    cosines = (batch.vectors * expected).sum(axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() >= 0.999
    np.testing.assert_allclose(np.linalg.norm(batch.vectors, axis=1), 1, atol=1e-5)
