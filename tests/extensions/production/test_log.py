"""From a log to a task: what is read and dropped, what a sample says of all traffic, what two lists have in common."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query, normalise
from bakeoff.extensions.production.log_import import PERSONAL, import_log, mask, personal
from bakeoff.extensions.production.log_replay import ask, overlap, rbo, replay
from bakeoff.extensions.production.log_sample import (
    build_matrix,
    draw,
    read_sample,
    sample_log,
    strata_arrays,
    strata_of,
)
from bakeoff.extensions.production.search_log import LogColumns, read_log, timestamp
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.statistics.stratified import estimate
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.errors import refuses, says
from tests.facts import arguments, sentences

ROWS: list[dict[str, Any]] = [
    {
        "time": "2026-11-02T10:00:00",
        "q": "Red  Shoes",
        "user": "ann@example.org",
        "shown": ["1", "2"],
        "clicked": ["2"],
    },
    {"time": "2026-11-03T10:00:00", "q": "red shoes", "user": "bob", "shown": ["1"], "clicked": []},
    {"time": "2026-11-03T11:00:00", "q": "mail to ann@example.org", "user": "bob", "shown": ["3"], "clicked": []},
    {"time": "2026-11-03T11:00:00", "q": "+49 170 1234567", "user": "bob", "shown": ["3"], "clicked": []},
]
NAMED = LogColumns(query="q")


def _write(path: Path) -> Path:
    if path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif path.suffix == ".csv":
        lines = [f"{r['time']},{r['q']},{r['user']},{' '.join(r['shown'])},{' '.join(r['clicked'])}" for r in ROWS]
        path.write_text("time,q,user,shown,clicked\n" + "\n".join(lines) + "\n", encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.parquet"])
def test_every_format_reads_the_same(name: str, tmp_path: Path) -> None:
    rows = read_log(_write(tmp_path / name), NAMED, ("query", "shown", "clicked"))
    assert [row.query for row in rows] == ["Red Shoes", "red shoes", "mail to ann@example.org", "+49 170 1234567"]
    assert rows[0].shown == ("1", "2")
    assert rows[0].clicked == ("2",)


def test_import_counts_normalises_and_drops_what_is_personal(tmp_path: Path) -> None:
    log = _write(tmp_path / "log.jsonl")
    check = import_log(log, NAMED, tmp_path / "clean.jsonl", drop_personal=True, salt="salt")
    written = (tmp_path / "clean.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["query"] for line in written.splitlines()] == ["red shoes", "red shoes"]
    assert "ann" not in written
    assert "bob" not in written
    assert check.figures["dropped"] == dict.fromkeys(PERSONAL, 1)
    says(sentences(check.facts))
    assert arguments(check.facts, "production.log_rows") == [{"rows": 2, "users": 2, "queries": 1, "once": 0}]
    assert arguments(check.facts, "production.log_days") == [{"first": "2026-11-02", "last": "2026-11-03"}]
    examples = [dropped["example"] for dropped in arguments(check.facts, "production.log_dropped")]
    assert "xxxx xx xxx@xxxxxxx.xxx" in examples  # its shape, not its content
    kept = import_log(log, NAMED, tmp_path / "all.jsonl", drop_personal=False, salt="salt")
    assert kept.figures["rows"] == 4


def test_two_imports_do_not_name_a_user_alike(tmp_path: Path) -> None:
    log = _write(tmp_path / "log.jsonl")
    for salt in "ab":
        import_log(log, NAMED, tmp_path / f"{salt}.jsonl", drop_personal=True, salt=salt)
    assert (tmp_path / "a.jsonl").read_bytes() != (tmp_path / "b.jsonl").read_bytes()


@given(st.text(max_size=40))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
    assert not any(letter.isdigit() and letter != "9" for letter in mask(text) if letter.isascii())


@pytest.mark.parametrize("query", ["room 101", "windows 11 2026", "iso 9001", "b&b berlin"])
def test_short_numbers_are_no_personal_data(query: str) -> None:
    assert personal(query) is None


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"query": "x", "shown": ["1"], "clicked": ["2"]}, "'2'"),
        ({"query": "x", "shown": ["1", "1"], "clicked": []}, "line 1"),
        ({"query": "x", "shown": [1.5], "clicked": []}, "line 1"),
        ({"query": "", "shown": [], "clicked": []}, "line 1"),
        ({"query": "x", "clicked": []}, "'shown'"),
    ],
)
def test_a_bad_row_is_named(row: dict[str, object], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    with refuses(InputError, problem, place="line 1", file="log.jsonl"):
        read_log(path, LogColumns(), ("query", "shown", "clicked"))


def test_times_and_column_names_are_checked() -> None:
    assert timestamp("1793750400", Path("log")) == timestamp("2026-11-04T00:00:00", Path("log"))
    with refuses(InputError, "'yesterday'", file="log"):
        timestamp("yesterday", Path("log"))
    with refuses(InputError, "'clicks'", place="--column"):
        LogColumns.rename({"clicks": "c"})


def _traffic(rng: np.random.Generator, queries: int = 1500) -> tuple[Counter[str], dict[str, float]]:
    """Zipf's frequencies, and scores that are better for what is asked often: plain means are then wrong."""
    counts = Counter({f"q{rank}": int(np.ceil(6000 / rank)) for rank in range(1, queries + 1)})
    scores = {q: float(np.clip(rng.normal(0.3 + 0.08 * np.log10(counts[q]), 0.25), 0, 1)) for q in counts}
    return counts, scores


