"""The colours of charts as colour-blind readers see them, by simulations that were published."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bakeoff.report.charts import DARK, HUES, LIGHT, hues, shapes
from numpy.typing import NDArray

from tests.report.made import row, summary, verdict

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
SIMULATIONS = {
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])  # D65
LEAST = 15.0  # ΔE76: what is further apart nobody takes for the other


def linear(colour: str) -> NDArray[np.float64]:
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    ratio = XYZ @ np.clip(rgb, 0, 1) / WHITE
    cubes = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * cubes[1] - 16, 500 * (cubes[0] - cubes[1]), 200 * (cubes[1] - cubes[2])])


def difference(a: str, b: str, simulation: str) -> float:
    matrix = np.array(SIMULATIONS[simulation])
    return float(np.linalg.norm(lab(matrix @ linear(a)) - lab(matrix @ linear(b))))


def test_the_simulation_by_a_known_pair() -> None:
    """White and black stay 100 apart, and a red and a green that differ by hue alone nearly meet."""
    assert difference("#ffffff", "#000000", "deuteranopia") == pytest.approx(100, abs=0.5)
    assert difference("#b2355b", "#69717c", "protanopia") < 25


@pytest.mark.parametrize("simulation", SIMULATIONS)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_any_two_series_differ_for_colour_blind_readers(palette: dict[str, str], simulation: str) -> None:
    series = {name: palette[name] for name in (*(f"c{place}" for place in range(HUES)), "surface")}
    close = {
        (a, b): round(gap, 1)
        for a, b in itertools.combinations(series, 2)
        if (gap := difference(series[a], series[b], simulation)) < LEAST
    }
    assert close == {}


def test_no_colour_repeats() -> None:
    given = hues(f"model {place}" for place in range(HUES + 3))
    assert len(set(list(given.values())[:HUES])) == HUES
    assert set(list(given.values())[HUES:]) == {"rest"}


def test_no_shape_repeats() -> None:
    rows = {count: [row(f"minilm+store{place}", 0.7) for place in range(count)] for count in (6, 7)}
    made = {count: shapes(summary(some, verdict(some, "one row", "none", None))) for count, some in rows.items()}
    assert len(set(made[6].values())) == 6
    assert set(made[7].values()) == {"circle"}
