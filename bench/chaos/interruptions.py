"""Runs of the built-in line-ups, interrupted at a random moment: what the next command makes of them."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bakeoff.core.paths import built_in_lineups
from bakeoff.embedding.embed import AT_RISK_TEXTS
from bakeoff_providers.weights import home

from chaos.drafts import figures_of
from chaos.processes import bakeoff
from chaos.row import Figure, Plan, attempts
from tests.services import ADDRESSES
from tests.wire import WireServer

SOONEST, LATEST = 0.02, 0.98  # of the time that an undisturbed run takes


@dataclass(frozen=True)
class Whole:
    """A run that nobody disturbed."""

    seconds: float
    figures: dict[str, Any]


@dataclass(frozen=True)
class Resumed:
    """An interrupted run, and the command after it."""

    lineup: str
    killed: bool
    moment: float  # seconds after its start
    failed: bool
    differs: bool
    twice: int
    left: int
    said: str


def interruptions(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Line-ups in turn; Ctrl-C and kill -9 in turn. Hosted rows ask a server that counts."""
    names = list(built_in_lineups())
    plan.rng("interruptions", -1).shuffle(names)  # a few attempts are of a few line-ups
    names = names[:count]

    def undisturbed(number: int, _: random.Random) -> Whole:
        place = folder / "undisturbed" / names[number]
        with WireServer() as wire:
            begin = time.monotonic()
            run = _start(place, names[number], wire)
            said = run.communicate(timeout=600)[1]
        if run.returncode:
            raise RuntimeError(f"{names[number]} does not run here: {said}")
        return Whole(time.monotonic() - begin, figures_of(place))

    whole, none = attempts(plan, "interruptions", len(names), undisturbed)
    if none.seen:
        return [none]

    def attempt(number: int, rng: random.Random) -> Resumed:
        name, expected = names[number % len(names)], whole[number % len(names)]
        killed, moment = bool((number + number // len(names)) % 2), expected.seconds * rng.uniform(SOONEST, LATEST)
        with WireServer() as wire:
            place, first = folder / str(number), _start(folder / str(number), name, wire)
            while not _outlives(first, moment):  # a quicker run than the undisturbed one: sooner, and from the start
                place, moment = place.with_name(f"{place.name}-again"), moment / 2
                wire.requests.clear()
                first = _start(place, name, wire)
            first.send_signal(signal.SIGKILL if killed else signal.SIGINT)
            first.communicate(timeout=60)
            again = _start(place, name, wire)
            _, said = again.communicate(timeout=600)
            bought = Counter(
                (request.provider, request.model, request.task, request.body.get("query", ""), text)
                for request in wire.requests
                for text in request.texts
                if request.provider != "ollama"  # is free, and timed in every round
            )
        return Resumed(
            name,
            killed,
            moment,
            again.returncode != 0,
            figures_of(place) != expected.figures,
            sum(times - 1 for times in bought.values()),
            len(list(place.glob("results/*.draft"))),
            said[-400:],
        )

    ended, missing = attempts(plan, "interruptions", count, attempt)
    asked, killed = ([one for one in ended if one.killed is which] for which in (False, True))
    detail = "\n".join(f"  {one}" for one in ended if one.failed or one.differs or one.left or one.twice)
    return [
        Figure(
            f"runs after {len(ended)} interruptions of {len(names)} built-in line-ups that failed",
            sum(one.failed for one in ended), 0, detail,
        ),
        Figure("  whose figures differ from those of an undisturbed run", sum(one.differs for one in ended), 0, detail),
        Figure(f"  texts paid twice after {len(asked)} × Ctrl-C", sum(one.twice for one in asked), 0, detail),
        Figure(
            f"  most texts paid twice after one of {len(killed)} kills",
            max((one.twice for one in killed), default=0), AT_RISK_TEXTS, detail,
        ),
        Figure("  drafts left by the run after", sum(one.left for one in ended), 0, detail),
        missing,
    ]  # fmt: skip


def _outlives(process: subprocess.Popen[str], seconds: float) -> bool:
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _start(place: Path, name: str, wire: WireServer) -> subprocess.Popen[str]:
    """With the weights that are here, and nothing else of this machine's cache."""
    if not (models := place / "home" / "models").exists():
        models.parent.mkdir(parents=True)
        models.symlink_to(home() / "models")
    addresses = {variable: wire.base(provider) for provider, variable in ADDRESSES.items()}
    return bakeoff(place, "run", name, "--no-charts", "--out", str(place / "results"), variables=addresses)
