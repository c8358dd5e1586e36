"""The dry run: what it counts, and that it does not hold the corpus to count it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core import corpus
from bakeoff.core.facts import fact
from bakeoff.embedding.counting import DRAWN, TextSample
from bakeoff.lineup.lineup import Lineup
from bakeoff.running import plan as planning
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.systems.embedding import seconds_per_text
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role

from tests.cli.test_wrong_arguments import bakeoff
from tests.errors import says
from tests.providers.real_weights import require

TEXTS = ["alpha beta", "gamma", "alpha beta", "delta", "gamma", "epsilon", "zeta eta theta"]  # five distinct


def _lineup(folder: Path) -> Lineup:
    documents = [{"_id": f"d{number}", "title": "", "text": text} for number, text in enumerate(TEXTS)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    (folder / "queries.jsonl").write_text('{"_id": "q0", "text": "alpha"}\n{"_id": "q1", "text": "delta"}\n')
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td3\t1\n")
    entry = 'rounds = 1\ntask = { format = "beir", folder = "." }\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    (folder / "lineup.toml").write_text(entry)
    return Lineup.read(folder / "lineup.toml")


@pytest.mark.parametrize("in_memory", [0, 1 << 20])
def test_blocks_count_each_distinct_text_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", in_memory)
    monkeypatch.setattr("bakeoff.running.plan.BLOCK", 2)
    lineup, settings = _lineup(tmp_path), Settings(cache=tmp_path / "vectors")
    (before,) = planning.plan(lineup, settings)
    assert (before.texts, before.cached) == (7, 0)  # five documents, two queries
    run(lineup, settings)
    (after,) = planning.plan(lineup, settings)
    assert (after.texts, after.cached) == (7, 5)  # a local provider is asked for queries each time


class Slow(Provider):
    """A model that is here; each word takes a second by the clock that it turns."""

    name, default_model, local, own_tokens = "slow", "slow", True, True

    def __init__(self) -> None:
        self.card, self.now, self.asked = ModelCard(name="slow", dimensions=2), 0.0, 0

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        self.now, self.asked = self.now + sum(map(self.count_tokens, texts)), self.asked + len(texts)
        return EmbeddingBatch(np.ones((len(texts), 2), dtype=np.float32))


def test_a_few_texts_tell_the_pace_and_a_slow_model_is_asked_for_fewest() -> None:
    slow = Slow()
    assert seconds_per_text(slow, TEXTS, lambda: slow.now) == pytest.approx(11 / 7)  # 11 words in 7 texts
    assert slow.asked == 2  # one loads the weights, and one is as long as it takes to know
    assert seconds_per_text(slow, TEXTS, lambda: 0.0) == 0
    assert slow.asked == 2 + 1 + len(TEXTS)
    assert seconds_per_text(slow, []) is None


def test_no_pace_is_measured_of_what_may_cost_something() -> None:
    class Elsewhere(Slow):
        own_tokens = False

    other = Elsewhere()
    assert seconds_per_text(other, TEXTS) is None
    assert other.asked == 0


def test_texts_are_drawn_from_all_batches() -> None:
    drawn = TextSample(0)
    for start in range(0, 1000, 100):
        drawn.add([str(number) for number in range(start, start + 100)])
    numbers = [int(text) for text in drawn.texts]
    assert len(set(numbers)) == DRAWN
    assert len({number // 100 for number in numbers}) > 4
    few = TextSample(0)
    few.add(TEXTS[:2])
    assert sorted(few.texts) == sorted(TEXTS[:2])


def test_the_dry_run_says_how_long_a_model_that_runs_here_takes(tmp_path: Path) -> None:
    require("minilm")
    lineup, settings = _lineup(tmp_path), Settings(cache=tmp_path / "vectors")
    text = (tmp_path / "lineup.toml").read_text()
    (tmp_path / "lineup.toml").write_text(text.replace('"fake"', '"minilm"'))
    (planned,) = planning.plan(Lineup.read(tmp_path / "lineup.toml"), settings)
    assert planned.minutes is not None
    assert 0 < planned.minutes < 5
    assert planned.tokens > 0
    assert planned.note == fact("local_timed")
    (fake,) = planning.plan(lineup, settings)
    assert fake.minutes is None
    assert fake.note == fact("local")


def test_the_total_is_of_the_rows_that_would_run_and_none_is_absent_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    _lineup(tmp_path)
    with (tmp_path / "lineup.toml").open("a") as file:
        file.write('[[contender]]\nprovider = "openai"\nstore = "faiss"\n[[contender]]\nranker = "bm25"\n')
    code, out, err = bakeoff(tmp_path, "run", "lineup.toml", "--dry-run")
    assert code == 0, out + err
    said = " ".join(out.split())
    says(out, "bm25")
    assert re.search(r"\$0\.000000\b.*\$0\.00000\d\b", said)
