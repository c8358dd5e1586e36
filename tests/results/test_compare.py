"""Results against each other, on a task whose figures follow from counting.

A document holds one verb; a query asks for it as it stands, or with -ing. With the stemmer every query finds its
document (NDCG 1); without it those with -ing find nothing (NDCG 0).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.core.facts import fact
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.gate import junit
from bakeoff.results.compare import NotComparable, compare_results, read_results
from bakeoff.results.gate import _finds, gate
from bakeoff.results.result import Result
from bakeoff.results.save import save
from bakeoff.running.runner import run
from bakeoff.statistics.averaging import PerQuery
from bakeoff.statistics.compare import finds_drop
from bakeoff_providers.errors import InputError
from scipy import stats
from typer.testing import CliRunner

from tests import terminal
from tests.errors import refuses
from tests.facts import ids
from tests.terminal import bakeoff

VERBS = ["walk", "jump", "paint", "cook", "sail", "climb", "plant", "build", "melt", "sort", "fish", "kick"]
NDCG = Measure.parse("ndcg@10")
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Runs BM25 on the task and tells where its result is."""

    def made(name: str, language: str, inflected: int = 8, grade: int = 1, label: str = "bm25", more: str = "") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        documents = [json.dumps({"id": verb, "text": f"{verb} {verb}"}) for verb in VERBS]
        documents += [json.dumps({"id": f"_{at:02}", "text": "a stone"}) for at in range(20)]  # fill up first
        queries = [
            json.dumps({"id": f"q{at:02}", "text": verb + "ing" * (at < inflected)}) for at, verb in enumerate(VERBS)
        ]
        (folder / "documents.jsonl").write_text("\n".join(documents))
        (folder / "queries.jsonl").write_text("\n".join(queries))
        (folder / "own.qrels").write_text("".join(f"q{at:02} 0 {verb} {grade}\n" for at, verb in enumerate(VERBS)))
        (folder / "own.toml").write_text(
            'measures = ["ndcg@10"]\nrounds = 1\ndepth = 20\n'
            '[task]\nname = "verbs"\nformat = "tables"\ndocuments = "documents.jsonl"\n'
            'queries = "queries.jsonl"\njudgments = "own.qrels"\n'
            f'[[contender]]\nranker = "bm25"\nlabel = "{label}"\noptions = {{ language = "{language}" }}\n{more}'
        )
        return save(run(Lineup.read(folder / "own.toml")), folder / "results").rename(folder / name)

    return made


def _read(*folders: Path) -> list[Result]:
    return read_results(list(folders))


def _two(new: Path, old: Path) -> tuple[Result, Result]:
    first, second = read_results([new, old])
    return first, second


def test_the_same_contender_is_compared_with_itself_in_the_first_result(make: Make) -> None:
    found = compare_results(_read(make("old", "none"), make("new", "english")), NDCG)
    (pair,) = found.pairs
    assert (pair.a, pair.b) == ("bm25 (new)", "bm25 (old)")
    assert pair.difference == pytest.approx(8 / 12)
    d = np.array([1.0] * 8 + [0.0] * 4 + [-4 / 12])  # with one imagined failure, where the other has its mean
    assert pair.p == pair.p_holm == pytest.approx(float(stats.ttest_1samp(d, 0).pvalue))
    assert (pair.wins, pair.ties, pair.losses) == (8, 4, 0)
    assert [(change.query, change.a, change.b) for change in found.changed_most(pair, 2)] == [
        ("q00", 1.0, 0.0),
        ("q01", 1.0, 0.0),
    ]
    assert len(found.changed_most(pair, 99)) == 8
    assert found.queries["q00"] == "walking"


