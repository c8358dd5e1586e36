"""`bakeoff agreement` and `bakeoff audit`: how reliable the grades are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import Force, LineupOption, Offline, check_file, lineup_path, say
from bakeoff.extensions.testsets.commands.pairs_to_grade import ResultOption, TaskArgument, rankings_for

if TYPE_CHECKING:
    from bakeoff.extensions.testsets.agreement import Coefficient, TwoWay
    from bakeoff.report.grid import Grid


def agreement(
    task: TaskArgument,
    who: Annotated[list[str] | None, typer.Option(help="Only these annotators.")] = None,
    worst: Annotated[int, typer.Option(min=0, help="Number of disagreements to show, largest first.")] = 10,
    out: Annotated[Path | None, typer.Option(help="Also write all figures to this JSON file.")] = None,
    force: Force = False,
) -> None:
    """Measure how far annotators agree, and list disagreements.

    Prints Cohen's κ, Fleiss' κ and Krippendorff's α.
    """
    from bakeoff_providers.registry import nearest

    from bakeoff.core.files import write_json
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.agreement import agreement as compare
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.report.console import console
    from bakeoff.report.grid import Figures, Grid
    from bakeoff.report.words import words

    check_file(out, force=force)
    folder = TaskFolder.open(task)
    annotators = folder.annotators()
    for name in who or ():
        if name not in annotators:
            raise InputError(f"there is no annotator {name!r}", place="--who", remedy=nearest(name, list(annotators)))
    given = {name: annotation.pairs() for name, annotation in annotators.items() if not who or name in who}
    if len(given) == 1 and not who:
        if standing := folder.standing():
            say(words(standing))
        say(f"agreement needs a second annotator: bakeoff annotate {task} --who …")
        return
    if len(given) < 2:
        raise InputError(
            f"there are grades by {pluralise(len(given), 'annotator')}, two are needed",
            file=folder.annotations,
            remedy=f"bakeoff annotate {task} --who …, or bakeoff grade {task} --judge llm",
        )
    agreed = compare(given, 1 + max(folder.scale))
    pairs = pluralise(agreed.pairs, "pair")
    say(f"{len(agreed.annotators)} annotators, {pairs}, {len(agreed.worst)} graded differently")
    if models := [name for name in agreed.annotators if annotators[name].kind == "model"]:
        all_ = len(models) == len(agreed.annotators)
        said = "All annotators are models" if all_ else f"Models: {', '.join(models)}"
        say(f"{said}. Agreement between models does not imply agreement with people.")
    table = Grid(["annotators", Figures("pairs"), Figures("equal"), "κ", "κ linear", "κ quadratic"])
    for two in agreed.two:
        values = (_format(two.plain), _format(two.linear), _format(two.quadratic))
        table.add_row(f"{two.a}, {two.b}", str(two.pairs), f"{two.equal:.1%}" if two.pairs else "—", *values)
    console().print(table)
    say(f"Fleiss' κ, {pluralise(agreed.fleiss_pairs, 'pair')} that all graded: {_format(agreed.fleiss)}")
    say(f"Krippendorff's α (ordinal): {_format(agreed.alpha)}")
    say("Brackets show 95% intervals, bootstrapped over queries.")
    for two in agreed.two:
        if two.pairs and two.equal == 1:
            say(f"{two.a}, {two.b}: {_all_equal(two.pairs)}")
    for two in agreed.two:
        console().print(_confusion(two))
    if worst and agreed.worst:
        listed = Grid(["query", "document", "title", "grades"])
        for pair in agreed.worst[:worst]:
            grades = ", ".join(f"{name} {grade}" for name, grade in pair.grades.items())
            listed.add_row(pair.query, pair.document, folder.document(pair.document).title, grades)
        console().print(listed)
        if len(agreed.worst) > worst:
            say(f"… and {len(agreed.worst) - worst} more; bakeoff adjudicate {task} settles them")
    if out is not None:
        write_json(out, agreed)
        say(f"Written to {out}")


def audit(
    task: TaskArgument,
    judge: Annotated[str, typer.Argument(help="The judge model, by its file name in annotations/.")],
    measure: Annotated[str | None, typer.Option(help="Measure of the winner; default: the line-up's.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Bootstrap samples.")] = 1000,
    result: ResultOption = None,
    lineup: LineupOption = None,
    offline: Offline = False,
) -> None:
    """Audit a judge model against people's grades.

    Prints κ on the pairs that both graded, and how often the judge's errors would change the winner.
    """
    from bakeoff_providers.registry import nearest

    from bakeoff.core.printable import pluralise
    from bakeoff.evaluation.measures import Measure
    from bakeoff.extensions.testsets.annotations import settle
    from bakeoff.extensions.testsets.audit import audit as examine
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars, console
    from bakeoff.report.words import WEIGHTED

    folder = TaskFolder.open(task)
    annotators = folder.annotators()
    models = [name for name, annotation in annotators.items() if annotation.kind == "model"]
    if judge not in models:
        person = " (that is a person)" if judge in annotators else ""
        remedy = nearest(judge, models) if models else f"grade with a model first: bakeoff grade {task} --judge llm"
        raise InputError(f"no judge model is called {judge!r}{person}", remedy=remedy)
    people = {name: annotation for name, annotation in annotators.items() if annotation.kind == "person"}
    human = settle(people, []).grades
    human |= {pair: grade for pair, grade in settle({}, folder.read_adjudications()).grades.items() if pair in human}
    by = Measure.parse(measure) if measure else Lineup.read(lineup_path(lineup)).primary
    rankings = rankings_for(folder, result, lineup, offline)
    audited = examine(
        judge, annotators[judge].pairs(), human, rankings, by, folder.task.rel, samples=samples, progress=Bars(),
        drawn={query.id: query.drawn for query in folder.task.queries if query.drawn},
    )  # fmt: skip
    two = audited.agreement
    say(
        f"{judge} against {', '.join(people)}: {pluralise(two.pairs, 'pair')}, {two.equal:.1%} equal, "
        f"κ {_format(two.plain)}, quadratic {_format(two.quadratic)}"
    )
    if two.equal == 1:
        say(_all_equal(two.pairs))
    console().print(_confusion(two))
    seen = ", ".join(f"{sum(two.confusion[grade])} of {given} with a {grade}" for grade, given in audited.given.items())
    say(f"By the judge's grade, people graded {seen}.")
    places = sorted(audited.means, key=lambda label: -audited.means[label])
    how = f" ({WEIGHTED})" if audited.by_traffic else ""
    say(f"{by} by the judge{how}: " + ", ".join(f"{label} {audited.means[label]:.3f}" for label in places))
    others = ", ".join(f"{label} {count}" for label, count in audited.winners.items() if label != audited.winner)
    say(
        f"Winner: {audited.winner}. With the judge's errors another wins in {audited.another} of {audited.samples} "
        f"samples ({audited.another / audited.samples:.1%})" + (f": {others}" if others else "") + "."
    )


def _all_equal(pairs: int) -> str:
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.agreement import most_unequal

    bound = f"at most {most_unequal(pairs):.1%} of such pairs differ (95%, if independent)"
    return f"No disagreement in {pluralise(pairs, 'pair')}, so κ has no interval; {bound}."


def _format(estimate: Coefficient) -> str:
    if estimate.value is None:
        return "not defined"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.4f}"
    return f"{estimate.value:.4f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _confusion(two: TwoWay) -> Grid:
    from bakeoff.report.grid import Figures, Grid

    table = Grid([f"{two.a} ↓  {two.b} →", *(Figures(grade) for grade in range(len(two.confusion)))])
    for grade, row in enumerate(two.confusion):
        table.add_row(str(grade), *(str(count) for count in row))
    return table