def test_each_stratum_has_a_third_of_the_traffic() -> None:
    counts, _ = _traffic(np.random.default_rng(1))
    strata = strata_of(counts)
    shares = [sum(counts[query] for query in queries) / sum(counts.values()) for queries in strata.values()]
    assert list(strata) == ["head", "torso", "tail"]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.06)  # the first query alone has 11%
    assert min(counts[q] for q in strata["head"]) >= max(counts[q] for q in strata["torso"])


def test_means_per_query_asked_are_right_and_their_intervals_cover() -> None:
    """200 samples of known traffic: the interval covers in 95%, the plain mean of the drawn queries does not."""
    counts, scores = _traffic(np.random.default_rng(2))
    truth = sum(counts[q] * scores[q] for q in counts) / sum(counts.values())
    covered = plain = 0
    errors = []
    for seed in range(200):
        sample = draw(counts, 150, seed)
        values = np.array([scores[query.text] for query in sample])
        found = estimate(values, strata_arrays(sample))
        covered += found.low <= truth <= found.high
        half = 1.96 * values.std(ddof=1) / len(values) ** 0.5
        plain += abs(values.mean() - truth) <= half
        errors.append(found.mean - truth)
    assert abs(np.mean(errors)) < 0.005
    assert 180 <= covered <= 199  # 190 are expected
    assert plain < 170


@pytest.mark.slow
def test_equal_contenders_differ_in_at_most_5_percent_of_samples() -> None:
    counts, a = _traffic(np.random.default_rng(3))
    rng = np.random.default_rng(4)
    noise = {q: float(rng.normal(0, 0.2)) for q in counts}
    mean = sum(counts[q] * noise[q] for q in counts) / sum(counts.values())
    differ = 0
    for seed in range(200):
        sample = draw(counts, 150, seed)
        one = np.array([a[query.text] for query in sample])
        other = one + np.array([noise[query.text] - mean for query in sample])  # no difference over all traffic
        differ += build_matrix({"a": one, "b": other}, sample, "ndcg@10").figures["pairs"][0]["p_holm"] <= 0.05
    assert differ <= 18  # 10 are expected; more than 18 once in 170 such tests