def test_contenders_of_one_result_are_compared_with_each_other(make: Make) -> None:
    more = '[[contender]]\nranker = "bm25"\nlabel = "plain"\noptions = { language = "none" }\n'
    more += '[[contender]]\nprovider = "voyage"\nstore = "faiss"\n'
    folder = make("one", "english", more=more)
    (pair,) = compare_results(_read(folder), NDCG).pairs
    assert (pair.a, pair.b) == ("bm25", "plain")
    assert pair.difference == pytest.approx(8 / 12)
    with refuses(InputError, file="one"):
        compare_results(_read(folder), NDCG, ["plain"])
    with refuses(InputError, "--contender", "'plane'") as caught:
        compare_results(_read(folder), NDCG, ["plane"])
    assert "plain" in caught.value.remedy


def test_choosing_contenders_does_not_weaken_the_correction(make: Make) -> None:
    more = '[[contender]]\nranker = "bm25"\nlabel = "plain"\noptions = { language = "none" }\n'
    more += '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
    folder = make("one", "english", more=more)
    (result,) = _read(folder)
    every = compare_results([result], NDCG, equivalent_within=0.9)
    chosen = compare_results([result], NDCG, ["bm25", "plain"], equivalent_within=0.9)
    assert [(pair.a, pair.b) for pair in every.pairs] == [
        ("bm25", "plain"),
        ("bm25", "fake+faiss"),
        ("plain", "fake+faiss"),
    ]
    assert chosen.pairs == every.pairs[:1]
    assert chosen.p_equivalent == every.p_equivalent[:1]
    assert list(chosen.means) == ["bm25", "plain"]
    done = bakeoff("compare", str(folder), "--contender", "bm25", "--contender", "plain", cwd=folder)
    out = " ".join(done.stdout.split())
    assert "Shown: 1 of 3 pairs; Holm's correction covers all of them." in out


def test_a_contender_is_called_in_results_as_it_is_in_a_line_up(make: Make) -> None:
    """By label, provider, ranker or model: one rule for run, compare and gate."""
    more = '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    old, new = _read(make("old", "none", label="words", more=more), make("new", "english", label="words", more=more))
    for name in ("words", "bm25"):
        (pair,) = compare_results([old, new], NDCG, [name]).pairs
        assert pair.a == "words (new)"
        (check,) = gate(new, old, NDCG, contenders=[name]).checks
        assert check.contender == "words"
    assert [pair.a for pair in compare_results([old, new], NDCG, ["tfidf"]).pairs] == ["tfidf+faiss (new)"]
    assert [check.contender for check in gate(new, old, NDCG, contenders=["bm25", "words", "tfidf"]).checks] == [
        "words",
        "tfidf+faiss",
    ]
    (lost,) = gate(new, old, NDCG, contenders=["tfidff"]).refused
    assert lost.id == "no_scores"
    assert "'tfidff'" in str(lost.arguments["problem"])


def test_rows_that_only_one_result_has_are_named(make: Make) -> None:
    def row(label: str) -> str:
        return f'[[contender]]\nranker = "bm25"\nlabel = "{label}"\n'

    old, new = make("old", "none", more=row("gone") + row("also-gone")), make("new", "english", more=row("added"))
    alone = [
        fact("not_compared", labels=["gone", "also-gone"], result="old"),
        fact("not_compared", labels=["added"], result="new"),
    ]
    assert compare_results(_read(old, new), NDCG).unmatched == alone
    assert compare_results(_read(old, new), NDCG, ["bm25"]).unmatched == alone  # all are bm25s
    out = " ".join(bakeoff("compare", str(old), str(new), cwd=old).stdout.split())
    assert "A = old B = new" in out
    assert "NDCG@10" in out[: out.index("A = old")]  # the conclusion is first
    assert [("Not compared" in out, name in out) for name in ("gone", "also-gone", "added")] == [(True, True)] * 3
    assert "bm25 (B) against bm25 (A), largest differences" in out or "bm25 (A) against bm25 (B), largest" in out
    done = bakeoff("compare", str(old), str(new), "--format", "json", cwd=old)
    assert json.loads(done.stdout)["unmatched"] == msgspec.to_builtins(alone)


