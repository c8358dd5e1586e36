"""`bakeoff score`: runs made elsewhere against qrels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bakeoff.cli.streams import echo


def score(
    qrels: Annotated[Path, typer.Argument(help="TREC qrels, plain or gzipped.")],
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs, plain or gzipped.")],
    measure: Annotated[
        list[str] | None,
        typer.Option("-m", "--measure", help="Such as ndcg@10, or trec_eval's ndcg_cut.10; may be repeated."),
    ] = None,
    per_query: Annotated[bool, typer.Option("-q", "--per-query", help="Every query's value too.")] = False,
    rel: Annotated[int, typer.Option("-l", "--rel", min=1, help="The lowest grade that counts as relevant.")] = 1,
    answered: Annotated[
        bool, typer.Option("--answered", help="Only queries that every run answers; default: all judged ones.")
    ] = False,
    drop_negative: Annotated[
        bool, typer.Option("--drop-negative", help="Take grades below 0 for unjudged, as trec_eval does.")
    ] = False,
    precision: Annotated[
        Literal["double", "single"],
        typer.Option(help="In which scores are sorted: double as trec_eval 10, single as earlier ones."),
    ] = "double",
    format_: Annotated[Literal["table", "csv", "json"], typer.Option("--format", "-f", help="How to print.")] = "table",
    seed: Annotated[int, typer.Option(help="Of the intervals and tests.")] = 42,
) -> None:
    """Score TREC runs: means with intervals, and which of several are better, or a tie."""
    from bakeoff.report import scores
    from bakeoff.report.console import console
    from bakeoff.results.score import SCORE_MEASURES, run_names
    from bakeoff.results.score import score as score_runs
    from bakeoff.tasks.formats.trec import read_qrels

    named = dict(zip(run_names(runs), runs, strict=True))
    judgments = read_qrels(qrels, drop_negative=drop_negative)
    scored = score_runs(
        judgments, named, measure or SCORE_MEASURES, rel=rel, answered=answered, precision=precision, seed=seed
    )
    match format_:
        case "table":
            console().print(scores.terminal(scored, per_query=per_query))
        case "csv":
            echo(scores.as_csv(scored, per_query=per_query), nl=False)
        case "json":
            echo(scores.as_json(scored, per_query=per_query), nl=False)
