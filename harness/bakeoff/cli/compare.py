"""`bakeoff compare` and `bakeoff gate`: results against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bakeoff.cli.shared_options import (
    BaselineOption,
    ContendersOption,
    EquivalentWithin,
    ResultArgument,
    ResultsArgument,
    baseline_path,
    check_file,
    say,
)
from bakeoff.cli.streams import echo

MeasureOption = Annotated[
    str | None, typer.Option("-m", "--measure", help="Such as ndcg@10; default: the one that decided the first result.")
]


def compare(
    results: ResultsArgument,
    measure: MeasureOption = None,
    contender: ContendersOption = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Several results: each contender with each, not only with itself.")
    ] = False,
    equivalent_within: EquivalentWithin = None,
    queries: Annotated[int, typer.Option(min=0, help="How many of the queries that changed most to show.")] = 3,
    format_: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="How to print.")] = "table",
) -> None:
    """Compare contenders of one result, or the same contenders of several, pair by pair."""
    from bakeoff.report import comparison
    from bakeoff.report.console import console
    from bakeoff.results.compare import compare_results, read_results

    comparisons = compare_results(
        read_results(results), measure, contender or (), all_pairs=all_pairs, equivalent_within=equivalent_within,
        lettered=format_ == "table",
    )  # fmt: skip
    if format_ == "json":
        echo(comparison.as_json(comparisons, queries), nl=False)
    else:
        console().print(comparison.terminal(comparisons, queries))


def gate(
    result: ResultArgument,
    baseline: BaselineOption = None,
    measure: MeasureOption = None,
    max_drop: Annotated[float, typer.Option(min=0, help="The largest drop of the mean that is allowed.")] = 0.02,
    contender: Annotated[
        list[str] | None,
        typer.Option(help="Only contenders of this name; new=old where the baseline has another label for it."),
    ] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="How unlikely a drop by chance must be.")] = 0.05,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
) -> None:
    """Fail (1) if a contender dropped, by more than allowed and significantly; 2 if the two can't be compared."""
    from bakeoff.core.files import write_atomic
    from bakeoff.report import comparison
    from bakeoff.report.console import console
    from bakeoff.report.junit import junit as junit_xml
    from bakeoff.results.compare import read_results
    from bakeoff.results.gate import gate as check

    check_file(junit, force=True)
    new, old = read_results([result, baseline_path(baseline, result)])
    verdict = check(new, old, measure, max_drop, contender or (), alpha=alpha)
    if junit is not None:
        write_atomic(junit, junit_xml(verdict))
    for reason in verdict.refused:
        say(f"error: can't be compared: {reason}", err=True)
    if not verdict.refused:
        console().print(comparison.gate_lines(verdict))
    raise typer.Exit(verdict.exit_code)
