"""The commands that decide: `compare`, `gate` and `score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, assert_never

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import (
    BaselineOption,
    ContendersOption,
    EquivalentWithin,
    ResultArgument,
    ResultsArgument,
    baseline_path,
    check_file,
    read_pipe,
    say,
)
from bakeoff.cli.streams import echo

MeasureOption = Annotated[
    str | None, typer.Option("-m", "--measure", help="Measure such as ndcg@10. Default: the first result's.")
]


def compare(
    results: ResultsArgument,
    measure: MeasureOption = None,
    contender: ContendersOption = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="With several results, compare all contenders.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="List every pair, not only those that differ.")] = False,
    equivalent_within: EquivalentWithin = None,
    queries: Annotated[int, typer.Option(min=0, help="Show this many of the queries that changed most.")] = 3,
    format_: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> None:
    """Compare contenders pair by pair, within one result or across several."""
    from bakeoff.report import comparison
    from bakeoff.report.console import console
    from bakeoff.report.words import words
    from bakeoff.results.compare import NotComparable, compare_results, read_results

    read = read_results(results)
    try:
        comparisons = compare_results(
            read, measure, contender or (), all_pairs=all_pairs, equivalent_within=equivalent_within,
            lettered=format_ == "table",
        )  # fmt: skip
    except NotComparable as error:
        reasons = "; ".join(map(words, error.reasons))
        raise InputError(f"can't be compared with {error.first}: {reasons}", file=error.file) from None
    if format_ == "json":
        echo(comparison.as_json(comparisons, queries), nl=False)
    else:
        console().print(comparison.terminal(comparisons, queries, every=every))
        for result in read:
            if (look := result.summary.verdict.look) is not None:
                say(f"{result.name} is look {look.number}; p and intervals here assume a single look.")


def gate(
    result: ResultArgument,
    baseline: BaselineOption = None,
    measure: MeasureOption = None,
    max_drop: Annotated[float, typer.Option(min=0, help="Allow the mean to drop by this much.")] = 0.02,
    undecided: Annotated[
        Literal["warn", "fail", "pass"], typer.Option(help="Outcome if the queries can't decide.")
    ] = "warn",
    non_inferiority: Annotated[
        bool, typer.Option("--non-inferiority", help="Pass only if a larger drop is ruled out.")
    ] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Compare means without a test.")] = False,
    contender: Annotated[
        list[str] | None,
        typer.Option(help="Check this contender; new=old if it was renamed."),
    ] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Significance level.")] = 0.05,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    format_: Annotated[Literal["text", "json"], typer.Option("--format", "-f", help="Output format.")] = "text",
) -> None:
    """Fail (1) if a contender dropped by more than allowed; 2 if the results can't be compared."""
    from bakeoff.core.files import write_atomic
    from bakeoff.report.console import console
    from bakeoff.report.gate import as_json, gate_lines
    from bakeoff.report.gate import junit as junit_xml
    from bakeoff.report.words import words
    from bakeoff.results.compare import read_results
    from bakeoff.results.gate import Mode
    from bakeoff.results.gate import gate as check

    if exact and non_inferiority:
        raise InputError("--exact and --non-inferiority can't be combined", remedy="give one of them")
    check_file(junit, force=True)
    new, old = read_results([result, baseline_path(baseline, result)])
    mode: Mode = "exact" if exact else "non-inferior" if non_inferiority else "drop"
    verdict = check(new, old, measure, max_drop, contender or (), alpha=alpha, undecided=undecided, mode=mode)
    if junit is not None:
        write_atomic(junit, junit_xml(verdict))
    for reason in verdict.refused:
        say(f"error: can't be compared with {verdict.baseline}: {words(reason)}", err=True)
    if format_ == "json":
        echo(as_json(verdict), nl=False)
    elif not verdict.refused:
        console().print(gate_lines(verdict))
    raise typer.Exit(verdict.exit_code)


def score(
    qrels: Annotated[Path, typer.Argument(callback=read_pipe, help="TREC qrels, plain or gzipped; - reads stdin.")],
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", callback=read_pipe, help="TREC runs, plain or gzipped; - reads stdin."),
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option("-m", "--measure", help="Measure such as ndcg@10 or ndcg_cut.10; repeatable."),
    ] = None,
    per_query: Annotated[bool, typer.Option("-q", "--per-query", help="Print every query's value too.")] = False,
    rel: Annotated[
        int | None, typer.Option("-l", "--rel", min=1, help="Lowest relevant grade. Default: the result's, or 1.")
    ] = None,
    answered: Annotated[bool, typer.Option("--answered", help="Score only queries that every run answers.")] = False,
    drop_negative: Annotated[
        bool, typer.Option("--drop-negative", help="Treat grades below 0 as unjudged, as trec_eval does.")
    ] = False,
    precision: Annotated[
        Literal["double", "single"],
        typer.Option(help="Sort scores as trec_eval 10 (double) or earlier (single)."),
    ] = "double",
    format_: Annotated[
        Literal["table", "csv", "json"], typer.Option("--format", "-f", help="Output format.")
    ] = "table",
    seed: Annotated[int, typer.Option(help="Seed of the intervals and tests.")] = 42,
) -> None:
    """Score TREC runs with intervals, and test which is better."""
    from bakeoff.report import scores
    from bakeoff.report.console import console
    from bakeoff.results.score import SCORE_MEASURES, run_names, task_rel
    from bakeoff.results.score import score as score_runs
    from bakeoff.tasks.formats.trec import read_qrels

    named = dict(zip(run_names(runs), runs, strict=True))
    judgments = read_qrels(qrels, sampled=drop_negative)
    rel = rel or task_rel(qrels)
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
        case _:
            assert_never(format_)
