"""Results against each other, on a task whose figures follow from counting.

A document holds one verb; a query asks for it as it stands, or with -ing. With the stemmer every query finds its
document (NDCG 1); without it those with -ing find nothing (NDCG 0).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.core.figures import PairedDifference
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.junit import junit
from bakeoff.results.compare import compare_results, read_results
from bakeoff.results.gate import _judged, gate
from bakeoff.results.result import Result
from bakeoff.results.save import save
from bakeoff.running.runner import run
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

from tests import terminal
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
    assert pair.p == pair.p_holm == pytest.approx(2 / 2**8)  # only all signs alike are as extreme
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
    with pytest.raises(InputError, match="there is only one contender"):
        compare_results(_read(folder), NDCG, ["plain"])
    with pytest.raises(InputError, match="--contender 'plane' matches no contender") as caught:
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
    assert "Shown: 1 of 3 pairs; Holm's correction is over all of them." in out


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
    assert "has no contender 'tfidff'" in gate(new, old, NDCG, contenders=["tfidff"]).refused[0]


def test_rows_that_only_one_result_has_are_named(make: Make) -> None:
    def row(label: str) -> str:
        return f'[[contender]]\nranker = "bm25"\nlabel = "{label}"\n'

    old, new = make("old", "none", more=row("gone") + row("also-gone")), make("new", "english", more=row("added"))
    sentences = [
        "Not compared: gone and also-gone, which only old has.",
        "Not compared: added, which only new has.",
    ]
    assert compare_results(_read(old, new), NDCG).unmatched == sentences
    assert compare_results(_read(old, new), NDCG, ["bm25"]).unmatched == sentences  # all are bm25s
    out = " ".join(bakeoff("compare", str(old), str(new), cwd=old).stdout.split())
    assert out.startswith("A = old B = new NDCG@10")
    assert "Not compared: gone and also-gone, which only A has. Not compared: added, which only B has." in out
    assert "Differ most, bm25 (A) → bm25 (B):" in out
    done = bakeoff("compare", str(old), str(new), "--format", "json", cwd=old)
    assert json.loads(done.stdout)["unmatched"] == sentences


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
    with pytest.raises(InputError, match="no contender in common") as caught:
        compare_results(results, NDCG)
    assert "--all-pairs" in caught.value.remedy
    (pair,) = compare_results(results, NDCG, all_pairs=True).pairs
    assert (pair.a, pair.b) == ("x (a)", "y (b)")


def test_a_measure_that_was_not_stored_comes_from_the_rankings(make: Make) -> None:
    (result,) = _read(make("a", "none"))
    assert "acc@2" not in result.detailed.contenders[0].queries["q00"].measures
    assert result.values("bm25", Measure.parse("acc@2")).tolist() == [0.0] * 8 + [1.0] * 4
    with pytest.raises(InputError, match="reads deeper than the 20 places"):
        result.values("bm25", Measure.parse("acc@21"))


def test_other_judgments_and_other_queries_can_not_be_compared(make: Make) -> None:
    old, graded, asked = make("old", "none"), make("graded", "none", grade=2), make("asked", "none", inflected=3)
    with pytest.raises(InputError, match="can't be compared with old: other judgments: 12 queries have other grades"):
        compare_results(_read(old, graded), NDCG)
    with pytest.raises(InputError, match="other queries: 5 have another text, such as 'q03'"):
        compare_results(_read(old, asked), NDCG)
    refused = gate(*_two(graded, old), NDCG, 0.02)
    assert refused.exit_code == 2
    assert "other judgments" in refused.refused[0]


class TestGate:
    def test_a_large_and_significant_drop_fails(self, make: Make) -> None:
        new, old = _read(make("new", "none"), make("old", "english"))
        verdict = gate(new, old, NDCG, 0.02)
        assert verdict.exit_code == 1
        (check,) = verdict.checks
        assert (check.before, check.after) == pytest.approx((1.0, 4 / 12))
        assert "a drop of 0.6667, 0.02 is allowed, and it is significant (p (Holm) = 0.0078)" in check.reason

    def test_a_drop_within_the_allowance_passes(self, make: Make) -> None:
        new, old = _read(make("new", "none"), make("old", "english"))
        assert gate(new, old, NDCG, 0.7).exit_code == 0
        assert gate(new, old, NDCG, 8 / 12).exit_code == 0  # exactly as much as is allowed

    def test_nothing_is_left_to_settle_where_as_much_is_lost_as_is_allowed(self, make: Make) -> None:
        """Two of twelve queries find nothing any more, which is not significant."""
        verdict = gate(*_two(make("new", "none", inflected=2), make("old", "english", inflected=2)), NDCG, 2 / 12)
        assert [check.reason for check in verdict.checks] == ["a drop of 0.1667, 0.166667 is allowed"]

    def test_both_limits_are_where_they_are_said_to_be(self, make: Make) -> None:
        """A drop of 8 / 12 with p = 2 / 2^8: what reaches a limit passes the one and fails by the other."""
        new, old = _two(make("new", "none"), make("old", "english"))
        drop, p = 8 / 12, 2 / 2**8
        assert gate(new, old, NDCG, drop).exit_code == 0
        assert gate(new, old, NDCG, drop - 1e-9).exit_code == 1
        assert gate(new, old, NDCG, 0.02, alpha=p).exit_code == 1
        assert gate(new, old, NDCG, 0.02, alpha=p * (1 - 1e-9)).exit_code == 0
        assert gate(new, old, NDCG).exit_code == 1
        allowed = gate(new, old, NDCG, drop).checks[0].reason
        assert allowed == "a drop of 0.6667, 0.666667 is allowed"

    def test_the_allowance_is_two_hundredths_where_nothing_else_is_said(self, make: Make) -> None:
        new, old = _two(make("new", "none"), make("old", "english"))
        assert gate(new, old).max_drop == 0.02
        assert gate(old, new).checks[0].reason == "no drop, 0.02 is allowed"
        assert gate(old, new).notes == []

    def test_a_drop_that_may_be_chance_passes_and_says_so(self, make: Make) -> None:
        new, old = _read(make("new", "none", inflected=2), make("old", "english", inflected=2))
        verdict = gate(new, old, NDCG, 0.02)
        assert verdict.exit_code == 0
        assert "but not significant (p (Holm) = 0.5)" in verdict.checks[0].reason
        assert "more queries would settle it" in verdict.checks[0].reason

    def test_better_and_equal_pass(self, make: Make) -> None:
        new, old = _read(make("new", "english"), make("old", "none"))
        assert gate(new, old, NDCG, 0.0).exit_code == 0
        same = _read(make("again", "none"))[0]
        verdict = gate(same, old, NDCG, 0.0)
        assert verdict.exit_code == 0
        assert verdict.checks[0].reason.startswith("unchanged")

    @pytest.mark.parametrize(
        ("differences", "said"),
        [
            ([0.0, 0.0], "unchanged"),
            ([0.5, -0.5], "no drop"),
            ([0.5, 0.0], "no drop"),
            ([0.0, -0.5], "a drop of 0.2500"),
        ],
    )
    def test_what_is_said_of_wins_and_losses_by_as_much(self, differences: list[float], said: str) -> None:
        mean = sum(differences) / 2
        pair = PairedDifference("after", "before", mean, None, None, 1.0, 1.0, 1.0, 1.0, None, 0, 0, 0)
        assert _judged(-mean, pair, np.array(differences), 0.3, 0.05) == (False, f"{said}, 0.3 is allowed")

    def test_a_drop_of_a_geometric_mean_is_that_of_the_figures_shown(self, make: Make) -> None:
        """Eight of twelve queries fall from 1 to 0.00001: a geometric mean of 1 becomes 10^(−40/12)."""
        new, old = _two(make("new", "none"), make("old", "english"))
        (check,) = gate(new, old, "gm_map", 0.9996).checks
        assert (check.before, check.after) == pytest.approx((1.0, 10 ** (-40 / 12)))
        assert check.failed is False  # 1 − 0.00046; the difference of logarithms is 7.7
        assert check.reason == "a drop of 0.9995, 0.9996 is allowed"
        (check,) = gate(new, old, "gm_map", 0.99).checks
        assert check.failed

    def test_a_contender_that_is_gone_can_not_pass(self, make: Make) -> None:
        new, old = _read(make("new", "english", label="other"), make("old", "english"))
        verdict = gate(new, old, NDCG, 0.02)
        assert verdict.exit_code == 2
        assert "new: has no contender 'bm25'" in verdict.refused[0]
        assert verdict.refused[0].endswith(
            "; the baseline is old: --contender NAME checks one alone, --contender NEW=OLD one that the baseline "
            "calls otherwise, --baseline names another result"
        )
        renamed = gate(new, old, NDCG, 0.02, ["other=bm25"])
        assert renamed.exit_code == 0
        assert [check.contender for check in renamed.checks] == ["other"]

    def test_contenders_that_drop_alike_are_one_hypothesis(self, make: Make) -> None:
        more = '[[contender]]\nranker = "bm25"\nlabel = "second"\noptions = { language = "%s" }\n'
        new = make("new", "none", inflected=6, more=more % "none")
        old = make("old", "english", inflected=6, more=more % "english")
        verdict = gate(*_two(new, old), NDCG, 0.02)
        # the same six queries fall for both: p = 2 / 2^6, once
        assert [check.pair.p_holm for check in verdict.checks] == pytest.approx([2 / 2**6, 2 / 2**6])
        assert verdict.exit_code == 1
        assert gate(*_two(new, old), NDCG, 0.02, ["second"]).exit_code == 1

    def test_junit_says_the_same(self, make: Make) -> None:
        new, old, other = _read(make("new", "none"), make("old", "english"), make("other", "none", grade=2))
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

    new, old, other = make("new", "none"), make("old", "english"), make("other", "none", grade=2)
    code, out, _ = bakeoff("gate", new, "--baseline", old, "--measure", "ndcg@10", "--junit", tmp_path / "x.xml")
    assert code == 1
    assert "FAIL  bm25: ndcg@10 1.0000 → 0.3333" in out
    assert ElementTree.parse(tmp_path / "x.xml").getroot().tag == "testsuites"
    code, out, _ = bakeoff("gate", old, "--baseline", new)
    assert code == 0
    assert "gate passed" in out
    assert "no query differs" not in out
    assert (
        "note: +0.0000 with an interval: no query differs;"
        in bakeoff("gate", old, "--baseline", make("o", "english"))[1]
    )
    code, _, err = bakeoff("gate", other, "--baseline", old, "--junit", tmp_path / "y.xml")
    assert code == 2
    assert "other judgments" in err
    assert "<error" in (tmp_path / "y.xml").read_text()
    code, out, _ = bakeoff("compare", old, new, "--queries", "1")
    assert code == 0
    assert "The pair differs significantly over 12 queries" in out
    assert "-1.000  1.000 → 0.000  q00: walking" in out
    pair = json.loads(bakeoff("compare", old, new, "--format", "json")[1])["pairs"][0]
    assert pair["changed_most"][0] == {"query": "q00", "text": "walking", "a": 0.0, "b": 1.0}
    runs = [folder / "runs" / "bm25.trec" for folder in (old, new)]
    code, out, _ = bakeoff("score", old / "judgments.qrels", *runs, "-m", "ndcg_cut.10", "--format", "json")
    assert code == 0
    means = {name: run["ndcg@10"]["mean"] for name, run in json.loads(out)["runs"].items()}
    assert means == {str(runs[0]): 1.0, str(runs[1]): pytest.approx(4 / 12)}
    code, out, _ = bakeoff("score", old / "judgments.qrels", *runs, "-q")
    assert code == 0
    assert "can't be told from the best" in out
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
    assert (
        "4 of 6 pairs differ significantly over 12 queries (Holm over 1 pair, as rows that score alike count once, 5%)."
        in out
    )
    assert out.count("Differ most, ") == 1
    assert "The same, plain-twin → bm25, plain → twin and plain-twin → twin." in out
    assert out.count("No query differs between ") == 2
    assert out.count("+0.0000 with an interval: no query differs; the interval is what other queries might") == 1
    said = " ".join(comparison_sentences(folder))
    assert "(one pair tested; rows that score alike count once)" in said


def comparison_sentences(folder: Path) -> list[str]:
    (result,) = _read(folder)
    return result.summary.verdict.sentences
