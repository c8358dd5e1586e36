"""Run the same queries through two contenders: how far their results differ, and which pairs to grade next."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from bakeoff_providers.errors import Unavailable

from bakeoff.core.facts import fact
from bakeoff.core.files import write_atomic
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.results.check import Check, Gauge
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.prepare import Preparation
from bakeoff.running.settings import Settings
from bakeoff.search.stores.scratch import scratch
from bakeoff.statistics.constants import NOISE
from bakeoff.systems.base import NotRun, Prepared
from bakeoff.systems.failures import adapter_work
from bakeoff.tasks.kinds import load_kind

PERSISTENCE = 0.9  # RBO: probability of going on to the next rank


def overlap(a: Sequence[str], b: Sequence[str], k: int) -> float:
    """The share of the top k documents that both lists have."""
    size = min(k, max(len(a), len(b)))
    return len(set(a[:k]) & set(b[:k])) / size if size else 1.0


def rbo(a: Sequence[str], b: Sequence[str], k: int, p: float = PERSISTENCE) -> float:
    """Rank-biased overlap, extrapolated from depth k (Webber, Moffat and Zobel 2010, equation 23 for even lists).

    Ranks that only the longer list fills count as disagreement.
    """
    depth = min(k, max(len(a), len(b)))
    if not depth:
        return 1.0
    agreements = [len(set(a[:d]) & set(b[:d])) / d for d in range(1, depth + 1)]
    summed = sum(agreement * p**d for d, agreement in enumerate(agreements, start=1))
    return agreements[-1] * p**depth + (1 - p) / p * summed


def ask(
    lineup: Lineup, labels: Sequence[str], queries: Sequence[Query], depth: int, settings: Settings
) -> dict[str, dict[str, Ranking]]:
    """Run every query through each contender over the line-up's corpus; fail if one can't run."""
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    task = msgspec.structs.replace(kind.task(), queries=list(queries), judgments={})
    chosen = lineup.narrow(labels).contenders
    embeddings = Embeddings(task, depth, settings, lineup.folder)
    with scratch("replay") as folder:
        preparation = Preparation(chosen, embeddings, folder, lineup.limits)
        try:
            answers: dict[str, dict[str, Ranking]] = {}
            for row in preparation.all():
                if not isinstance(row, Prepared):
                    reason = failure_words(row.failure) if isinstance(row, NotRun) else "its answers are files"
                    raise Unavailable(reason, of=row.contender.label)
                with adapter_work():
                    row.searcher.prefetch(queries)
                    answers[row.contender.label] = {query.id: row.searcher.ask(query).ranking for query in queries}
            return {label: answers[label] for label in labels}
        finally:
            preparation.close()
            embeddings.close()


def replay(
    old: Mapping[str, Ranking],
    new: Mapping[str, Ranking],
    queries: Sequence[Query],
    weights: Mapping[str, float],
    *,
    k: int = 10,
    grade: int = 50,
    out: Path | None = None,
) -> Check:
    """Compare two contenders, weighted by traffic if weights are given. Pairs in only one list are worth grading.

    Only documents that matched are compared. Lists padded alike do not count as agreement.
    """
    share = np.array([weights.get(query.id, 1 / len(queries)) for query in queries])
    share /= share.sum()
    overlaps = np.array([overlap(old[query.id].found, new[query.id].found, k) for query in queries])
    biased = np.array([rbo(old[query.id].found, new[query.id].found, k) for query in queries])
    order = sorted(range(len(queries)), key=lambda at: (biased[at], queries[at].id))
    worth = sorted(range(len(queries)), key=lambda at: (-share[at] * (1 - overlaps[at]), queries[at].id))
    pairs = [
        (queries[at].id, queries[at].text, document)
        for at in worth[:grade]
        for document in _only_one_has(old[queries[at].id].cut(k), new[queries[at].id].cut(k))
    ]
    same = float(share[overlaps == 1.0].sum())
    facts = [
        fact("production.replay", queries=len(queries), k=k, overlap=float(share @ overlaps),
             rbo=float(share @ biased), same=same),
        *[
            fact("production.changed_most", query=queries[at].text, overlap=float(overlaps[at]), rbo=float(biased[at]))
            for at in order[:5]
            if biased[at] < 1 - NOISE
        ],
    ]  # fmt: skip
    if out is not None:
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerows([("query", "text", "document"), *pairs])
        write_atomic(out, text.getvalue())
        facts.append(fact("production.pairs_to_grade", pairs=len(pairs), file=str(out)))
    figures = {
        "queries": len(queries), "overlap": float(share @ overlaps), "rbo": float(share @ biased), "same": same, "k": k,
        "changed_most": [
            {"query": queries[at].text, "overlap": float(overlaps[at]), "rbo": float(biased[at])} for at in order[:20]
        ],
        "worth_grading": len(pairs),
    }  # fmt: skip
    gauges = [
        Gauge("replay_overlap", "Mean share of documents that both lists have", float(share @ overlaps)),
        Gauge("replay_rbo", "Mean rank-biased overlap", float(share @ biased)),
    ]
    return Check(command="log replay", worse=False, facts=facts, figures=figures, gauges=gauges)


def _only_one_has(old: Ranking, new: Ranking) -> list[str]:
    return [
        document
        for document in dict.fromkeys([*new.found, *old.found])
        if document not in old.found or document not in new.found
    ]
