"""How a result was measured: the task and its health, machine, samples, costs, and how to make it again."""

from __future__ import annotations

import statistics
from collections import Counter

from bakeoff.results.schema import Detailed, Row, Summary

Facts = list[tuple[str, str]]


def task_facts(summary: Summary, detailed: Detailed) -> Facts:
    """What was asked, and how far the judgments carry."""
    task = summary.task
    grades = Counter(grade for query in detailed.queries.values() for grade in query.grades.values())
    relevant = [sum(grade >= task.rel for grade in query.grades.values()) for query in detailed.queries.values()]
    found: Facts = [
        ("Task", f"{task.name} ({task.kind}), fingerprint {task.fingerprint}"),
        ("Documents", f"{task.documents:,}" + (f", cut into {task.chunks:,}" if task.chunks != task.documents else "")),
        ("Queries", f"{task.queries:,}" + (f" in {len(task.categories)} categories" if task.categories else "")),
    ]
    if grades:
        shares = ", ".join(f"{count:,} of grade {grade}" for grade, count in sorted(grades.items(), reverse=True))
        found.append(("Judgments", f"{sum(grades.values()):,}: {shares}; relevant from grade {task.rel} on"))
        found.append(
            ("Relevant per query", f"median {statistics.median(relevant):g}, {min(relevant)} to {max(relevant)}")
        )
    unjudged = {row.label: row.measures["judged@10"].mean for row in summary.ran if "judged@10" in row.measures}
    if unjudged:
        least = min(unjudged, key=lambda label: unjudged[label])
        found.append(("Judged among the first 10", f"{unjudged[least]:.0%} or more (least: {least})"))
    lost = ", ".join(task.without_relevant)
    found.append(("Queries without a relevant document", lost or "none"))
    return found


def run_facts(summary: Summary) -> Facts:
    """When, where, with what, how often."""
    machine, lineup = summary.machine, summary.lineup
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    return [
        ("Made", f"{summary.started}, in {summary.seconds:.1f} s"),
        ("Machine", f"{machine.cpu}, {machine.cores} cores, {machine.memory_gb:g} GB, {machine.system}"),
        ("Load", f"{machine.load_before:g} before, {machine.load_after:g} after"),
        ("Threads", ", ".join(f"{name} {value}" for name, value in machine.threads.items()) or "not pinned"),
        ("Versions", f"Python {machine.python}, {versions}"),
        ("Asked", f"top {lineup['depth']}, {lineup['rounds']} rounds, seed {lineup['seed']}"),
        ("Statistics", "paired by query; sign-flip randomisation test, Holm over all distinct pairs; BCa intervals"),
    ]


USE_HEADS = ("Contender", "Model", "Dimensions", "Build s", "Cold embed ms", "Cold search ms", "Samples", "Tokens",
             "Requests", "Retries", "From cache", "Cut", "Price")  # fmt: skip


def use_table(summary: Summary) -> list[list[str]]:
    """For each contender what it took: build, cold calls, samples, tokens, requests, cache."""
    return [[row.label, *_use(row)] for row in summary.ran]


def _use(row: Row) -> list[str]:
    latency, cost = row.latency, row.cost
    return [
        row.model,
        _number(row.dimensions),
        _number(row.build_seconds, ".3f"),
        _number(latency.cold_embed_ms if latency else None, ".1f"),
        _number(latency.cold_search_ms if latency else None, ".1f"),
        _number(latency.search.n if latency else None),
        (("~" if cost.tokens_estimated else "") + f"{cost.tokens:,.0f}") if cost and cost.tokens else "–",
        *(_number(getattr(cost, name, None)) for name in ("requests", "retries", "cached", "truncated")),
        (cost.price if cost else "") or "–",
    ]


def _number(value: float | None, form: str = ",") -> str:
    return "–" if value is None else f"{value:{form}}"
