"""Output of `bakeoff gate`: outcome, changed contenders, power, and JUnit XML for CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import msgspec

from bakeoff.core.printable import pluralise
from bakeoff.evaluation.measures import Measure
from bakeoff.report.charts import xml_text
from bakeoff.report.groups import group_names, shorten
from bakeoff.report.numbers import MINUS, bound_above, bound_below, difference, enumeration, of_needs, signed
from bakeoff.report.words import words
from bakeoff.results.gate import ContenderCheck, Gate, Outcome
from bakeoff.statistics.detectable import round_gap

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bakeoff.report.grid import Grid

MARKS: dict[Outcome, str] = {"failed": "FAIL", "undecided": "????", "passed": "pass"}


def gate_lines(gate: Gate) -> RenderableType:
    """The outcome, then only the contenders that changed, then notes."""
    from rich.console import Group

    from bakeoff.report.grid import Prose

    changed = [check for check in _distinct(gate) if check.differing or check.outcome != "passed"]
    parts: list[RenderableType] = [Prose(headline(gate), "bold")]
    if changed:
        parts.append(_table(gate, changed))
    return Group(*parts, *map(Prose, closing(gate)))


def headline(gate: Gate) -> str:
    """The outcome on one line."""
    measure, allowed = Measure.parse(gate.measure).label, f"{gate.max_drop:g}"
    failed, open_ = (_names(gate, outcome) for outcome in ("failed", "undecided"))
    if failed:
        return f"gate failed: {failed} dropped by more than {allowed} on {measure}"
    if open_ and gate.mode == "non-inferior":
        return f"gate failed: not shown that {open_} dropped by less than {allowed} on {measure}"
    if open_:
        said = f"{open_} may have dropped by more than {allowed} on {measure}"
        return f"gate {'failed, ' if gate.undecided == 'fail' else ''}undecided ({gate.undecided}): {said}"
    shown = "all dropped by less than" if gate.mode == "non-inferior" else "none shown to drop by more than"
    finds = "" if gate.finds is None else f" (this gate finds drops from {_smallest_found(gate)})"
    return f"gate passed: {pluralise(len(gate.checks), 'contender')}, {shown} {allowed}{finds}"


def _distinct(gate: Gate) -> list[ContenderCheck]:
    """One check for all contenders that score alike."""
    return [check for check in gate.checks if check.alike in ("", check.contender)]


def _group_names(gate: Gate) -> dict[str, str]:
    return group_names({check.contender: check.alike or check.contender for check in gate.checks})


def _names(gate: Gate, outcome: Outcome) -> str:
    names = _group_names(gate)
    those = [names[check.contender] for check in _distinct(gate) if check.outcome == outcome]
    return enumeration(those) if those else ""


def _table(gate: Gate, changed: Sequence[ContenderCheck]) -> Grid:
    """The table of changes. Failures show the lower bound of the drop, others the upper bound."""
    from rich.text import Text

    from bakeoff.report.grid import Figures, Grid

    least = any(_least(check) for check in changed)
    most = any(_most(check) for check in changed)
    heads = ["old", "new", "change", *(["at least"] if least else []), *(["at most"] if most else [])]
    table, names = Grid(["", "contender", *map(Figures, heads)], keys=2), _group_names(gate)
    for check in changed:
        cells = [
            MARKS[check.outcome],
            _title(gate, check, names[check.contender]),
            f"{check.before:.3f}",
            f"{check.after:.3f}",
            _change(check),
            *([_least(check)] if least else []),
            *([_most(check)] if most else []),
        ]
        table.add_row(*(Text(cell, style="bold" if gate.fails(check) else "") for cell in cells))
    return table


def _title(gate: Gate, first: ContenderCheck, name: str) -> str:
    """The name, and how many other contenders score alike."""
    alike = [check.contender for check in gate.checks if check.alike == first.contender and check is not first]
    others = sum(not label.startswith(f"{name}+") for label in alike)
    return f"{name} +{others} alike" if others else name


def _change(check: ContenderCheck) -> str:
    change = round(-check.drop, 3) + 0.0  # no negative zero
    return signed(change, f"{change:.3f}".replace("-", MINUS))


def _least(check: ContenderCheck) -> str:
    return bound_below(check.least) if check.least is not None and check.outcome == "failed" else ""


def _most(check: ContenderCheck) -> str:
    return bound_above(check.most) if check.most is not None and check.outcome != "failed" else ""


def closing(gate: Gate) -> list[str]:
    """What did not change, which drops the gate can find, and what to do."""
    queries = pluralise(gate.queries, "query") + of_needs(gate.clusters)
    said, same = [], sum(not check.differing for check in gate.checks)
    if same:
        said.append(
            "Nothing changed." if same == len(gate.checks) else f"{pluralise(same, 'contender')} did not change."
        )
    worst = [check.worst for check in gate.checks if check.worst is not None and check.outcome != "passed"]
    if worst:
        lost = min(worst, key=lambda one: one.change)
        said.append(f"Worst query: {lost.text} ({difference(lost.change)}).")
    if gate.outcome == "undecided" and gate.mode == "drop":
        advice = "; --undecided fail makes this fail" if gate.undecided == "warn" else ""
        said.append(f"{queries} cannot tell{advice}.")
    if gate.regraded:
        said.append(f"{pluralise(gate.regraded, 'query')} regraded since; the baseline was rescored.")
    if gate.new:
        said.append(f"New, without a baseline: {enumeration(list(map(shorten, gate.new)))}.")
    lines = [" ".join(said)] if said else []
    return [*lines, f"{_power(gate, queries)} Baseline: {gate.baseline}."]


def _power(gate: Gate, queries: str) -> str:
    if gate.mode == "exact":
        return "Means are compared without a test."
    more = ""
    units = gate.clusters or gate.queries
    if gate.needed is not None and gate.needed > units:
        what = "needs" if gate.clusters else "queries"
        more = f"Ruling out a drop of {gate.max_drop:g} takes about {gate.needed:,} {what}. "
    if gate.finds is None:
        return f"{more}{queries} are too few to detect any drop in 4 of 5 cases."
    if gate.outcome == "passed":
        return f"{more}{Measure.parse(gate.measure).label} over {queries}; such a drop is found in 4 of 5 cases."
    return f"{more}This gate finds drops from about {_smallest_found(gate)} (4 of 5 cases, {queries})."


def _smallest_found(gate: Gate) -> str:
    return f"{round_gap(gate.finds or 0, gate.clusters or gate.queries):g}"


def reason(gate: Gate, check: ContenderCheck) -> str:
    """Describes one contender's change."""
    change = f"{check.before:.4f} → {check.after:.4f}"
    if not check.differing:
        return f"{change}, no query differs"
    ends = [
        *([f"at least {check.least:.4f}"] if check.least is not None and check.outcome == "failed" else []),
        *([f"at most {check.most:.4f}"] if check.most is not None and check.outcome != "failed" else []),
    ]
    drop = f"a drop of {check.drop:.4f}" if check.drop > 0 else "no drop"
    known = f" (true drop {ends[0]})" if ends else ""
    p = "" if check.p is None else f", p (Holm) = {check.p:.2g}"
    return f"{change}, {drop}{known}, {gate.max_drop:g} is allowed{p}"


