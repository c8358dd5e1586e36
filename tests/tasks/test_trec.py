"""TREC files: what is written scores the same in trec_eval, and what is read is named when it can't be right."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from bakeoff.core.ranking import ScoredRun, make_ranking
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.measures.grammar import measures_of
from bakeoff.evaluation.ranked_grades import join
from bakeoff.evaluation.score import score_queries
from bakeoff.tasks.formats.trec import qrels_text, read_qrels, read_run, run_parts
from bakeoff_providers.errors import InputError
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.errors import refuses, says

IDS = [f"d{number}" for number in range(12)]
SCORES = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(-1e3, 1e3), st.floats(0.5, 0.5000001))
THEIRS = {"map": "map", "ndcg": "ndcg", "recip_rank": "mrr", "P_5": "p@5", "recall_5": "recall@5", "Rprec": "rprec"}
NAMES = st.text(
    st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=6
) | st.sampled_from(["a b", "a%20b c", "tab\there", "nb\u00a0sp", "100%", "é", "line\nbreak"])  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(IDS), SCORES, min_size=1),
    st.dictionaries(st.sampled_from(IDS), st.integers(0, 3), min_size=1),
)
def test_ties_and_near_ties_score_the_same_in_trec_eval(scores: dict[str, float], grades: dict[str, int]) -> None:
    rankings = {"q": make_ranking(scores.items())}
    run = pytrec_eval.parse_run("".join(run_parts(rankings, "tag")).splitlines())
    theirs = pytrec_eval.RelevanceEvaluator({"q": grades}, {"map", "ndcg", "recip_rank", "P.5"}).evaluate(run)["q"]
    names = {"map": "map", "ndcg": "ndcg", "recip_rank": "mrr", "P_5": "p@5"}
    ours = score_queries(join(rankings, {"q": grades}, ["q"]), [Measure.parse(name) for name in names.values()])
    for name, spelling in names.items():
        assert abs(ours[Measure.parse(spelling)][0] - theirs[name]) < 1e-9


def _each(queries: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    rows = st.dictionaries(st.sampled_from(IDS), values, min_size=1)
    return st.dictionaries(st.sampled_from(queries), rows, min_size=1)


@given(run=_each(["q1", "q2", "q3"], SCORES), judgments=_each(["q1", "q2", "q4"], st.integers(0, 3)))
def test_what_is_read_scores_as_in_trec_eval(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, dict[str, float]], judgments: dict[str, dict[str, int]]
) -> None:
    """The lines come in an order that says nothing, with ranks that lie, as in runs from elsewhere."""
    folder = tmp_path_factory.getbasetemp()
    lines = [f"{q} Q0 {d} 1 {s!r} tag" for q, scores in run.items() for d, s in sorted(scores.items())]
    (folder / "run").write_text("\n".join(lines))
    (folder / "qrels").write_text(qrels_text(judgments))
    read, truth = read_run(folder / "run"), read_qrels(folder / "qrels")
    assert read == run
    assert truth == judgments
    queries = sorted(judgments)
    ours = score_queries(
        join(ScoredRun.of(read, np.float32), truth, queries), [Measure.parse(name) for name in THEIRS.values()]
    )
    theirs = pytrec_eval.RelevanceEvaluator(
        judgments, {"map", "ndcg", "recip_rank", "P.5", "recall.5", "Rprec"}
    ).evaluate(pytrec_eval.parse_run(lines))
    for name, spelling in THEIRS.items():
        for place, query in enumerate(queries):
            expected = theirs[query][name] if query in theirs else 0.0
            assert ours[Measure.parse(spelling)][place] == pytest.approx(expected, abs=1e-9)


@example({"#1": {"d": 1}, "2": {"#d": 0}})
@given(st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers(0, 3), min_size=1), min_size=1))
def test_any_id_can_be_written_and_stays_itself(
    tmp_path_factory: pytest.TempPathFactory, judgments: dict[str, dict[str, int]]
) -> None:
    file = tmp_path_factory.getbasetemp() / "x"
    try:
        text = qrels_text(judgments)
    except InputError as error:
        assume("are the same in a TREC file" not in str(error))
        raise
    file.write_text(text, encoding="utf-8", newline="")
    read = read_qrels(file)
    assert [list(grades.values()) for grades in read.values()] == [list(g.values()) for g in judgments.values()]
    for query, written in zip(judgments, read, strict=True):
        assert written == query or query.startswith("#") or any(character.isspace() for character in query)
    rankings = {query: make_ranking((document, 1.0) for document in grades) for query, grades in judgments.items()}
    theirs = pytrec_eval.parse_qrel(text.split("\n")[:-1])
    assert {query: len(grades) for query, grades in theirs.items()} == {q: len(grades) for q, grades in read.items()}
    file.write_text("".join(run_parts(rankings, "a tag")), encoding="utf-8", newline="")
    assert {q: set(scores) for q, scores in read_run(file).items()} == {q: set(grades) for q, grades in read.items()}


def test_ids_with_white_space_are_percent_encoded_alike_in_runs_and_qrels() -> None:
    assert "".join(run_parts({"a query": make_ranking([("50% off", 2.0), ("50%", 1.0)])}, "my tag")) == (
        "a%20query Q0 50%25%20off 1 2.0 my%20tag\na%20query Q0 50% 2 1.0 my%20tag\n"
    )
    assert qrels_text({"a query": {"50% off": 1, "50%": 0}}) == "a%20query 0 50%25%20off 1\na%20query 0 50% 0\n"
    with pytest.raises(InputError) as caught:
        qrels_text({"q": {"a b": 1, "a%20b": 0}})
    assert all(name in str(caught.value) for name in ("'a%20b'", "'a b'"))


def test_gzip_windows_lines_and_trailing_columns_are_read(tmp_path: Path) -> None:
    text = "\ufeffq1\tQ0\td1\t1\t2.5\ttag more junk\r\n\r\nq1 Q0 d2 2 1e-3 tag\r\nq2 Q0 d1 1 -7 tag".encode()
    plain, packed = tmp_path / "run", tmp_path / "packed"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    assert read_run(plain) == read_run(packed) == {"q1": {"d1": 2.5, "d2": 0.001}, "q2": {"d1": -7.0}}
    packed.write_bytes(gzip.compress(text)[:-9])
    with refuses(InputError, file="packed"):
        read_run(packed)


@pytest.mark.parametrize(
    ("read", "lines", "said"),
    [
        (read_run, "q Q0 d 1 0.5 t\nq Q0 d2 2 0.4\n", "line 2"),
        (read_run, "q Q0 d 1 0.5 t\nq Q0 e 2 nan t\n", "'nan'"),
        (read_run, "q Q0 d 1 inf t\n", "'inf'"),
        (read_run, "q Q0 d 1 1e39 t\n", r"line 1: score '1e39'"),
        (read_run, "q Q0 d 1 1_0 t\n", r"line 1: score '1_0'"),
        (read_run, "q Q0 d 1 high t\n", r"line 1: score 'high'"),
        (read_run, "q Q0 d 1 2 t\n\np Q0 d 1 2 t\nq Q0 d 1 1 t\n", "'d'"),
        (read_run, "\n \n", "file"),
        (read_qrels, "q 0 d 1\nq 0 e\n", "line 2"),
        (read_qrels, "q 0 d 1 extra\n", "line 1"),
        (read_qrels, "q 0 d 1\nq 0 e 1.5\n", "'1.5'"),
        (read_qrels, "q 0 d yes\n", r"line 1: grade 'yes'"),
        (read_qrels, "q 0 d nan\n", r"line 1: grade 'nan'"),
        (read_qrels, "q 0 d 1\nq 0 e -1\n", "line 2"),
        (read_qrels, "q 0 d 1\nq 0 d 1\n", "'q'"),
        (read_qrels, "", "file"),
    ],
)
def test_bad_files_are_named_by_line(tmp_path: Path, read: Callable[[Path], object], lines: str, said: str) -> None:
    (tmp_path / "file").write_text(lines)
    with refuses(InputError, said, file="file") as caught:
        read(tmp_path / "file")
    assert str(caught.value).startswith(str(tmp_path / "file"))


def test_comments_and_beirs_three_columns_are_read(tmp_path: Path) -> None:
    (tmp_path / "commented").write_text("# made by hand\nq 0 d 1\n  # more\nq 0 e 2\n")
    (tmp_path / "beir.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\nq\te\t2\n")
    assert read_qrels(tmp_path / "commented") == read_qrels(tmp_path / "beir.tsv") == {"q": {"d": 1, "e": 2}}


@pytest.mark.parametrize(
    ("lines", "remedy"),
    [
        ("q\td\t1\n", "BEIR"),
        ("q Q0 d 1 0.5 run\n", ""),
    ],
)
def test_qrels_that_are_something_else_get_a_remedy(tmp_path: Path, lines: str, remedy: str) -> None:
    (tmp_path / "qrels").write_text(lines)
    with pytest.raises(InputError) as caught:
        read_qrels(tmp_path / "qrels")
    says(caught.value.remedy, remedy)


def test_negative_grades_are_unjudged_on_request(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 d 1\nq 0 e -1\n")
    assert read_qrels(tmp_path / "qrels", sampled=True) == {"q": {"d": 1, "e": -1}}


def test_bytes_that_are_not_text_are_named_by_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"q 0 d 1\nq 0 \xff\xfe 1\n")
    with refuses(InputError, "UTF-8", place="line 2", file="x"):
        read_qrels(tmp_path / "x")


@given(st.binary(max_size=60) | st.text("q0dQ .1-\n\t", max_size=60).map(str.encode))
def test_no_bytes_make_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "x"
    file.write_bytes(content)
    for reader in (read_run, read_qrels):
        said = ""
        try:
            assert reader(file)
        except InputError as error:
            said = str(error)
        assert not said or said.startswith(str(file))


@pytest.mark.parametrize(
    ("written", "measures"),
    [
        ("ndcg_cut.5,10", ["ndcg@5", "ndcg@10"]),
        ("P_10", ["p@10"]),
        ("recall.100", ["recall@100"]),
        ("success.1", ["acc@1"]),
        ("map_cut.10", ["map@10"]),
        ("recip_rank", ["mrr"]),
        ("Rprec", ["rprec"]),
        ("ndcg(gain=exp)@5", ["ndcg(gain=exp)@5"]),
        ("map(over=found,rel=2)@5,mrr", ["map(over=found,rel=2)@5", "mrr"]),
    ],
)
def test_names_of_trec_eval_are_understood(written: str, measures: list[str]) -> None:
    assert [str(measure) for measure in measures_of(written)] == measures


@pytest.mark.calibration
@pytest.mark.skipif("BAKEOFF_DATA" not in os.environ, reason="BAKEOFF_DATA is not set")
@pytest.mark.parametrize("results", ["results.test", "results.trunc"])
@pytest.mark.parametrize("qrels", ["qrels.test", "qrels.rel_level"])
def test_trec_evals_own_data_score_as_in_trec_eval(results: str, qrels: str) -> None:
    folder = Path(os.environ["BAKEOFF_DATA"]) / "trec_eval"
    run, truth = read_run(folder / results), read_qrels(folder / qrels, sampled=True)
    wanted = {"map", "ndcg", "recip_rank", "P.5,10,100", "recall.5,10,100", "ndcg_cut.5,10,100", "map_cut.10", "Rprec"}
    with (folder / results).open() as file:
        parsed = pytrec_eval.parse_run(" ".join(line.split()[:6]) for line in file)
    with (folder / qrels).open() as file:
        theirs = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(file), wanted).evaluate(parsed)
    queries = list(truth)
    names = {name: measures_of(name)[0] for name in next(iter(theirs.values()))}
    ours = score_queries(join(ScoredRun.of(run, np.float32), truth, queries), list(names.values()))
    checked = 0
    for place, query in enumerate(queries):
        for name, value in theirs.get(query, {}).items():
            assert ours[names[name]][place] == pytest.approx(value, abs=1e-9), (query, name)
            checked += 1
    assert checked == len(theirs) * len(names) > 0