def test_a_whole_log_leaves_no_doubt() -> None:
    counts = Counter({"a": 5, "b": 3, "c": 1, "d": 1})
    sample = draw(counts, 10, 1)
    found = estimate(
        np.array([{"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0}[query.text] for query in sample]), strata_arrays(sample)
    )
    assert (found.mean, found.low, found.high) == pytest.approx((0.6, 0.6, 0.6))  # 6 of 10 asked


def test_a_sample_is_written_read_back_and_the_same_for_a_seed(tmp_path: Path) -> None:
    counts, _ = _traffic(np.random.default_rng(5), 300)
    sample_log(counts, 30, 7, tmp_path / "a.jsonl")
    sample_log(counts, 30, 7, tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    sample = read_sample(tmp_path / "a.jsonl")
    assert len(sample) == 30
    assert sum(query.weight for query in sample.values()) == pytest.approx(1)
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "b.jsonl").write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")
    with refuses(InputError, "1", file="b.jsonl"):
        read_sample(tmp_path / "b.jsonl")


def test_overlap_and_rbo_by_hand() -> None:
    """Lists abc and bad: agreements 0, 1, 2/3. RBO at p = .9: 2/3·.729 + (1/9)·(0·.9 + 1·.81 + 2/3·.729)."""
    assert overlap("abc", "bad", 3) == pytest.approx(2 / 3)
    assert rbo("abc", "bad", 3) == pytest.approx(2 / 3 * 0.729 + (0.81 + 2 / 3 * 0.729) / 9)
    assert rbo("abc", "abc", 3) == pytest.approx(1.0)
    assert rbo("abc", "xyz", 3) == 0.0
    assert (rbo("", "", 3), rbo("a", "", 3)) == (1.0, 0.0)


def test_a_list_that_ended_early_disagrees_where_it_is_silent() -> None:
    """One document against ten that begin with it: agreement 1/d at each depth d, hence the sum."""
    expected = 0.1 / 0.9 * sum(0.9**d / d for d in range(1, 11)) + 0.1 * 0.9**10
    assert rbo("a", "abcdefghij", 10) == rbo("abcdefghij", "a", 10) == pytest.approx(expected)
    assert overlap("a", "abcdefghij", 10) == pytest.approx(0.1)
    assert rbo("abc", "abc", 10) == pytest.approx(1.0)  # both end there: no place is left open
    assert (rbo("", "abc", 10), rbo("", "", 10)) == (0.0, 1.0)


def test_a_list_that_ended_early_is_among_what_changed_most() -> None:
    whole = Ranking(tuple("abcdefghij"), tuple(float(-at) for at in range(10)))
    swapped = Ranking(tuple("bacdefghij"), whole.scores)
    old = {"short": Ranking(("a",), (0.0,)), "swapped": whole}
    check = replay(old, {"short": whole, "swapped": swapped}, [Query(id=q, text=q) for q in old], {})
    assert [changed["query"] for changed in check.figures["changed_most"]] == ["short", "swapped"]
    assert arguments(check.facts, "production.changed_most")[0]["overlap"] == pytest.approx(0.1)
    says(sentences(check.facts), "'short'", "0.10")


def test_lists_that_are_filled_up_alike_do_not_agree(tmp_path: Path) -> None:
    """One finds a, the other b; both go on with the same documents by id, which matched nothing."""
    rest = ["a", "b", "v", "w", "x", "y", "z"]
    old = {"q": Ranking(("a",), (1.0,)).fill(rest, 6)}
    new = {"q": Ranking(("b",), (1.0,)).fill(rest, 6)}
    check = replay(old, new, [Query(id="q", text="x")], {}, k=6, out=tmp_path / "grade.csv")
    assert (check.figures["overlap"], check.figures["rbo"]) == (0.0, 0.0)
    assert (tmp_path / "grade.csv").read_text(encoding="utf-8").splitlines()[1:] == ["q,x,b", "q,x,a"]


def test_a_contender_twice_is_one_hypothesis_here_too() -> None:
    """As in the matrix: the same scores under two names make no other pair look less sure."""
    counts, _ = _traffic(np.random.default_rng(6), 300)
    sample = draw(counts, 40, 1)
    rng = np.random.default_rng(7)
    a = rng.random(len(sample))
    b = np.clip(a - rng.uniform(0, 0.3, len(sample)), 0, 1)
    alone = build_matrix({"a": a, "b": b}, sample, "ndcg@10").figures["pairs"]
    twice = build_matrix({"a": a, "again": a.copy(), "b": b}, sample, "ndcg@10").figures["pairs"]
    found = {(pair["a"], pair["b"]): pair["p_holm"] for pair in twice}
    assert found["a", "b"] == found["again", "b"] == alone[0]["p_holm"]
    assert found["a", "again"] == 1.0


def test_a_stratum_of_which_one_was_drawn_has_no_interval_and_says_whose_p_it_is() -> None:
    sample = draw(Counter({"a": 90, **{f"t{n}": 1 for n in range(30)}}), 6, 1)
    alone = [query for query in sample if query.category == "head"]
    alone += [query for query in sample if query.category != "head"][:1]
    scores = {"x": np.linspace(0.2, 0.4, len(alone)), "y": np.linspace(0.3, 0.9, len(alone))}
    check = build_matrix(scores, alone, "ndcg@10")
    assert [(mean["low"], mean["high"]) for mean in arguments(check.facts, "production.weighted_mean")] == [
        (None, None)
    ] * 2
    (pair,) = arguments(check.facts, "production.weighted_pair")
    assert (pair["p_holm"], pair["significant"]) == (1.0, False)
    assert "nan" not in " ".join(sentences(check.facts))


def test_gmap_is_shown_as_a_score() -> None:
    """The whole log was drawn, so the geometric mean by traffic is exact: ½^.75 · 1^.25, and ½^½ per drawn query."""
    sample = draw(Counter({"a": 3, "b": 1}), 4, 1)
    check = build_matrix({"x": np.log([0.5, 1.0]), "y": np.log([1.0, 1.0])}, sample, "gm_map")
    assert check.figures["rows"]["x"]["mean"] == pytest.approx(0.5**0.75)
    assert check.gauges[1].value == pytest.approx(0.5**0.75)
    shown = arguments(check.facts, "production.weighted_mean")[1]
    assert (shown["mean"], shown["unweighted"]) == pytest.approx((0.5**0.75, 0.5**0.5))
    assert arguments(check.facts, "production.weighted_pair")[0]["logarithms"]
    says(sentences(check.facts)[-1])


LINEUP = """
task = "wikipedia"
[[contender]]
provider = "tfidf"
store = "faiss"
[[contender]]
ranker = "bm25"
"""


def test_replay_asks_both_and_names_what_is_worth_grading(tmp_path: Path) -> None:
    (tmp_path / "bakeoff.toml").write_text(LINEUP, encoding="utf-8")
    queries = [Query(id="1", text="gothic cathedral"), Query(id="2", text="river in virginia")]
    lineup = Lineup.read(tmp_path / "bakeoff.toml")
    answers = ask(lineup, ["bm25", "tfidf+faiss"], queries, 10, Settings())
    assert all(len(ranking) <= 10 for rankings in answers.values() for ranking in rankings.values())
    out = tmp_path / "grade.csv"
    check = replay(answers["bm25"], answers["tfidf+faiss"], queries, {"1": 0.9, "2": 0.1}, out=out)
    weighted = [overlap(answers["bm25"][q].found, answers["tfidf+faiss"][q].found, 10) for q in "12"]
    assert check.figures["overlap"] == pytest.approx(0.9 * weighted[0] + 0.1 * weighted[1])
    pairs = [line.split(",") for line in out.read_text(encoding="utf-8").splitlines()[1:]]
    for query, _, document in pairs:
        one, other = (document in answers[label][query].found for label in ("bm25", "tfidf+faiss"))
        assert one != other
    assert any(ranking.matched != len(ranking) for ranking in answers["bm25"].values())  # one was filled up
    same = replay(answers["bm25"], answers["bm25"], queries, {})
    assert same.figures["same"] == pytest.approx(1.0)
    assert same.figures["worth_grading"] == 0


def test_from_a_raw_log_to_a_weighted_matrix_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"query": query, "shown": ["a"], "clicked": ["a"]} for query in ["tin"] * 3 + ["ore"] * 2 + ["pit"]]
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    _command("log", "import", "raw.jsonl")
    _command("log", "sample", "log.jsonl", "--size", "6")
    _command("log", "judge", "log.jsonl", "--widest", "1")
    lines = (tmp_path / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    texts = {query["text"]: query for query in map(json.loads, lines)}
    assert texts["tin"]["weight"] == pytest.approx(0.5)
    (tmp_path / "documents.csv").write_text("id,text\na,tin ore\nb,pit coal\n", encoding="utf-8")
    grades = "".join(f"{query['id']},{'b' if text == 'pit' else 'a'},1\n" for text, query in texts.items())
    (tmp_path / "grades.csv").write_text("query,document,grade\n" + grades, encoding="utf-8")
    lineup = (
        'task = { format = "tables", name = "log", documents = "documents.csv", queries = "queries.jsonl", '
        'judgments = "grades.csv" }\nmeasures = ["p@1"]\nrounds = 1\n[[contender]]\nranker = "bm25"\n'
        '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    )
    (tmp_path / "bakeoff.toml").write_text(lineup, encoding="utf-8")
    folder = save(run(Lineup.read(tmp_path / "bakeoff.toml")), tmp_path / "results")
    weighted = json.loads(_command("log", "matrix", str(folder), "--json"))
    assert weighted["rows"]["bm25"]["mean"] == pytest.approx(1.0)
    assert "overlap@10" in _command("log", "replay", "bm25", "tfidf+faiss", "--sample", "queries.jsonl")
    refused = CliRunner().invoke(app, ["log", "replay", "bm25", "none"])
    assert isinstance(refused.exception, InputError)


def _command(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_hostile_queries_are_looked_through_in_time() -> None:
    begin = time.process_time()
    for text in ("a." * 20_000, "a@" * 20_000, "1   " * 10_000):
        personal(text)
    assert time.process_time() - begin < 2
    assert personal("write to jo.doe+x@mail.example.org please") == "e-mail address"
    assert personal("cats @ home.example") is None
