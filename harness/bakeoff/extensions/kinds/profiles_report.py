"""What golden profiles got: tables for the reports, a Markdown page and a JSON artefact of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bakeoff.core.figures import Section
from bakeoff.core.markdown import section_lines

NOT_THERE = "N/A"


def sections(figures: Mapping[str, Any], k: int) -> list[Section]:
    """From the figures alone."""
    return [_contenders(figures, k), _modes(figures, k), _reasons(figures), _profiles(figures, k)]


def _contenders(figures: Mapping[str, Any], k: int) -> Section:
    rows = []
    for label, figure in figures["contenders"].items():
        amounts = figure["amounts"]
        rows.append(
            [
                label,
                str(len(figure["rule_violations"])),
                f"{figure['coverage']} ({figure['coverage_share']:.0%})",
                *([f"{amounts[what]:,.0f}" for what in ("mean", "median", "max")] if amounts else ["–"] * 3),
                {True: "yes", False: "NO", None: "one round only"}[figure["stable"]],
            ]
        )
    return Section(
        title="What the profiles got",
        head=["Contender", "rule violations", f"Coverage@{k}", "amount mean", "median", "max", "stable"],
        rows=rows,
        notes=[
            f"Eligibility precision {figures['eligibility_precision']:.3f}: the share of the items that a profile is "
            f"eligible for, mean over {len(figures['eligibility'])} profiles.",
            f"Snapshot {figures['snapshot']}: {figures['items']} items. Weights from {figures['weights_from']}: "
            f"similarity {figures['weights']['similarity']:g}, keywords {figures['weights']['keywords']:g}.",
            *figures["notes"],
            *(
                f"{label}: {one['profile']} got {one['item']}, though {', '.join(one['reasons'])}"
                for label, figure in figures["contenders"].items()
                for one in figure["rule_violations"]
            ),
        ],
    )


def _modes(figures: Mapping[str, Any], k: int) -> Section:
    rows, moved = [], []
    for label, figure in figures["contenders"].items():
        plain, hybrid = figure["ndcg"]["no_similarity"], figure["ndcg"]["hybrid"]
        change = "–" if plain is None or hybrid is None else f"{hybrid - plain:+.3f}"
        if plain is not None and hybrid is not None:
            moved.append(abs(hybrid - plain))
        calibrated = figure["calibrated_threshold"]
        rows.append(
            [label, _number(plain), _number(hybrid), change, "–" if calibrated is None else f"{calibrated:.3f}"]
        )
    notes = [
        "Proxy labels share features with the ranker (keywords, and in hybrid mode the similarity itself): a high NDCG "
        "says that it agrees with them, not that people would.",
    ]
    if moved:
        notes.append(f"Between the two label modes NDCG@{k} moves by up to {max(moved):.3f}.")
    notes.append(
        "Calibrated thresholds are shown, never applied: the median over profiles of the similarity that leaves the "
        "top 25% of the items without a common keyword (--set calibrate_thresholds=true)."
    )
    return Section(
        title=f"NDCG@{k} by label mode, over profiles with a label",
        head=["Contender", "no_similarity", "hybrid", "change", "calibrated threshold"],
        rows=rows,
        notes=notes,
    )


def _reasons(figures: Mapping[str, Any]) -> Section:
    counts = {name: one["eligible_count"] for name, one in figures["eligibility"].items()}
    notes = [f"Eligible items per profile: {min(counts.values())} to {max(counts.values())}."]
    if empty := [name for name, count in counts.items() if not count]:
        notes.append(f"Nothing is eligible for {', '.join(empty)}: the list is empty.")
    return Section(
        title="Why items were shut out",
        head=["Reason", "profile × item"],
        rows=[[reason, str(count)] for reason, count in figures["shut_out"].items()],
        notes=notes,
    )


def _profiles(figures: Mapping[str, Any], k: int) -> Section:
    contenders, mode = figures["contenders"], figures["label_mode"]
    rows = [
        [
            name,
            str(one["eligible_count"]),
            str(one["total_count"]),
            _number(one["eligibility_precision"]),
            *(_number(figure["profiles"][name]["ndcg"][mode]) for figure in contenders.values()),
        ]
        for name, one in figures["eligibility"].items()
    ]
    means = [_number(figure["ndcg"][mode]) for figure in contenders.values()]
    return Section(
        title="Profile by profile",
        head=["Profile", "eligible", "items", "eligibility precision", *(f"NDCG@{k} {label}" for label in contenders)],
        rows=[*rows, ["mean", "", "", _number(figures["eligibility_precision"]), *means]],
        notes=[f"{NOT_THERE}: no item is labelled. NDCG@{k} is by {mode} labels."],
    )


def report(task: str, stamp: str, tables: list[Section]) -> str:
    """The Markdown page."""
    lines = [f"# Profiles of {task}, {stamp}", ""]
    for table in tables:
        lines += section_lines(table.title, table.head, table.rows, table.notes)
    return "\n".join(lines)


def artifact(task: str, stamp: str, figures: Mapping[str, Any]) -> bytes:
    """The same for machines, every profile's list included."""
    content = msgspec.json.encode({"task": task, "made": stamp, **figures})
    return msgspec.json.format(content, indent=2) + b"\n"


def _number(value: float | str | None) -> str:
    return NOT_THERE if value is None or isinstance(value, str) else f"{value:.3f}"
