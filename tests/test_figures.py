"""Refactoring changes no figure: rows that are the same on every machine score as they did in the old layout.

`figures_before.json` was written from results of revision 38aa2a5. `bench/same_figures.py` compares every row.
Profiles without a label, which scored 0 then, have been taken out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import bakeoff
import numpy as np
import pytest
from bakeoff.core.paths import root

BEFORE: dict[str, Any] = json.loads((Path(__file__).parent / "figures_before.json").read_bytes())


@pytest.mark.parametrize("name", BEFORE)
def test_figures_are_those_of_before(name: str, tmp_path: Path) -> None:
    before = BEFORE[name]
    file = root() / "lineups" / f"{name}.toml"
    lineup = dataclasses.replace(bakeoff.Lineup.read(file).narrow(before["only"]), rounds=1)
    folder = bakeoff.save(bakeoff.run(lineup), tmp_path)
    result = bakeoff.load(folder)
    assert result.summary.task.fingerprint == before["fingerprint"]
    assert _digest(folder / "judgments.qrels") == before["qrels_sha256"]
    assert set(result.labels) == set(before["rows"])
    for label, row in before["rows"].items():
        if label == "bm25":  # since then filled up with what matches nothing; what matches must be as it was
            lines = (folder / "runs" / "bm25.trec").read_bytes().splitlines(keepends=True)
            matched = b"".join(line for line in lines if float(line.split()[4]) > 0)
            assert hashlib.sha256(matched).hexdigest() == row["trec_sha256"]
            continue
        for measure, values in row["values"].items():
            np.testing.assert_array_equal(np.round(result.values(label, measure), 12), values, f"{label} {measure}")
        assert _digest(folder / "runs" / f"{label}.trec") == row["trec_sha256"], label
    pairs = {(pair.a, pair.b): pair for pair in result.summary.verdict.pairs}
    for a, b, difference, low, high, *pvalues in before["pairs"]:
        if "bm25" in (a, b):
            continue
        pair = pairs[a, b]
        now = [pair.difference, pair.t_p, pair.wilcoxon_p]
        np.testing.assert_array_equal(np.round(now, 12), [difference, *pvalues[1:]], f"{a} against {b}")
        assert pair.p >= pair.t_p - 1e-12  # it has been Student's since, more cautious where failures may be rare
        assert pair.low is not None
        assert pair.high is not None
        assert pair.low <= pair.difference <= pair.high
        assert pair.high - pair.low >= 0.9 * (high - low)  # then by bootstrap, which is narrower or about the same


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