def test_long_names_of_results_fit_a_narrow_screen(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "20261117-174047-perldocs", "20261117-181500-perldocs"
    folders = [str(make(name, stems)) for name, stems in zip(names, ("none", "english"), strict=True)]
    monkeypatch.setenv("COLUMNS", "80")
    out = CliRunner().invoke(app, ["compare", *folders]).output
    assert max(map(len, out.splitlines())) <= 80
    assert [out.count(name) for name in names] == [1, 1]
    assert "bm25 (B)" in out


def test_all_pairs_of_several_results(make: Make) -> None:
    results = _read(make("a", "english", label="x"), make("b", "none", label="y"))
    with refuses(InputError) as caught:
        compare_results(results, NDCG)
    assert "--all-pairs" in caught.value.remedy
    (pair,) = compare_results(results, NDCG, all_pairs=True).pairs
    assert (pair.a, pair.b) == ("x (a)", "y (b)")


def test_a_measure_that_was_not_stored_comes_from_the_rankings(make: Make) -> None:
    (result,) = _read(make("a", "none"))
    assert "acc@2" not in result.detailed.contenders[0].queries["q00"].measures
    assert result.values("bm25", Measure.parse("acc@2")).tolist() == [0.0] * 8 + [1.0] * 4
    with refuses(InputError, "20", file="a"):
        result.values("bm25", Measure.parse("acc@21"))


def test_other_judgments_and_other_queries_can_not_be_compared(make: Make) -> None:
    old, graded, asked = make("old", "none"), make("graded", "none", grade=2), make("asked", "none", inflected=3)
    with refuses(NotComparable, "old", file="graded") as caught:
        compare_results(_read(old, graded), NDCG)
    assert [(reason.id, reason.arguments["count"]) for reason in caught.value.reasons] == [("other_grades", 12)]
    with refuses(NotComparable, "old", file="asked") as caught:
        compare_results(_read(old, asked), NDCG)
    assert "q03" in {reason.arguments["example"] for reason in caught.value.reasons}
    refused = gate(*_two(asked, old), NDCG, 0.02)
    assert refused.exit_code == 2
    assert "other_query_texts" in ids(refused.refused)


class TestGate:
    """Without stems, bm25 loses 8 of 12 queries wholly (or as many as are inflected), and keeps the others."""

    def test_a_drop_that_is_shown_fails(self, make: Make) -> None:
        new, old = _read(make("new", "none"), make("old", "english"))
        verdict = gate(new, old, NDCG, 0.02)
        assert (verdict.exit_code, verdict.outcome, verdict.queries) == (1, "failed", 12)
        (check,) = verdict.checks
        assert (check.before, check.after, check.differing) == pytest.approx((1.0, 4 / 12, 8))
        lost = np.repeat([-1.0, 0.0], [8, 4])
        assert check.p == pytest.approx(stats.ttest_1samp(lost, -0.02, alternative="less").pvalue)
        assert check.least == pytest.approx(8 / 12 - stats.t.ppf(0.95, 11) * stats.sem(lost))
        imagined = np.append(lost, -1.0)  # a failure that twelve queries may not have shown
        assert check.most == pytest.approx(-imagined.mean() + stats.t.ppf(0.95, 12) * stats.sem(imagined))
        assert check.worst is not None
        assert (check.worst.text, check.worst.change) == ("walking", -1.0)

    def test_it_is_tested_against_what_is_allowed(self, make: Make) -> None:
        """A drop of 0.67 is far from 0, and may be no more than 0.6."""
        new, old = _read(make("new", "none"), make("old", "english"))
        assert gate(new, old, NDCG, 0.6).outcome == "undecided"
        assert gate(new, old, NDCG, 0.95).outcome == "passed"
        assert gate(new, old).max_drop == 0.02

    def test_undecided_is_what_the_user_says_it_is(self, make: Make) -> None:
        """Two of twelve queries are lost: the true drop may be 0 or 0.37."""
        new, old = _two(make("new", "none", inflected=2), make("old", "english", inflected=2))
        codes = {way: gate(new, old, NDCG, 0.02, undecided=way).exit_code for way in ("warn", "fail", "pass")}
        assert codes == {"warn": 0, "fail": 1, "pass": 0}
        warned = ElementTree.fromstring(junit(gate(new, old, NDCG, 0.02))).find("testsuite")
        assert warned is not None
        assert (warned.get("failures"), warned.get("skipped")) == ("0", "1")
        assert warned.find("testcase/skipped") is not None

    def test_better_and_equal_pass(self, make: Make) -> None:
        new, old = _read(make("new", "english"), make("old", "none"))
        assert gate(new, old, NDCG, 0.0).outcome == "passed"
        same = _read(make("again", "none"))[0]
        verdict = gate(same, old, NDCG, 0.0)
        assert (verdict.outcome, verdict.checks[0].differing) == ("passed", 0)
        assert verdict.finds is None  # of 12 queries that score 0.33, not even the loss of all would be shown
        found = gate(new, new, NDCG, 0.02).finds
        assert found is not None  # also where nothing changed
        error = np.sqrt(found * (1 - found) / 12)
        assert (found - 0.02) / error == pytest.approx(stats.t.ppf(0.95, 11) + stats.norm.ppf(0.8), abs=1e-6)

    def test_non_inferiority_can_not_be_shown_by_few_queries(self, make: Make) -> None:
        """Twelve queries without any difference, and one imagined that loses 1: the drop may be 0.2."""
        new, old = _two(make("new", "none"), make("old", "none"))
        verdict = gate(new, old, NDCG, 0.02, mode="non-inferior")
        assert (verdict.outcome, verdict.exit_code) == ("undecided", 1)
        assert verdict.needed is not None
        assert 80 <= verdict.needed <= 150
        imagined = np.append(np.zeros(12), -1.0)
        most = -imagined.mean() + stats.t.ppf(0.95, 12) * stats.sem(imagined)
        assert verdict.checks[0].most == pytest.approx(most)
        assert gate(new, old, NDCG, 0.3, mode="non-inferior").exit_code == 0

    def test_exact_compares_means_without_a_test(self, make: Make) -> None:
        new, old = _two(make("new", "none", inflected=2), make("old", "english", inflected=2))
        assert gate(new, old, NDCG, 2 / 12, mode="exact").outcome == "passed"  # exactly as much as is allowed
        verdict = gate(new, old, NDCG, 2 / 12 - 1e-9, mode="exact")
        assert (verdict.outcome, verdict.checks[0].p, verdict.finds) == ("failed", None, None)

    def test_a_baseline_of_other_grades_is_scored_again(self, make: Make) -> None:
        """Today's grade is 2 and was 1: exponential gains cancel in NDCG, and nothing has changed."""
        new, old = _two(make("graded", "none", grade=2), make("old", "none"))
        verdict = gate(new, old, NDCG, 0.02)
        assert (verdict.exit_code, verdict.regraded) == (0, 12)
        assert verdict.checks[0].before == pytest.approx(4 / 12)

    def test_a_row_is_found_by_the_label_of_the_line_up(self, make: Make) -> None:
        """The row's own name says its store and dimensions."""

        def entry(store: str) -> str:
            return f'[[contender]]\nprovider = "fake"\nlabel = "ours"\n{store}\n'

        new = make("new", "none", more=entry('store = "chroma"'))
        old = make("old", "none", more=entry('store = "faiss"'))
        verdict = gate(*_two(new, old), NDCG, 0.02)
        assert [(check.contender, check.baseline) for check in verdict.checks] == [
            ("bm25", "bm25"),
            ("ours+chroma", "ours+faiss"),
        ]
        assert verdict.new == []
        twice = make("twice", "none", more=entry('store = ["chroma", "hnswlib"]'))
        assert gate(*_two(twice, old), NDCG, 0.02).exit_code == 2
        smaller = make("smaller", "none", more=entry('store = "chroma"\ndimensions = 250\nprecision = "int8"'))
        verdict = gate(*_two(smaller, old), NDCG, 0.02)
        assert [(check.contender, check.baseline) for check in verdict.checks] == [
            ("bm25", "bm25"),
            ("ours@250-int8+chroma", "ours+faiss"),
        ]

    def test_what_it_finds_is_corrected_for_all_that_changed(self) -> None:
        """Two of three changed: each of these as if at half of alpha, a drop in the third would be one of three."""
        rng = np.random.default_rng(1)
        old = rng.uniform(0.5, 1, 100)
        sides = [(old - rng.normal(0, 0.02, 100), old), (old - rng.normal(0, 0.05, 100), old), (old, old)]
        found = _finds(sides, PerQuery(), 0.02, 0.1)
        assert found == [
            finds_drop(new - old, old, 0.02, alpha=0.1 / among)
            for (new, _), among in zip(sides, (2, 2, 3), strict=True)
        ]

    def test_a_drop_of_a_geometric_mean_is_that_of_the_figures_shown(self, make: Make) -> None:
        """Eight of twelve queries fall from 1 to 0.00001: a geometric mean of 1 becomes 10^(−40/12)."""
        new, old = _two(make("new", "none"), make("old", "english"))
        (check,) = gate(new, old, "gm_map", 0.9996).checks
        assert (check.before, check.after) == pytest.approx((1.0, 10 ** (-40 / 12)))
        assert check.outcome == "undecided"  # 1 − 0.00046; the difference of logarithms is 7.7
        (check,) = gate(new, old, "gm_map", 0.5).checks
        assert check.outcome == "failed"

    def test_a_contender_that_is_gone_can_not_pass(self, make: Make) -> None:
        new, old = _read(make("new", "english", label="other"), make("old", "english"))
        verdict = gate(new, old, NDCG, 0.02)
        assert verdict.exit_code == 2
        (lost,) = verdict.refused
        assert (lost.id, lost.arguments["file"]) == ("no_scores", "new")
        assert "'bm25'" in str(lost.arguments["problem"])
        renamed = gate(new, old, NDCG, 0.02, ["other=bm25"])
        assert renamed.exit_code == 0
        assert [check.contender for check in renamed.checks] == ["other"]

    def test_contenders_that_drop_alike_are_one_hypothesis(self, make: Make) -> None:
        more = '[[contender]]\nranker = "bm25"\nlabel = "second"\noptions = { language = "%s" }\n'
        new = make("new", "none", inflected=6, more=more % "none")
        old = make("old", "english", inflected=6, more=more % "english")
        verdict = gate(*_two(new, old), NDCG, 0.02)
        lost = np.repeat([-1.0, 0.0], 6)  # the same six queries fall for both: one test
        p = stats.ttest_1samp(lost, -0.02, alternative="less").pvalue
        assert [check.p for check in verdict.checks] == pytest.approx([p, p])
        assert verdict.exit_code == 1
        assert gate(*_two(new, old), NDCG, 0.02, ["second"]).exit_code == 1
        assert [check.alike for check in verdict.checks] == ["bm25", "bm25"]
        suite = ElementTree.fromstring(junit(verdict)).find("testsuite")
        assert suite is not None
        assert len(suite.findall("testcase")) == 2

    def test_junit_says_the_same(self, make: Make) -> None:
        new, old, other = _read(make("new", "none"), make("old", "english"), make("other", "none", inflected=3))
        suite = ElementTree.fromstring(junit(gate(new, old, NDCG, 0.02))).find("testsuite")
        assert suite is not None
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
        failure = suite.find("testcase[@name='bm25']/failure")
        assert failure is not None
        assert "a drop of 0.6667" in (failure.get("message") or "")
        refused = ElementTree.fromstring(junit(gate(other, old, NDCG, 0.02))).find("testsuite")
        assert refused is not None
        assert (refused.get("failures"), refused.get("errors")) == ("0", "1")
        assert refused.find("testcase/error") is not None


def test_the_commands_exit_as_they_promise(make: Make, tmp_path: Path) -> None:
    def bakeoff(*arguments: str | Path) -> terminal.Ended:
        return terminal.bakeoff(*map(str, arguments), cwd=tmp_path)

    new, old, other = make("new", "none"), make("old", "english"), make("other", "none", inflected=3)
    code, out, _ = bakeoff("gate", new, "--baseline", old, "--measure", "ndcg@10", "--junit", tmp_path / "x.xml")
    assert code == 1
    assert out.startswith("gate failed: bm25 dropped by more than 0.02 on NDCG@10")
    assert out.splitlines()[4].split()[:5] == ["FAIL", "bm25", "1.000", "0.333", "−0.667"]
    assert ElementTree.parse(tmp_path / "x.xml").getroot().tag == "testsuites"
    code, out, _ = bakeoff("gate", old, "--baseline", new)
    assert code == 0
    assert "gate passed" in out
    assert "Nothing changed." in bakeoff("gate", old, "--baseline", make("o", "english"))[1]
    code, out, _ = bakeoff("gate", new, "--baseline", old, "--format", "json")
    assert (code, json.loads(out)["format"], json.loads(out)["outcome"]) == (1, 2, "failed")
    assert bakeoff("gate", new, "--baseline", old, "--exact", "--non-inferiority")[0] == 2
    code, _, err = bakeoff("gate", other, "--baseline", old, "--junit", tmp_path / "y.xml")
    assert code == 2
    assert "different queries" in err
    assert "<error" in (tmp_path / "y.xml").read_text()
    code, out, _ = bakeoff("compare", old, new, "--queries", "1")
    assert code == 0
    assert "The pair is significantly different over 12 queries" in out
    assert "1.000 0.000 q00: walking" in out
    pair = json.loads(bakeoff("compare", old, new, "--format", "json")[1])["pairs"][0]
    assert pair["changed_most"][0] == {"query": "q00", "text": "walking", "a": 0.0, "b": 1.0}
    runs = [folder / "runs" / "bm25.trec" for folder in (old, new)]
    code, out, _ = bakeoff("score", old / "judgments.qrels", *runs, "-m", "ndcg_cut.10", "--format", "json")
    assert code == 0
    means = {name: run["ndcg@10"]["mean"] for name, run in json.loads(out)["runs"].items()}
    assert means == {str(runs[0]): 1.0, str(runs[1]): pytest.approx(4 / 12)}
    code, out, _ = bakeoff("score", old / "judgments.qrels", *runs, "-q")
    assert code == 0
    assert "★ leads" in out
    code, _, err = bakeoff("score", old / "judgments.qrels", tmp_path / "none.trec")
    assert code == 2
    assert "no such file" in err


def test_rows_that_score_alike_count_once_and_are_listed_once(make: Make) -> None:
    """Four rows, of which two and two are the same: six pairs, and one that is tested."""
    alike = "".join(
        f'[[contender]]\nranker = "bm25"\nlabel = "{label}"\noptions = {{ language = "{language}" }}\n'
        for label, language in (("twin", "none"), ("plain", "english"), ("plain-twin", "english"))
    )
    folder = make("alike", "none", more=alike)
    comparison = compare_results(_read(folder), NDCG)
    assert (len(comparison.tested), comparison.distinct) == (6, 1)
    out = " ".join(bakeoff("compare", str(folder), "-m", "ndcg@10", cwd=folder).stdout.split())
    assert out.startswith("plain is better than bm25 on NDCG@10. The pair is significantly different over 12 queries")
    assert "2 rows score like another and count once." in out
