"""A saved result: another margin or incumbent, the first format, and plans from its scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.extensions.testsets.plan_queries import conclusion, plan_queries
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.matrix import matrix
from bakeoff.report.verdict_words import verdict_sentences
from bakeoff.results.compare import compare_results
from bakeoff.results.current import current_summary
from bakeoff.results.restate import restate
from bakeoff.results.result import load
from bakeoff.results.save import save
from bakeoff.results.schema import SUMMARY, Detailed, read_summary
from bakeoff.running.runner import run
from bakeoff.statistics.detectable import queries_for_gap
from bakeoff_providers.errors import InputError
from typer.testing import CliRunner

from tests.errors import refuses
from tests.native_task import native_files, pages, write_lineup


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("standings")
    words = ["copper", "lake", "forest", "rail", "boat", "stone", "river", "mill"]
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{n}", "title": "", "text": "{words[n % 8]} {words[n % 3]} {n}"}}\n' for n in range(24))
    )
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"_id": "q{n}", "text": "{words[n % 8]} {n}"}}\n' for n in range(12))
    )
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\t{n + 8}\t1\n" for n in range(12))
    )
    (folder / "lineup.toml").write_text(
        'task = {format = "beir", folder = "."}\nmeasures = ["ndcg@10"]\nequivalent_within = 0.01\n'
        '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = ["faiss", "chroma"]\n'
    )
    return save(run(Lineup.read(folder / "lineup.toml")), folder / "results")


def test_a_row_that_grades_could_put_above_the_incumbent_is_not_worse(tmp_path: Path) -> None:
    """The incumbent has the one graded document first; the other row has two ungraded ones there.

    By NDCG@4 that is 1 against 0. If the two were relevant, the other would score (1 + 0.63) / 2.13 = 0.77, which is
    below 1, but the incumbent would score 1 / 2.13 = 0.47.
    """
    graded = {f"q{n}": {"1": 2, "2": 0, "3": 0, "4": 0} for n in range(20)}
    first, second = ["1", "2", "3", "4"], ["5", "6", "2", "3"]
    texts = {number: (f"title {number}", f"text {number}") for number in range(1, 7)}
    native = native_files(pages(texts), {query: f"text {query}" for query in graded}, graded)
    rows = ""
    for label, ranked in (("old", first), ("new", second)):
        lines = [json.dumps({"query": query, "ranked": ranked}) for query in graded]
        (tmp_path / f"{label}.jsonl").write_text("\n".join(lines))
        rows += f'[[contender]]\nlabel = "{label}"\nanswers = "{label}.jsonl"\n'
    path = write_lineup(tmp_path, native, head='name = "s"\nmeasures = ["ndcg@4"]\nbaseline = "old"', contenders=rows)
    saved = load(save(run(Lineup.read(path)), tmp_path / "results"))
    for summary in (saved.summary, restate(saved)):
        against = summary.verdict.standings["new"].against
        assert against is not None
        assert (against.relation, against.open) == ("undecided", True)
    compared = compare_results([saved])
    assert compared.pairs[0].p_holm < 0.05
    assert compared.open == {("old", "new")}


def test_a_margin_in_the_line_up_is_in_the_result_and_another_can_be_asked_for(result: Path) -> None:
    summary = load(result).summary
    assert (summary.verdict.equivalent_within, summary.format) == (0.01, 2)
    wide = current_summary(result, equivalent_within=0.9).verdict
    # Twelve queries of scores between 0 and 1 lie within 0.9 of each other for sure.
    assert wide.equivalent_within == 0.9
    others = [standing for label, standing in wide.standings.items() if label != wide.leader]
    assert [standing.equivalent for standing in others] == [True, True]
    assert msgspec.structs.replace(
        wide, standings={}, equivalent_within=0.01, picks=[], queries_for_equivalence=None
    ) == msgspec.structs.replace(summary.verdict, standings={}, picks=[], queries_for_equivalence=None)


def test_a_verdict_made_again_from_stored_figures_is_the_stored_one(result: Path) -> None:
    found = load(result)
    assert restate(found).verdict == found.summary.verdict


def test_marks_are_in_the_deciding_column_and_rows_alike_share_them(result: Path) -> None:
    lines = [line for line in matrix(current_summary(result, equivalent_within=0.9)).lines if line.row.ran]
    marks = {line.row.label: line.cells["ndcg@10"].marks for line in lines}
    assert marks["tfidf+faiss"] == marks["tfidf+chroma"]
    assert sorted(set(marks.values())) == ["≡", "★"]


def test_a_result_of_the_first_format_is_restated_or_keeps_its_sentences(result: Path, tmp_path: Path) -> None:
    """Written by the last version without a format number; without its scores, its own sentences are all there is."""
    stored = Path(__file__).parents[1] / "stored" / "first-format"
    older = read_summary(stored)
    assert (older.format, older.verdict.situation) == (1, "older format")
    again = load(stored).summary.verdict
    assert again.situation != "older format"
    assert again.leader == older.verdict.leader
    assert again.sentences is msgspec.UNSET
    assert all(row.baseline for row in older.rows if row.provider == "fake")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / SUMMARY).write_bytes((stored / SUMMARY).read_bytes())
    kept = current_summary(copy)
    assert kept.verdict.situation == "older format"
    assert verdict_sentences(kept) == kept.verdict.sentences
    later = msgspec.json.decode((result / SUMMARY).read_bytes())
    (copy / SUMMARY).write_bytes(msgspec.json.encode({**later, "format": 3}))
    with pytest.raises(InputError) as refused:
        read_summary(copy)
    assert refused.value.file == copy / SUMMARY


def test_the_commands_take_a_margin_and_an_incumbent(result: Path) -> None:
    shown = CliRunner().invoke(app, ["show", str(result), "--equivalent-within", "0.9", "--baseline", "bm25", "--json"])
    assert shown.exit_code == 0, shown.output
    printed = json.loads(shown.output)
    assert printed["format"] == 2
    assert printed["text"]
    assert (printed["verdict"]["baseline"], printed["verdict"]["equivalent_within"]) == ("bm25", 0.9)
    assert printed["verdict"]["situation"] in ("incumbent beaten", "incumbent kept")
    for name in ("tfidf", "nobody"):  # two rows, and none
        refused = CliRunner().invoke(app, ["show", str(result), "--baseline", name]).exception
        assert isinstance(refused, InputError)
        assert refused.place == "baseline"
        assert name in refused.problem
    assert CliRunner().invoke(app, ["show", str(result), "--baseline", "tfidf+chroma"]).exit_code == 0
    compared = CliRunner().invoke(app, ["compare", str(result), "--equivalent-within", "0.9"])
    assert compared.exit_code == 0
    assert "3 are equivalent within 0.9" in " ".join(compared.output.split())


def test_queries_are_planned_from_a_result(result: Path) -> None:
    planned = CliRunner().invoke(
        app, ["plan-queries", str(result), "--difference", "0.05", "--width", "0.1", "--contenders", "2"]
    )
    assert planned.exit_code == 0, planned.output
    assert "12 queries" in " ".join(planned.output.split())
    found = load(result)
    alone = plan_queries([found], difference=0.05)
    leader = max(found.labels, key=lambda label: float(found.values(label).mean()))
    rival = "bm25" if leader != "bm25" else "tfidf+faiss"
    needed = queries_for_gap(found.values(leader), found.values(rival), gap=0.05)
    assert (alone.for_power, alone.have) == ({f"{leader} and {rival}": needed}, 12)
    (by_variance,) = plan_queries(variance=alone.variance, difference=0.05).for_power.values()
    assert by_variance is not None
    assert by_variance[0] == by_variance[1] > 12
    with refuses(InputError) as caught:
        plan_queries(variance=0.1)
    assert "--difference" in caught.value.remedy
    with refuses(InputError) as caught:
        plan_queries(width=0.1)
    assert "--variance" in caught.value.remedy


def test_a_model_in_several_stores_is_planned_for_once(result: Path) -> None:
    """tfidf answers alike from two stores: two contenders, and half of the variance of their difference."""
    found = load(result)
    d = found.values("bm25") - found.values("tfidf+faiss")
    assert (found.values("tfidf+faiss") == found.values("tfidf+chroma")).all()
    planned = plan_queries([found], difference=0.05, width=0.1)
    assert planned.contenders == 2
    assert planned.variance == pytest.approx(float(d.var(ddof=1)) / 2)
    given = plan_queries(variance=float(d.var(ddof=1)) / 2, difference=0.05, width=0.1)
    assert given.for_width is not None
    assert planned.for_width is not None
    assert planned.for_width < given.for_width  # of which it is not known what a failure costs: all
    alike = replace(found, detailed=_only(found.detailed, ("tfidf+faiss", "tfidf+chroma")))
    with refuses(InputError) as caught:
        plan_queries([alike], difference=0.05)
    assert "--variance" in caught.value.remedy


def test_contenders_that_differ_by_the_same_on_every_query_plan_nothing(
    result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """.3, .7 and .1 everywhere: what is left beside contenders and queries is rounding."""
    found = load(result)
    constant = dict(zip(found.labels, (0.3, 0.7, 0.1), strict=False))
    monkeypatch.setattr(type(found), "values", lambda self, label, name=None: np.full(20, constant.get(label, 0.5)))
    with refuses(InputError) as caught:
        plan_queries([found], difference=0.05)
    assert "--variance" in caught.value.remedy


def _only(detailed: Detailed, labels: tuple[str, ...]) -> Detailed:
    return msgspec.structs.replace(detailed, contenders=[one for one in detailed.contenders if one.label in labels])


def test_a_plan_for_clusters_is_counted_in_needs() -> None:
    plain = plan_queries(variance=0.04, difference=0.05)
    assert "needs" not in conclusion(plain)
    assert "needs" in conclusion(replace(plain, in_clusters=True))
