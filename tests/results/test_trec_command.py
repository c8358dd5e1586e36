"""The trec_eval commands that a result holds, run by pytrec_eval on the files that it holds; and what heads say."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import pytrec_eval
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.exports import markdown
from bakeoff.report.notes import headline
from bakeoff.results.columns import columns
from bakeoff.results.save import save
from bakeoff.results.schema import Summary, read_summary
from bakeoff.running.runner import run

from tests.native_task import native_files, pages, write_lineup

WORDS = ["copper", "lake", "forest", "rail", "boat", "stone", "river"]
MEASURES = ["recall", "map", "ndcg", "mrr", "mrr@2", "p@3", "p(rel=3)@3", "rprec", "acc@2", "f1@3", "judged@3"]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty documents, of which up to twelve are relevant, and only four are asked for."""
    folder = tmp_path_factory.mktemp("cut")
    texts = {n: (f"{WORDS[n % 7]} {n}", f"{WORDS[n % 5]} {WORDS[n % 3]}") for n in range(1, 31)}
    grades = {f"q{n}": {str(d): (d * n) % 4 for d in range(n, n + 12)} for n in range(1, 8)}
    files = native_files(pages(texts), {query: WORDS[at] for at, query in enumerate(grades)}, grades)
    path = write_lineup(
        folder,
        files,
        head=f'name = "cut"\ndepth = 4\nrounds = 1\nmeasures = {MEASURES}\nprimary = "recall"',
        task="rel = 2",
        contenders='[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n',
    )
    return save(run(Lineup.read(path)), folder / "results")


def _in_trec_eval(command: str, folder: Path, label: str) -> dict[str, float]:
    """The means by the names that the command asks for; pytrec_eval has trec_eval's -l and no -M."""
    words = shlex.split(command)
    assert words[:2] == ["trec_eval", "-c"]
    level, names = int(words[words.index("-l") + 1]), [words[at + 1] for at, word in enumerate(words) if word == "-m"]
    with (folder / words[-2]).open() as file:
        judged = pytrec_eval.parse_qrel(file)
    with (folder / "runs" / f"{label}.trec").open() as file:
        answers = pytrec_eval.parse_run(file)
    if "-M" in words:
        most = int(words[words.index("-M") + 1])
        answers = {q: dict(sorted(a.items(), key=lambda pair: -pair[1])[:most]) for q, a in answers.items()}
    evaluated = pytrec_eval.RelevanceEvaluator(judged, set(names), relevance_level=level).evaluate(answers)
    return {
        name: sum(evaluated.get(query, {}).get(name.replace(".", "_"), 0.0) for query in judged) / len(judged)
        for name in names
    }


def test_the_commands_give_the_figures_of_the_matrix(result: Path) -> None:
    summary = read_summary(result)
    own = {("recall.4", 2): "recall", ("map", 2): "map", ("ndcg", 2): "ndcg", ("recip_rank", 2): "mrr",
           ("P.3", 2): "p@3", ("P.3", 3): "p(rel=3)@3", ("Rprec", 2): "rprec", ("success.2", 2): "acc@2"}  # fmt: skip
    seen = set()
    for label in ("bm25", "tfidf+faiss"):
        row = next(row for row in summary.rows if row.label == label)
        for command in summary.trec_eval:
            level = int(command.split("-l ")[1].split()[0])
            for name, mean in _in_trec_eval(command, result, label).items():
                measure = "mrr@2" if "-M 2" in command else own[name, level]
                seen.add(measure)
                assert row.measures[measure].mean == pytest.approx(mean, abs=1e-6), measure
    assert seen == set(MEASURES) - {"f1@3", "judged@3"}  # which trec_eval does not have


def test_oracle_and_random_are_cut_as_the_contenders_are(result: Path) -> None:
    """Four places of thirty: at random a relevant document is among them in 4 of 30 cases; q4 has none."""
    rows = {row.label: row.measures for row in read_summary(result).rows}
    assert rows["random"]["recall"].mean == pytest.approx(6 / 7 * 4 / 30)
    for measure in ("recall", "map", "ndcg", "mrr", "rprec"):
        best = max(rows[label][measure].mean for label in ("bm25", "tfidf+faiss"))
        assert rows["random"][measure].mean < rows["oracle"][measure].mean
        assert best <= rows["oracle"][measure].mean
    assert rows["oracle"]["recall"].mean < 1


def test_heads_say_the_cut_and_the_threshold(result: Path) -> None:
    summary: Summary = read_summary(result)
    heads = [column.name for column in columns(summary)]
    assert {"Recall (top 4)", "MAP (top 4)", "NDCG (top 4)", "MRR (top 4)", "MRR@2", "Precision@3"} <= set(heads)
    assert "grade ≥ 2" in headline(summary)
    text = markdown(summary)
    assert "grade ≥ 2" in text
    assert f"    {summary.trec_eval[0]}" in text
