"""Each contender against the best: how often it would win, what it would cost to choose it, what can be said of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec.structs import replace

from bakeoff.core.arrays import Values
from bakeoff.core.figures import Section
from bakeoff.core.printable import listed
from bakeoff.evaluation.measures import Measure
from bakeoff.results.schema import Standing, Summary, Verdict
from bakeoff.statistics.averaging import Averaging
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.constants import NOISE
from bakeoff.statistics.equivalence import Relation, relation

TITLE = "Against the best"
SAME = "the same score on every query"


def with_standings(
    verdict: Verdict, scores: Mapping[str, Values], margin: float | None, averaging: Averaging
) -> Verdict:
    """The verdict with every contender's standing; a margin adds who is as good as the best within it."""
    best = verdict.best
    if best is None or len(scores) < 2:
        return verdict
    others = [label for label in scores if label != best]
    against = {pair.b if pair.a == best else pair.a: pair for pair in verdict.pairs if best in (pair.a, pair.b)}
    differences = [differences_of(scores[label], scores[best]) for label in others]
    bounded = Measure.parse(verdict.measure).bounded
    equivalent = (
        dict.fromkeys(others, None)
        if margin is None
        else dict(zip(others, averaging.p_equivalent(differences, margin, bounded=bounded).tolist(), strict=True))
    )
    wins = averaging.winning(scores)
    standings = {best: Standing(probability=wins[best].probability, regret=wins[best].regret, relation="best")}
    for label, d in zip(others, differences, strict=True):
        p = equivalent[label]
        standings[label] = Standing(
            probability=wins[label].probability,
            regret=wins[label].regret,
            relation=_relation(d, averaging.mean(d), against[label].p_holm, p),
            p_equivalent=p,
        )
    sentences = [*verdict.sentences, *_margin_sentences(standings, best, margin)]
    return replace(verdict, standings=standings, equivalent_within=margin, sentences=sentences)


def _relation(differences: Values, mean: float, p: float, p_equivalent: float | None) -> Relation | Literal["same"]:
    """Rows that score alike are not undecided: more queries of this sort would not tell them apart."""
    by_tests = relation(mean, p, p_equivalent)
    return "same" if by_tests == "undecided" and not np.any(np.abs(differences) > NOISE) else by_tests


def _margin_sentences(standings: Mapping[str, Standing], best: str | None, margin: float | None) -> list[str]:
    """What a margin adds to the verdict: one sentence, or none without a margin."""
    if margin is None or best is None:
        return []
    alike = [label for label, standing in standings.items() if standing.relation == "equivalent"]
    open_ = [label for label, standing in standings.items() if standing.relation == "undecided"]
    what = f"{listed(alike)} {'is' if len(alike) == 1 else 'are'}" if alike else "Nothing is shown to be"
    more = f"; for {listed(open_)} it is undecided" if open_ else ""
    return [f"{what} as good as {best} within {margin:g} (two one-sided tests, Holm, 5%){more}."]


def standing_sections(verdict: Verdict) -> list[Section]:
    """The standings as a table, the likeliest winner first."""
    if not verdict.standings:
        return []
    ordered = sorted(verdict.standings.items(), key=lambda item: (-item[1].probability, item[1].regret))
    within = f" within {verdict.equivalent_within:g}" if verdict.equivalent_within is not None else ""
    return [
        Section(
            title=TITLE,
            head=["Contender", "would be best", "expected regret", "to the best"],
            rows=[
                [
                    label,
                    f"{standing.probability:.1%}",
                    f"{standing.regret:.4f}",
                    (SAME if standing.relation == "same" else standing.relation)
                    + (within if standing.relation == "equivalent" else ""),
                ]
                for label, standing in ordered
            ],
            notes=[_meaning(verdict)],
        )
    ]


def _meaning(verdict: Verdict) -> str:
    """What the columns are, and the words that occur in them."""
    columns = "how often each row has the highest mean, and how far below the highest it is on average"
    relations = {standing.relation for standing in verdict.standings.values()}
    shared = "; rows that score alike share their wins." if "same" in relations else "."
    undecided = " Undecided: neither a difference nor equivalence is shown." if "undecided" in relations else ""
    return f"Over resampled queries: {columns}{shared}{undecided}"


def restated(folder: Path, margin: float) -> Summary:
    """A result's summary with the standings for another margin."""
    from bakeoff.results.result import load

    result = load(folder)
    summary = result.summary
    scores = {label: result.values(label) for label in result.labels}
    before = _margin_sentences(summary.verdict.standings, summary.verdict.best, summary.verdict.equivalent_within)
    kept = [sentence for sentence in summary.verdict.sentences if sentence not in before]
    averaging = result.averaging(int(summary.lineup["seed"]))
    verdict = with_standings(replace(summary.verdict, sentences=kept), scores, margin, averaging)
    sections = [section for section in summary.sections if section.title != TITLE]
    return replace(summary, verdict=verdict, sections=[*standing_sections(verdict), *sections])
