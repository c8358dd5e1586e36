"""What `bakeoff compare` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from bakeoff.core.figures import PairedDifference
from bakeoff.core.printable import pluralise
from bakeoff.report.groups import group_names
from bakeoff.report.numbers import enumeration, of_needs
from bakeoff.report.pairs import pairs_table
from bakeoff.report.words import WEIGHTED, words
from bakeoff.results.compare import Comparison
from bakeoff.statistics.constants import ALPHA

if TYPE_CHECKING:
    from rich.console import RenderableType

FORMAT = 2  # of the JSON
FEW_PAIRS = 6  # up to this many, all are listed
TEXT_WIDTH = 80


def terminal(comparison: Comparison, most: int, *, every: bool = False) -> RenderableType:
    """A conclusion, then the pairs that differ, then the queries behind the first of them."""
    from rich.console import Group
    from rich.text import Text

    from bakeoff.report.grid import Prose

    pairs, apart = _distinct_and_apart(comparison)
    names, asked = _names(comparison), pluralise(len(comparison.queries), "query")
    shown = pairs if every or len(pairs) <= FEW_PAIRS else apart
    parts: list[RenderableType] = [Prose(conclusion(comparison), "bold")]
    parts += [Prose(f"{letter} = {name}") for letter, name in comparison.letters.items()]
    if pairs:
        weighted = f"; {WEIGHTED}" if comparison.by_traffic else ""
        needs = of_needs(comparison.averaging.clusters)
        over = f"over {asked}{needs} (all pairs tested together, 5%{weighted})"
        parts.append(Prose(f"{_differing(len(apart), len(pairs))} {over}."))
    if shown:
        parts.append(pairs_table(shown, _relations(comparison, shown), names))
        parts.append(Prose("Intervals are per pair; p is corrected for all pairs."))
    if len(shown) < len(pairs):
        parts.append(
            Prose(f"{pluralise(len(pairs) - len(shown), 'pair')} cannot be separated; --all lists every pair.")
        )
    if len(pairs) < len(comparison.pairs) and not comparison.letters:
        alike = len(comparison.scores) - len(set(comparison.first_alike.values()))
        parts.append(
            Prose(f"{pluralise(alike, 'row')} {'scores' if alike == 1 else 'score'} like another and count once.")
        )
    parts += [*_equivalent(comparison), *_narrowing(comparison)]
    parts += [Prose(words(rows)) for rows in comparison.unmatched]
    if most and (first := next(iter(apart or pairs), None)):
        changes = comparison.changed_most(first, most)
        better = first if first.difference >= 0 else first.reverse()
        parts += [
            Text(""),
            Prose(f"{names[better.a]} against {names[better.b]}, largest differences of {asked}"),
        ]
        for change in changes:
            a, b = (change.a, change.b) if better is first else (change.b, change.a)
            parts.append(Prose(_short(f"  {a:.3f} {b:.3f} {change.query}: {change.text}")))
    return Group(*parts)


def _distinct_and_apart(comparison: Comparison) -> tuple[list[PairedDifference], list[PairedDifference]]:
    """The pairs that differ on some query, counting equal rows once, and those that differ significantly.

    The largest differences come first.
    """
    first = comparison.first_alike
    by_sides: dict[frozenset[str], PairedDifference] = {}
    for pair in comparison.pairs:
        if first[pair.a] != first[pair.b]:
            by_sides.setdefault(frozenset((first[pair.a], first[pair.b])), pair)
    pairs = sorted(by_sides.values(), key=lambda pair: -abs(pair.difference))
    return pairs, [pair for pair in pairs if pair.p_holm <= ALPHA]


def conclusion(comparison: Comparison) -> str:
    """One sentence on what differs."""
    (pairs, apart), measure = _distinct_and_apart(comparison), comparison.measure.label
    if not pairs and comparison.letters:
        return f"Nothing changed: {pluralise(len(comparison.pairs), 'contender')} score alike on every query."
    if not pairs:
        return f"All rows score alike on {measure}."
    if comparison.letters:
        first = comparison.first_alike
        changed = [pair for pair in comparison.pairs if first[pair.a] != first[pair.b]]
        sure = sum(pair.p_holm <= ALPHA for pair in changed) or "none"
        every = pluralise(len(comparison.pairs), "contender")
        return f"{len(changed)} of {every} changed on {measure}, {sure} significantly."
    wins: dict[str, list[str]] = {}
    names = _names(comparison)
    for pair in apart:
        better = pair if pair.difference > 0 else pair.reverse()
        if (pair.a, pair.b) not in comparison.open:
            wins.setdefault(better.a, []).append(names[better.b])
    turned = [pair for pair in apart if (pair.a, pair.b) in comparison.open]
    number = "the pair" if len(pairs) == 1 else f"{len(turned)} of {len(pairs)} pairs"
    rest = f" Ungraded documents could turn {number}." if turned else ""
    if not wins:
        return f"No row is {'shown to be' if turned else 'significantly'} better than another on {measure}.{rest}"
    best = max(wins, key=lambda label: comparison.means[label])
    return f"{names[best]} is better than {enumeration(wins[best])} on {measure}.{rest}"


def _names(comparison: Comparison) -> dict[str, str]:
    """The name of each side. Across results, each row is compared with itself and keeps its label."""
    return group_names(
        {label: label if comparison.letters else first for label, first in comparison.first_alike.items()}
    )


def _relations(comparison: Comparison, shown: Sequence[PairedDifference]) -> list[str]:
    known = {(pair.a, pair.b): name for pair, name in zip(comparison.pairs, comparison.relations, strict=False)}
    return [known[pair.a, pair.b] for pair in shown] if known else []


def _differing(different: int, pairs: int) -> str:
    if pairs == 1:
        return f"The pair is {'' if different else 'not '}significantly different"
    return f"{different} of {pairs} pairs {'is' if different == 1 else 'are'} significantly different"


def _equivalent(comparison: Comparison) -> list[RenderableType]:
    from bakeoff.report.grid import Prose

    if comparison.equivalent_within is None:
        return []
    relations, needs = comparison.relations, ""
    clusters, needed = comparison.averaging.clusters, comparison.queries_for_equivalence
    have, what = (clusters, "needs") if clusters else (len(comparison.queries), "queries")
    if needed is not None and needed > have:
        needs = f" To show it for the least variable pair takes about {needed:,} {what}."
    return [
        Prose(
            f"{relations.count('equivalent')} are equivalent within {comparison.equivalent_within:g} "
            f"(two one-sided tests, Holm, 5%), {relations.count('undecided')} undecided.{needs}"
        )
    ]


def _narrowing(comparison: Comparison) -> list[RenderableType]:
    from bakeoff.report.grid import Prose

    shown, tested = len(comparison.pairs), len(comparison.tested)
    if shown == tested:
        return []
    return [Prose(f"Shown: {shown:,} of {pluralise(tested, 'pair')}; Holm's correction covers all of them.")]


def _short(line: str) -> str:
    line = line[:2] + " ".join(line[2:].split())
    return line if len(line) <= TEXT_WIDTH else line[: TEXT_WIDTH - 1] + "…"


def as_json(comparison: Comparison, most: int) -> str:
    """The pairs with the queries behind them, unrounded. `text` may change."""
    content = {
        "format": FORMAT,
        "measure": str(comparison.measure),
        "queries": len(comparison.queries),
        "pairs_tested": len(comparison.tested),
        **({"clusters": comparison.averaging.clusters} if comparison.averaging.clusters else {}),
        **({"weighting": "traffic"} if comparison.by_traffic else {}),
        "means": comparison.means,
        "unmatched": list(comparison.unmatched),
        "pairs": [
            {
                **msgspec.to_builtins(pair),
                **({"open": True} if (pair.a, pair.b) in comparison.open else {}),
                **(
                    {"relation": comparison.relations[at], "p_equivalent": comparison.p_equivalent[at]}
                    if comparison.equivalent_within is not None
                    else {}
                ),
                "changed_most": [c._asdict() for c in comparison.changed_most(pair, most)],
            }
            for at, pair in enumerate(comparison.pairs)
        ],
        "text": [conclusion(comparison), *map(words, comparison.unmatched)],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"