def as_json(gate: Gate) -> str:
    """Every fact, with the outcome and the format number. `text` may change."""
    text = list(map(words, gate.refused)) or [headline(gate), *closing(gate)]
    content = {**msgspec.to_builtins(gate), "outcome": gate.outcome, "exit_code": gate.exit_code, "text": text}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def junit(gate: Gate) -> str:
    """One test case per contender: a drop is a failure, undecided is skipped, not comparable is an error."""
    failed = [check for check in gate.checks if gate.fails(check)]
    open_ = [check for check in gate.checks if check.outcome == "undecided" and check not in failed]
    skipped = [] if gate.undecided == "pass" else open_
    suite = ElementTree.Element(
        "testsuite",
        name=xml_text(f"bakeoff gate {gate.measure}"),
        tests=str(len(gate.checks) + len(gate.refused)),
        failures=str(len(failed)),
        errors=str(len(gate.refused)),
        skipped=str(len(skipped)),
    )
    for check in gate.checks:
        case = _case(suite, gate, check.contender)
        said = xml_text(f"{gate.measure} {reason(gate, check)}")
        if check in failed:
            ElementTree.SubElement(case, "failure", message=said, type="drop")
        elif check in skipped:
            ElementTree.SubElement(case, "skipped", message=said)
        ElementTree.SubElement(case, "system-out").text = said
    for why in gate.refused:
        case = _case(suite, gate, "comparable")
        ElementTree.SubElement(case, "error", message=xml_text(words(why)), type="not comparable")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, gate: Gate, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=xml_text(f"bakeoff.{gate.task}"), name=xml_text(name), time="0"
    )
