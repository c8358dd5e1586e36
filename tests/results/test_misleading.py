"""Sentences that once misled a reader: what each of them must say, and must not."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from bakeoff.core.facts import quote
from bakeoff.core.figures import Loss, Percentiles
from bakeoff.report.matrix import keys
from bakeoff.report.notes import headline, notes
from bakeoff.report.result_page import USE, use_table
from bakeoff.report.terminal import terminal
from bakeoff.report.verdict_words import no_time
from bakeoff.results.current import current_summary
from bakeoff.results.schema import Cost, Latency, Row, Standing, Summary, Value, Verdict
from rich.console import Console

from tests.terminal import bakeoff


@pytest.fixture(scope="module")
def summary() -> Summary:
    return current_summary(Path(__file__).parents[2] / "results" / "reference")


def _row(label: str, ndcg: float, mrr: float, **more: object) -> Row:
    return Row(label=label, row_type="dense", measures={"ndcg@10": Value(ndcg), "mrr": Value(mrr)}, **more)  # type: ignore[arg-type]


def test_answers_from_files_are_not_told_to_raise_rounds() -> None:
    none = Percentiles(0)
    given = _row("gru", 0.8, 0.5, latency=Latency(embed=none, search=none, total=none))
    assert "gru" in no_time(given)
    assert "--rounds" not in no_time(given)


def _untimed(*, search: int, total: int, row_type: str = "dense") -> str:
    """What is said of a row with so many samples."""
    latency = Latency(embed=Percentiles(total), search=Percentiles(search), total=Percentiles(total))
    return no_time(Row(label="a", row_type=row_type, latency=latency))


def test_the_remedy_for_a_missing_p50_is_one_that_helps() -> None:
    assert _untimed(search=4, total=4).endswith("raise --rounds.")
    assert _untimed(search=60, total=3).endswith("--time-hosted 5 calls it again and pays for it.")
    assert _untimed(search=60, total=0).endswith("--time-hosted 5 times them and pays for it.")
    assert "--" not in _untimed(search=60, total=0, row_type="fused")


def test_two_figures_of_one_measure_are_explained(summary: Summary) -> None:
    """The matrix has what the index found; the note says that its other figure is under exact search."""
    rows = [
        msgspec.structs.replace(row, loss=Loss(ndcg_exact=0.983, ndcg_lost=0.164, recall=0.7, short=0))
        if row.label == summary.verdict.leader
        else row
        for row in summary.rows
    ]
    said = [note.sentence for note in notes(msgspec.structs.replace(summary, rows=rows))]
    assert any("NDCG@10 0.983 under exact search, of which the index lost 0.164" in sentence for sentence in said)


def test_an_index_that_scores_more_than_exact_search_lost_nothing(summary: Summary) -> None:
    loss = Loss(ndcg_exact=0.5, ndcg_lost=-0.001, recall=0.9, short=0)
    rows = [msgspec.structs.replace(summary.ran[0], loss=loss)]
    (said,) = [note.text for note in notes(msgspec.structs.replace(summary, rows=rows)) if note.topic == "loss"]
    assert said.startswith("NDCG@10 0.500 under exact search, and by chance 0.001 more with the index; ")


def test_indexes_that_lost_nothing_share_one_sentence(summary: Summary) -> None:
    """Whatever their NDCG; what is shown as lost, a recall below 1.000 or a short list keeps a line of its own."""
    losses = [
        Loss(ndcg_exact=0.8, ndcg_lost=0.0, recall=1.0, short=0),
        Loss(ndcg_exact=0.6, ndcg_lost=-0.0004, recall=0.9996, short=0),
        Loss(ndcg_exact=0.7, ndcg_lost=0.0, recall=0.999, short=0),
        Loss(ndcg_exact=0.7, ndcg_lost=0.001, recall=1.0, short=0),
        Loss(ndcg_exact=0.7, ndcg_lost=0.0, recall=1.0, short=1),
    ]
    rows = [
        msgspec.structs.replace(summary.ran[0], label=f"row {at}", loss=loss) for at, loss in enumerate(losses)
    ]  # fmt: skip
    said = [note for note in notes(msgspec.structs.replace(summary, rows=rows)) if note.topic == "loss"]
    assert [note.about for note in said] == ["row 0, row 1", "row 2", "row 3", "row 4"]
    assert not any("0.000" in note.text for note in said)
    assert ["0.001" in note.text for note in said] == [False, False, True, False]
    assert all("exact search" in note.text for note in said)


def test_a_warning_of_several_rows_is_said_once(summary: Summary) -> None:
    texts = [quote("long texts"), quote("short texts")]
    warned = [msgspec.structs.replace(row, warnings=texts[: 1 + at]) for at, row in enumerate(summary.ran[:2])]
    first, second = (row.label for row in warned)
    said = [note.sentence for note in notes(msgspec.structs.replace(summary, rows=warned, warnings=[]))]
    assert said[:2] == [f"{first}, {second}: long texts", f"{second}: short texts"]


def test_the_legend_explains_what_the_matrix_has(summary: Summary) -> None:
    def legend(**changes: object) -> str:
        rows = [Row(label="a", row_type="dense", measures={"ndcg@10": Value(0.5), "mrr": Value(0.5)}, **changes)]  # type: ignore[arg-type]
        standing = Standing(mark="leads", p=1.0, behind_least=0.0, behind_most=0.0)
        verdict = Verdict(
            measure="ndcg@10", leader="a", best_set=["a"], situation="one row", action="none", take=None,
            standings={"a": standing},
        )  # fmt: skip
        task = msgspec.structs.replace(summary.task, documents=documents)
        return "\n".join(
            keys(
                msgspec.structs.replace(
                    summary, rows=rows, verdict=verdict, task=task, matrix_measures=["mrr"], lineup={"depth": 100}
                )
            )
        )

    documents = 100
    assert legend() == "★ leads"
    assert legend(targets={"mrr": False}) == "★ leads\n✗ target missed"
    documents = 101  # no ranking holds them all
    assert legend().endswith("\n(top 100): depth of the ranking, for a measure without a cut-off")


def test_texts_from_the_cache_were_not_counted_as_cut(summary: Summary) -> None:
    def cut(cached: int, truncated: int) -> str:
        cost = Cost(usd=0.0, cached=cached, truncated=truncated)
        rows = [msgspec.structs.replace(summary.ran[0], cost=cost)]
        (row,) = use_table(msgspec.structs.replace(summary, rows=rows))
        return row[[column.name for column in USE].index("Truncated")]

    assert (cut(0, 0), cut(0, 2), cut(150, 0), cut(100, 2)) == ("0", "2", "–", "≥ 2")


def test_a_task_that_nobody_named_and_one_round(summary: Summary) -> None:
    unnamed = msgspec.structs.replace(
        summary,
        task=msgspec.structs.replace(summary.task, name="task"),
        lineup={**summary.lineup, "rounds": 1},
    )
    said = headline(unnamed)
    assert ": task (25 documents" in said
    assert "task task" not in said
    assert said.endswith("1 round")


def test_a_label_in_brackets_is_printed_as_it_is(summary: Summary) -> None:
    """Nothing from data is markup: rich would take [categories] for a style."""
    named = msgspec.structs.replace(summary, name="[categories]")
    printed = io.StringIO()
    Console(file=printed, width=100, markup=True, highlight=False).print(terminal(named))
    assert printed.getvalue().startswith("[categories]: task wikipedia")


def test_a_help_keeps_its_brackets(tmp_path: Path) -> None:
    shown = bakeoff("queries", "generate", "--help", cwd=tmp_path).stdout
    assert "A line-up with your own [categories]." in " ".join(shown.split())
