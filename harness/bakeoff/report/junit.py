"""The gate as JUnit XML, which every CI shows."""

from __future__ import annotations

from xml.etree import ElementTree

from bakeoff.report.clean import xml_text
from bakeoff.report.pairs import with_interval
from bakeoff.results.gate import Gate


def junit(gate: Gate) -> str:
    """A test case for each contender; what can't be compared is an error, a drop is a failure."""
    failures = sum(check.failed for check in gate.checks)
    suite = ElementTree.Element(
        "testsuite",
        name=xml_text(f"bakeoff gate {gate.measure}"),
        tests=str(len(gate.checks) + len(gate.refused)),
        failures=str(failures),
        errors=str(len(gate.refused)),
        skipped="0",
    )
    for check in gate.checks:
        case = _case(suite, gate, check.contender)
        if check.failed:
            ElementTree.SubElement(case, "failure", message=xml_text(check.reason), type="drop")
        pair = check.pair
        ElementTree.SubElement(case, "system-out").text = xml_text(
            f"{gate.measure} {check.before:.6f} -> {check.after:.6f}, difference {with_interval(pair, 6)}, "
            f"p = {pair.p:.6g}, p (Holm) = {pair.p_holm:.6g}: {check.reason}"
        )
    for reason in gate.refused:
        case = _case(suite, gate, "comparable")
        ElementTree.SubElement(case, "error", message=xml_text(reason), type="not comparable")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, gate: Gate, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=xml_text(f"bakeoff.{gate.task}"), name=xml_text(name), time="0"
    )
