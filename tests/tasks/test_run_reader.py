"""The fast reader of runs against the ordinary one: the same figures, and whatever it can't read it leaves alone."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from bakeoff.core.ranking import ScoredRun
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.results.score import score
from bakeoff.tasks.formats.trec import read_plain_run, read_run
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

polars = pytest.importorskip("polars")
MEASURES = [Measure.parse(text) for text in ("ndcg@3", "map", "mrr", "p@5", "recall@2", "judged@3")]
IDS = st.sampled_from([*(f"d{n}" for n in range(8)), "ä", "a-rather-long-id-of-a-document", '"quoted"', "NA", "null"])
QUERIES = st.sampled_from(["q1", "q2", "q3", "10"])
SCORES = st.sampled_from([0.0, 0.5, 1.0, 1.0 + 1e-9]) | st.floats(-9, 9)


@given(
    st.dictionaries(QUERIES, st.dictionaries(IDS, SCORES, min_size=1), min_size=1),
    st.dictionaries(QUERIES, st.dictionaries(IDS, st.integers(0, 3), min_size=1), min_size=1),
    st.randoms(use_true_random=False),
    st.sampled_from([" ", "\t"]),
    st.none() | st.integers(1, 6),
    st.sampled_from([np.float32, np.float64]),
)
def test_it_joins_as_the_ordinary_reader_does(
    tmp_path_factory: pytest.TempPathFactory,
    run: dict[str, dict[str, float]],
    judgments: dict[str, dict[str, int]],
    random: Random,
    separator: str,
    depth: int | None,
    precision: type[np.floating[Any]],
) -> None:
    """Whatever the order of the lines."""
    lines = [separator.join((q, "Q0", d, "1", repr(s), "tag")) for q, found in run.items() for d, s in found.items()]
    random.shuffle(lines)
    file = tmp_path_factory.mktemp("runs") / "run.trec"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = read_plain_run(file, precision)
    assert table is not None
    assert set(table) == set(run)
    queries = list(judgments)
    measures = [measure for measure in MEASURES if depth is None or (measure.k or 99) <= depth]
    ordinary = ScoredRun.of(read_run(file), precision)
    ours, theirs = (score_queries(join(one, judgments, queries, depth), measures) for one in (table, ordinary))
    assert dict(table) == dict(ordinary)
    for measure in measures:
        np.testing.assert_array_equal(ours[measure], theirs[measure], str(measure))


@pytest.mark.parametrize(
    "content",
    [
        "", "q Q0 d 1 0.5 t\nq Q0 d 2 0.4 t\n", "q Q0 d 1 nan t\n", "q Q0 d 1 1e39 t\n", "q Q0 d 1 0.5\n",
        "q Q0 d 1 x t\n", "q  Q0 d 1 0.5 t\n", "q Q0 d 1 0.5 t more\n", "q Q0 d 1 0.5 t\nq Q0  2 0.5 t\n",
        "q Q0 d 1 0.5 t\nq Q0 e\n", "q Q0 a\tb 1 0.5 t\n", "q Q0 d 1 0.5 t\r\n", "q Q0 d 1 0.5 t\n\nq Q0 e 2 0.4 t\n",
        "q Q0 d 1 0.5 t\nq Q0 e 2 0.4 \n", "q\tQ0\ta b\t1\t0.5\tt\n", "# made elsewhere\nq Q0 d 1 0.5 t\n",
        "q Q0 d 1 0.5 t\nq Q0 e 2 0.4\nq Q0 f 3 0.3 t x\n", "q Q0 d 1 0.5 t\nq Q0 e 2 -inf t\n",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_ordinary_reader(tmp_path: Path, content: str) -> None:
    (tmp_path / "run").write_text(content)
    assert read_plain_run(tmp_path / "run", np.float64) is None


def test_two_documents_whose_hashes_begin_alike_are_no_duplicate(tmp_path: Path) -> None:
    ids = polars.Series([f"d{n}" for n in range(300_000)])
    marks = polars.DataFrame({"id": ids, "mark": ids.hash() // 2**32})
    alike = marks.filter(marks["mark"].is_duplicated()).sort("mark")["id"].to_list()
    assert len(alike) >= 2
    (tmp_path / "run").write_text("".join(f"q Q0 {document} 1 0.5 t\n" for document in alike))
    table = read_plain_run(tmp_path / "run", np.float64)
    assert table is not None
    assert table.ids_of(np.arange(len(alike))) == alike


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 d 1 0.5 t\nq Q0 e 2 0.4 t")
    table = read_plain_run(tmp_path / "run", np.float64)
    assert table is not None
    assert table.ids_of(np.array([0, 1])) == ["d", "e"]


def test_errors_of_score_still_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 d 1 0.5 t\nq Q0 d 2 0.4 t\n")
    with refuses(InputError, "'d'", place="line 2", file="run"):
        score({"q": {"d": 1}}, {"run": tmp_path / "run"})
