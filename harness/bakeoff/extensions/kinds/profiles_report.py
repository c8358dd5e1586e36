"""Reports of golden profiles: tables, a Markdown page and a JSON artefact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bakeoff.core.facts import Fact, Section, TableCell, TableColumn, column, fact
from bakeoff.core.printable import section_lines
from bakeoff.report.sections import text_table

NOT_THERE = "N/A"
STABLE = {True: fact("kinds.same_order"), False: fact("kinds.other_order"), None: fact("kinds.one_round")}


def sections(figures: Mapping[str, Any], k: int, notes: Sequence[Fact]) -> list[Section]:
    """The report's sections, from the figures and the notes on the snapshot."""
    return [_contenders(figures, k, notes), _modes(figures, k), _reasons(figures), _profiles(figures, k)]


def _contenders(figures: Mapping[str, Any], k: int, notes: Sequence[Fact]) -> Section:
    rows: list[list[TableCell]] = []
    for label, figure in figures["contenders"].items():
        amounts = figure["amounts"] or {}
        rows.append(
            [
                label,
                len(figure["rule_violations"]),
                figure["coverage"],
                figure["coverage_share"],
                *(amounts.get(what) for what in ("mean", "median", "max")),
                STABLE[figure["stable"]],
            ]
        )
    return Section(
        title=fact("kinds.profiles"),
        head=[
            column("contender"),
            column("kinds.rule_violations", "count"),
            TableColumn(head=fact("kinds.coverage", k=k), form="count"),
            column("kinds.coverage_share", "percent", 0),
            column("kinds.amount_mean", "fixed", 0),
            column("kinds.amount_median", "fixed", 0),
            column("kinds.amount_max", "fixed", 0),
            column("kinds.stable"),
        ],
        rows=rows,
        notes=[
            fact(
                "kinds.eligibility",
                precision=figures["eligibility_precision"],
                profiles=len(figures["eligibility"]),
            ),
            fact(
                "kinds.snapshot",
                snapshot=figures["snapshot"],
                items=figures["items"],
                weights_from=figures["weights_from"],
                similarity=figures["weights"]["similarity"],
                keywords=figures["weights"]["keywords"],
            ),
            *notes,
            *(
                fact("kinds.violation", label=label, **one)
                for label, figure in figures["contenders"].items()
                for one in figure["rule_violations"]
            ),
        ],
    )


def _modes(figures: Mapping[str, Any], k: int) -> Section:
    rows: list[list[TableCell]] = []
    moved = []
    for label, figure in figures["contenders"].items():
        plain, hybrid = figure["ndcg"]["no_similarity"], figure["ndcg"]["hybrid"]
        change = None if plain is None or hybrid is None else hybrid - plain
        if change is not None:
            moved.append(abs(change))
        rows.append([label, _show_score(plain), _show_score(hybrid), change, figure["calibrated_threshold"]])
    return Section(
        title=fact("kinds.label_modes", k=k),
        head=[
            column("contender"),
            TableColumn(head="no_similarity", form="fixed"),
            TableColumn(head="hybrid", form="fixed"),
            column("kinds.change", "fixed", signed=True),
            column("kinds.calibrated", "fixed"),
        ],
        rows=rows,
        notes=[
            fact("kinds.proxy_labels"),
            *([fact("kinds.moved", k=k, most=max(moved))] if moved else []),
            fact("kinds.thresholds"),
        ],
    )


def _reasons(figures: Mapping[str, Any]) -> Section:
    counts = {name: one["eligible_count"] for name, one in figures["eligibility"].items()}
    empty = [name for name, count in counts.items() if not count]
    return Section(
        title=fact("kinds.shut_out"),
        head=[column("kinds.reason"), column("kinds.profile_items", "count")],
        rows=[[reason, count] for reason, count in figures["shut_out"].items()],
        notes=[
            fact("kinds.eligible", least=min(counts.values()), most=max(counts.values())),
            *([fact("kinds.nothing_eligible", profiles=empty)] if empty else []),
        ],
    )


def _profiles(figures: Mapping[str, Any], k: int) -> Section:
    contenders, mode = figures["contenders"], figures["label_mode"]
    rows: list[list[TableCell]] = [
        [
            name,
            one["eligible_count"],
            one["total_count"],
            one["eligibility_precision"],
            *(_show_score(figure["profiles"][name]["ndcg"][mode]) for figure in contenders.values()),
        ]
        for name, one in figures["eligibility"].items()
    ]
    means = [_show_score(figure["ndcg"][mode]) for figure in contenders.values()]
    return Section(
        title=fact("kinds.by_profile"),
        head=[
            column("kinds.profile"),
            column("kinds.eligible_items", "count"),
            column("kinds.items", "count"),
            column("kinds.eligibility_precision", "fixed"),
            *(TableColumn(head=fact("kinds.ndcg_of", k=k, label=label), form="fixed") for label in contenders),
        ],
        rows=[*rows, [fact("kinds.mean"), "", "", figures["eligibility_precision"], *means]],
        notes=[fact("kinds.by_profile_meaning", k=k, mode=mode)],
    )


def _show_score(value: float | str | None) -> TableCell:
    return fact("kinds.not_labelled") if value is None or isinstance(value, str) else value


def report(task: str, stamp: str, tables: list[Section]) -> str:
    """The Markdown page."""
    lines = [f"# Profiles of {task}, {stamp}", ""]
    for table in map(text_table, tables):
        lines += section_lines(table.title, table.heads, table.rows, table.notes)
    return "\n".join(lines)


def artifact(task: str, stamp: str, figures: Mapping[str, Any]) -> bytes:
    """The JSON artefact, with every profile's list."""
    content = msgspec.json.encode({"task": task, "made": stamp, **figures})
    return msgspec.json.format(content, indent=2) + b"\n"
