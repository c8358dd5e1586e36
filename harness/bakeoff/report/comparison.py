"""What `bakeoff compare` and `bakeoff gate` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bakeoff.core.figures import PairedDifference
from bakeoff.core.printable import counted, listed
from bakeoff.report.pairs import alike_note, p_text, pairs_table, with_interval
from bakeoff.results.compare import Comparison
from bakeoff.results.gate import Gate
from bakeoff.statistics.averaging import WEIGHTED
from bakeoff.statistics.constants import ALPHA

if TYPE_CHECKING:
    from rich.console import RenderableType

FEW_PAIRS = 6  # beyond these, queries are listed for the pairs of the best contender only
TEXT_WIDTH = 80


def terminal(comparison: Comparison, most: int) -> RenderableType:
    """The pairs, what they come to, and the queries behind them."""
    from rich.console import Group
    from rich.text import Text

    from bakeoff.report.prose import Prose

    different = sum(pair.p_holm <= ALPHA for pair in comparison.pairs)
    letters = [f"{letter} = {name}" for letter, name in comparison.letters.items()]
    parts: list[RenderableType] = [
        *map(Prose, letters),
        pairs_table(comparison.pairs, comparison.measure, comparison.means, comparison.relations),
        Prose(
            f"{_differing(different, len(comparison.pairs))} significantly over "
            f"{counted(len(comparison.queries), 'query')} ({_correction(comparison)}, 5%"
            f"{f'; {WEIGHTED}' if comparison.by_traffic else ''})."
        ),
        *map(Prose, alike_note(comparison.pairs)),
        *_equivalent(comparison),
        *_narrowed(comparison),
        *map(Prose, comparison.unmatched),
    ]
    for pair, *others in _alike(comparison) if most else ():
        changes = comparison.changed_most(pair, most)
        title = f"Differ most, {pair.b} → {pair.a}:" if changes else f"No query differs between {pair.b} and {pair.a}."
        parts += [Text(""), Prose(title)]
        parts += [
            Prose(
                f"  {change.a - change.b:+.3f}  {change.b:.3f} → {change.a:.3f}  {change.query}: {_short(change.text)}"
            )
            for change in changes
        ]
        same = [f"{other.b} → {other.a}" for other in others]
        parts += [Prose(f"  The same, {listed(same)}.")] if changes and same else []
    return Group(*parts)


def _correction(comparison: Comparison) -> str:
    """How many pairs the correction is over, where that is fewer than are tested."""
    if comparison.distinct == len(comparison.tested):
        return "Holm"
    return f"Holm over {counted(comparison.distinct, 'pair')}, as rows that score alike count once"


def _alike(comparison: Comparison) -> list[list[PairedDifference]]:
    """The pairs whose queries are listed, together where both sides score alike: nobody reads the same lines twice."""
    groups: dict[tuple[str, str], list[PairedDifference]] = {}
    first = comparison.first_alike
    for pair in _listed(comparison):
        a, b = first[pair.a], first[pair.b]
        groups.setdefault((a, b) if a != b else (pair.a, pair.b), []).append(pair)
    return list(groups.values())


def _differing(different: int, pairs: int) -> str:
    if pairs == 1:
        return "The pair differs" if different else "The pair does not differ"
    return f"{different} of {pairs} pairs {'differs' if different == 1 else 'differ'}"


def _equivalent(comparison: Comparison) -> list[RenderableType]:
    from bakeoff.report.prose import Prose

    if comparison.equivalent_within is None:
        return []
    relations = comparison.relations
    return [
        Prose(
            f"{relations.count('equivalent')} are equivalent within {comparison.equivalent_within:g} "
            f"(two one-sided tests, Holm, 5%), {relations.count('undecided')} undecided."
        )
    ]


def _narrowed(comparison: Comparison) -> list[RenderableType]:
    from bakeoff.report.prose import Prose

    shown, tested = len(comparison.pairs), len(comparison.tested)
    if shown == tested:
        return []
    return [Prose(f"Shown: {shown:,} of {counted(tested, 'pair')}; Holm's correction is over all of them.")]


def _listed(comparison: Comparison) -> list[PairedDifference]:
    if len(comparison.pairs) <= FEW_PAIRS:
        return list(comparison.pairs)
    means = comparison.means
    best = max(means, key=lambda label: means[label])
    return [pair for pair in comparison.pairs if best in (pair.a, pair.b)]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT_WIDTH else line[: TEXT_WIDTH - 1] + "…"


def as_json(comparison: Comparison, most: int) -> str:
    """The pairs with the queries behind them, unrounded."""
    content = {
        "measure": str(comparison.measure),
        "queries": len(comparison.queries),
        "pairs_tested": len(comparison.tested),
        **({"weighting": WEIGHTED} if comparison.by_traffic else {}),
        "means": comparison.means,
        "unmatched": list(comparison.unmatched),
        "pairs": [
            {
                **msgspec.to_builtins(pair),
                **(
                    {"relation": comparison.relations[at], "p_equivalent": comparison.p_equivalent[at]}
                    if comparison.equivalent_within is not None
                    else {}
                ),
                "changed_most": [c._asdict() for c in comparison.changed_most(pair, most)],
            }
            for at, pair in enumerate(comparison.pairs)
        ],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def gate_lines(gate: Gate) -> RenderableType:
    """A line for each contender, and the verdict."""
    from rich.console import Group

    from bakeoff.report.prose import Prose

    parts: list[RenderableType] = []
    for check in gate.checks:
        pair = check.pair
        parts.append(
            Prose(
                f"{'FAIL' if check.failed else 'pass'}  {check.contender}: {gate.measure} {check.before:.4f} → "
                f"{check.after:.4f}, {with_interval(pair)}, "
                f"p (Holm) {p_text(pair.p_holm)}: {check.reason}",
                style="bold red" if check.failed else "",
            )
        )
    notes = [*alike_note([check.pair for check in gate.checks]), *gate.notes]
    parts += [Prose(f"note: {note}", "dim") for note in notes]
    failed = sum(check.failed for check in gate.checks)
    verdict = f"gate failed: {failed} of {len(gate.checks)} dropped" if failed else f"gate passed ({gate.measure})"
    parts.append(Prose(f"{verdict} against {gate.baseline}"))
    return Group(*parts)
