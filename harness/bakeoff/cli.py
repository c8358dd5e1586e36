"""The command line: which commands there are, and how errors leave it."""

from __future__ import annotations

import sys

import typer
from bakeoff_providers.errors import BakeoffError, InputError

from bakeoff.commands import agreement, cache, compare, grade, report, run, score, select, snapshot, stores, validate
from bakeoff.commands import listing as catalogue
from bakeoff.commands import testsets as build

app = typer.Typer(
    help="Compares embedding providers and vector stores on your corpus, and says how sure it is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(run.run)
app.command()(run.show)
app.command()(validate.validate)
app.command()(report.report)
app.command()(report.serve)
app.command(name="list")(catalogue.list_)
app.add_typer(build.corpus, name="corpus")
app.command()(select.select)
app.add_typer(build.queries, name="queries")
app.add_typer(grade.grade, name="grade")
app.command()(grade.annotate)
app.command()(agreement.agreement)
app.command()(grade.adjudicate)
app.command()(agreement.audit)
app.command()(score.score)
app.command()(compare.compare)
app.command()(compare.gate)
app.command()(snapshot.snapshot)
app.command()(stores.sweep)
app.command()(stores.load)
app.command()(stores.footprint)
app.command()(cache.doctor)
app.add_typer(cache.cache, name="cache")
app.add_typer(catalogue.models, name="models")


def main() -> None:
    """The entry point: errors with a remedy are told in words; 2 is for bad input, 1 for what failed on the way."""
    try:
        app()
    except InputError as error:
        typer.echo(f"error: {error}" + (f"\n  remedy: {error.remedy}" if error.remedy else ""), err=True)
        sys.exit(2)
    except BakeoffError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("interrupted: what arrived is kept, the next run goes on from there", err=True)
        sys.exit(130)
