"""Measures against pytrec_eval and ranx: same data, same process, in turns, values checked equal, targets enforced.

    python bench/metrics.py [--queries 10000] [--depth 1000] [--rounds 5]

Needs `pip install -e '.[peers]'`. Exits 1 if a target is missed or a value differs.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from turns import in_turns

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.core.ranking import Ranking, ScoredRun, run_of
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores, deepest, join, score_queries

CUTS = (1, 3, 5, 10, 100)
NAMES = ("p", "recall", "f1", "ndcg", "map", "mrr")
MEASURES = [Measure.of(name, k=k) for name in NAMES for k in CUTS]
DEPTH = deepest(MEASURES)
CORPUS, JUDGED = 100_000, 10
RANX = {"p": "precision"}

Dicts = dict[str, dict[str, Any]]


class Data:
    """Random rankings with ten judged documents a query, half of them retrieved, as dicts and as a run."""

    def __init__(self, queries: int, depth: int) -> None:
        rng = np.random.default_rng(42)
        self.query_ids = [f"q{query}" for query in range(queries)]
        names = np.array([f"doc{document}" for document in range(CORPUS)], dtype=object)
        documents = np.empty((queries, depth), dtype=np.int32)
        judged = np.empty((queries, JUDGED), dtype=np.int32)
        for row in range(queries):
            drawn = rng.choice(CORPUS, depth + JUDGED // 2, replace=False)
            documents[row] = drawn[:depth]
            judged[row] = np.concatenate((rng.choice(drawn[:depth], JUDGED // 2, replace=False), drawn[depth:]))
        grades = rng.integers(0, 4, size=(queries, JUDGED))
        # Falling steps that single precision can tell apart: tools that break ties differently still agree.
        scores = (depth - np.arange(depth) + rng.uniform(0, 0.5, size=(queries, depth))) / depth
        self.run: Dicts
        self.run = {
            query: dict(zip(names[row], values.tolist(), strict=True))
            for query, row, values in zip(self.query_ids, documents, scores, strict=True)
        }
        self.tied: Dicts = {
            query: dict(zip(names[row], values.round(2).tolist(), strict=True))
            for query, row, values in zip(self.query_ids, documents, scores, strict=True)
        }
        rankings = {query: Ranking(tuple(found), tuple(found.values())) for query, found in self.run.items()}
        self.ranked = run_of(rankings, self.query_ids)
        self.judgments: Dicts = {
            query: dict(zip(names[row], values.tolist(), strict=True))
            for query, row, values in zip(self.query_ids, judged, grades, strict=True)
        }


def from_pytrec(answer: Dicts, query_ids: list[str]) -> Scores:
    """Its values under our names; F1 and MRR@k, which it lacks, follow from what it gives."""

    def column(name: str) -> NDArray[np.float64]:
        return np.array([answer[query][name] for query in query_ids])

    scores: Scores = {}
    for k in CUTS:
        p, recall = column(f"P_{k}"), column(f"recall_{k}")
        rank = 1 / np.maximum(column("recip_rank"), 1e-9)
        both = np.where(p + recall > 0, p + recall, 1.0)
        values = (p, recall, 2 * p * recall / both, column(f"ndcg_cut_{k}"), column(f"map_cut_{k}"))
        mrr = np.where(np.round(rank) <= k, column("recip_rank"), 0.0)
        scores |= dict(zip((Measure.of(name, k=k) for name in NAMES), (*values, mrr), strict=True))
    return scores


def gap(a: Scores, b: Scores) -> float:
    return max(float(np.abs(a[measure] - b[measure]).max()) for measure in MEASURES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        import pytrec_eval
        import ranx
    except ImportError as missing:
        parser.exit(2, f"{missing.name} is missing: pip install -e '.[peers]'\n")

    print(f"{options.queries} queries × {options.depth} deep; {', '.join(NAMES)} at {', '.join(map(str, CUTS))}")
    data = Data(options.queries, options.depth)
    print("building ranx's objects and compiling it (not timed, takes a minute) …", flush=True)
    cuts = ",".join(map(str, CUTS))
    wanted = {f"P.{cuts}", f"recall.{cuts}", f"ndcg_cut.{cuts}", f"map_cut.{cuts}", "recip_rank"}
    ranx_qrels, ranx_run = ranx.Qrels(data.judgments), ranx.Run(data.run)
    ranx_names = [f"{RANX.get(measure.name, measure.name)}@{measure.k}" for measure in MEASURES]

    def ours(run: Dicts) -> Scores:
        return score_queries(join(ScoredRun.of(run), data.judgments, data.query_ids, DEPTH), MEASURES)

    def ours_prebuilt() -> Scores:
        return score_queries(join(data.ranked, data.judgments, data.query_ids, DEPTH), MEASURES)

    def peer_pytrec(run: Dicts) -> Any:
        return pytrec_eval.RelevanceEvaluator(data.judgments, wanted).evaluate(run)

    def peer_ranx() -> Any:
        return ranx.evaluate(ranx_qrels, ranx_run, ranx_names, return_mean=False, save_results_in_run=False)

    peer_ranx()  # compiles
    gc.freeze()
    wall, cpu, answers = in_turns(
        {
            "pytrec_eval": lambda: peer_pytrec(data.run),
            "pytrec_eval, ties": lambda: peer_pytrec(data.tied),
            "ranx, warm, prebuilt": peer_ranx,
            "bakeoff, dicts": lambda: ours(data.run),
            "bakeoff, dicts, ties": lambda: ours(data.tied),
            "bakeoff, prebuilt": ours_prebuilt,
        },
        options.rounds,
    )
    row = {query: index for index, query in enumerate(ranx_run.run.keys())}
    order = [row[query] for query in data.query_ids]
    ranx_scores = {m: answers["ranx, warm, prebuilt"][n][order] for m, n in zip(MEASURES, ranx_names, strict=True)}
    reference = from_pytrec(answers["pytrec_eval"], data.query_ids)
    tied = from_pytrec(answers["pytrec_eval, ties"], data.query_ids)

    print(f"  {f'load {os.getloadavg()[0]:.1f}':<24}{'wall':>10}{'CPU':>14}")
    for name in wall:
        print(f"  {name:<24}{wall[name] * 1000:>10.1f} ms{cpu[name] * 1000:>11.1f} ms")
    failed = False
    print(f"\n  {'from':<22}{'against':<22}{'wall ratio':>11}{'CPU ratio':>11}{'target':>8}{'largest gap':>13}")
    # pytrec_eval and we run on one thread: CPU time is the ratio that other processes can't bend. ranx uses all cores.
    for mine, peer, judge, target, difference in (
        ("bakeoff, dicts", "pytrec_eval", cpu, 12, gap(answers["bakeoff, dicts"], reference)),
        ("bakeoff, dicts, ties", "pytrec_eval, ties", cpu, 0, gap(answers["bakeoff, dicts, ties"], tied)),
        ("bakeoff, prebuilt", "pytrec_eval", cpu, 25, gap(answers["bakeoff, prebuilt"], reference)),
        ("bakeoff, prebuilt", "ranx, warm, prebuilt", wall, 6, gap(answers["bakeoff, prebuilt"], ranx_scores)),
    ):
        missed = judge[peer] / judge[mine] < target or not difference < 1e-9
        failed |= missed
        ratios = f"{wall[peer] / wall[mine]:>10.1f}×{cpu[peer] / cpu[mine]:>10.1f}×"
        wanted_ratio = f"{target}×" if target else "–"
        print(f"  {mine:<22}{peer:<22}{ratios}{wanted_ratio:>8}{difference:>13.1e}", "MISSED" * missed)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
