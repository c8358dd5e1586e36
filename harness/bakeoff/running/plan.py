"""What a run would ask for and cost, before any call is made."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from bakeoff.core.progress import showing
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.engines import with_shared_cache
from bakeoff.running.runner import depth_of, task_of
from bakeoff.running.settings import Settings
from bakeoff.systems.base import Demand, Plan, System
from bakeoff.tasks.kinds import load_kind

__all__ = ["Plan", "plan", "plan_sentences"]


def plan(lineup: Lineup, settings: Settings) -> list[Plan]:
    """A plan for each distinct embedding and each second stage, in the order of the line-up.

    No service is asked for anything; a model whose weights are here embeds a few texts, which tells its pace.
    """
    with showing(settings.progress):
        return _plans(lineup, settings)


def plan_sentences(plans: Sequence[Plan], lineup: Lineup) -> list[str]:
    """What the table of the plans does not show: rows that embed nothing, and what would weaken the others."""
    planned = {label for one in plans for label in one.rows}
    silent = [contender.label for contender in lineup.contenders if contender.label not in planned]
    verb, are = ("embeds", "is") if len(silent) == 1 else ("embed", "are")
    absent = [
        f"{', '.join(silent)} {verb} nothing of {'its' if len(silent) == 1 else 'their'} own and {are} not listed"
    ]
    warned = [f"warning: {', '.join(one.rows)}: {warning}" for one in plans for warning in one.warnings]
    return [*(absent if silent else []), *dict.fromkeys(warned)]


def _plans(lineup: Lineup, settings: Settings) -> list[Plan]:
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    settings = with_shared_cache(settings, settings.engine or lineup.engine)
    task = task_of(kind, lineup, settings)
    embeddings = Embeddings(task, depth_of(lineup, kind, task), settings, lineup.folder)
    unset = {row.label: reason for row in lineup.contenders if (reason := row.unset_variables())}
    sharing: dict[Hashable, list[System]] = {}
    for row in (*kind.models, *(row for row in lineup.contenders if row.label not in unset)):
        sharing.setdefault(row.shares, []).append(row)
    plans = []
    for rows in sharing.values():
        further = kind.further_texts if any(row not in kind.models for row in rows) else ()
        demand = Demand(rows, lineup.rounds, _askings(rows[0], lineup), further)
        plans.append(rows[0].price(embeddings, demand))
    lacking = [Plan((label,), note=reason, lacks=True) for label, reason in unset.items()]
    return [*(one for one in plans if one is not None), *lacking]


def _askings(asked: System, lineup: Lineup) -> int:
    """How often a round asks for what this row shares: for each row that does, and each that is made of such."""
    rows = {row.label: row for row in lineup.contenders}

    def asks(row: System) -> int:
        if row.made_of:
            return sum(asks(rows[part]) for part in row.made_of)
        return int(row.shares == asked.shares)

    return sum(map(asks, lineup.contenders))
