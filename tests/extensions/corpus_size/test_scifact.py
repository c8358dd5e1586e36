"""An estimate from three tenths of SciFact: the score of all documents is in its brackets, below its middle."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from bakeoff.extensions.corpus_size.study import corpus_sizes
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.settings import Settings

WHOLE, DOCUMENTS = 0.686, 5183  # NDCG@10 of bm25 on all of them, measured on the whole corpus
SHARE = 0.3


@pytest.mark.calibration
@pytest.mark.skipif("BAKEOFF_DATA" not in os.environ, reason="BAKEOFF_DATA is not set")
@pytest.mark.parametrize("seed", range(3))
def test_the_middle_of_an_estimate_flatters_and_its_brackets_hold(tmp_path: Path, seed: int) -> None:
    source = Path(os.environ["BAKEOFF_DATA"]) / "scifact"
    judged = {line.split("\t")[1] for line in (source / "qrels" / "test.tsv").read_text().splitlines()[1:]}
    rng = random.Random(seed)
    with (tmp_path / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for line in (source / "corpus.jsonl").read_text(encoding="utf-8").splitlines(keepends=True):
            if line.split('"_id": "')[1].split('"')[0] in judged or rng.random() < SHARE:
                file.write(line)
    shutil.copy(source / "queries.jsonl", tmp_path)
    shutil.copytree(source / "qrels", tmp_path / "qrels")
    (tmp_path / "sizes.toml").write_text(
        'measures = ["ndcg@10"]\ntask = { format = "beir", folder = "." }\n[[contender]]\nranker = "bm25"\n'
    )
    lineup = Lineup.read(tmp_path / "sizes.toml")
    (row,) = corpus_sizes(lineup, Settings(cache=tmp_path / "cache"), (300, 500, 1000), DOCUMENTS).rows
    assert row.estimate is not None
    assert row.estimate.low < WHOLE < row.estimate.high
    assert row.estimate.mean > WHOLE
