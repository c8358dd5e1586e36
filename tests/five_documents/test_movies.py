"""The film guide: three spaces and their weighted RRF, against ordered lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.five_documents.data import LISTS
from tests.five_documents.definitions import cosines, ndcg_at_k, ours, random_rankings, reciprocal_rank
from tests.five_documents.page import Played, play, read_json

TITLE = "Film guide"
CUTS = (1, 2, 3, 5, 10)
WEIGHTS = {"DenseAnchor": 0.5, "DenseContent": 0.3, "DenseVibe": 0.2}

Lists = Mapping[str, Sequence[str]]


def _figures(ranking: Sequence[str], listed: Sequence[str], k: int) -> dict[str, float]:
    """Grade 5 for the first of the list, 1 for the last; gain 2^grade − 1."""
    gains = {item: 2.0 ** (5 - place) - 1 for place, item in enumerate(listed)}
    hits = len({*ranking[:k]} & {*listed}) / 5
    return {"hits": hits, "rr": reciprocal_rank(ranking, {*listed}, k), "ndcg": ndcg_at_k(ranking, gains, k)}


def test_measures_on_random_rankings() -> None:
    for rng, ranking, k in random_rankings(3):
        listed = [f"d{item}" for item in rng.permutation(25)[:5]]
        grades = {item: 5 - place for place, item in enumerate(listed)}
        names = {"hits": f"recall@{k}", "rr": f"mrr@{k}", "ndcg": f"ndcg(gain=exp)@{k}"}
        found = {name: ours(measure, ranking, grades) for name, measure in names.items()}
        assert found == pytest.approx(_figures(ranking, listed, k))


def test_the_commands_write_the_report(tmp_path: Path) -> None:
    played = play(TITLE, tmp_path)
    names = (tmp_path / "ids.txt").read_text().split()
    truth = read_json(tmp_path / "similar_movies.json")
    lists = [{film["movie_id"]: film[f"5_most_similar_movies_{what}_ordered"] for film in truth} for what in LISTS]
    spaces = {}
    for space, array in zip(WEIGHTS, ("anchor", "content", "vibe"), strict=True):
        scores = {name: dict(zip(names, row, strict=True))
                  for name, row in zip(names, cosines(tmp_path / f"{array}.npy").round(5), strict=True)}  # fmt: skip
        spaces[space] = {name: _ranked(name, scores[name]) for name in names}
    for (space, ranked), listed in zip(spaces.items(), lists, strict=True):
        _check_report(played, space, space, ranked, listed)
    fused = {}
    for name in names:
        sums = {other: sum(weight / (60 + 1 + spaces[space][name].index(other)) for space, weight in WEIGHTS.items())
                for other in names if other != name}  # fmt: skip
        fused[name] = _ranked(name, {other: round(total, 12) for other, total in sums.items()})
    _check_report(played, "combined_weighted_rrf", "combined", fused, lists[0])


def _ranked(name: str, scores: Mapping[str, float]) -> list[str]:
    """All others: score descending, then id ascending."""
    return sorted(scores.keys() - {name}, key=lambda other: (-scores[other], other))


def _check_report(played: Played, name: str, in_query: str, ranked: Lists, lists: Lists) -> None:
    for k in CUTS:
        report = read_json(played.results[0] / f"ordered_report_k{k}.json")
        assert (report["K"], report["c"], report["weights"]) == (k, 60, WEIGHTS)
        expected = {film: _figures(ranking, lists[film], k) for film, ranking in ranked.items()}
        for film, figures in expected.items():
            entry = dict(report["per_query"][film][in_query])
            assert entry.pop("topK") == ranked[film][:k]
            assert entry == pytest.approx(figures)
        means = {key: np.mean([figures[key] for figures in expected.values()]) for key in ("hits", "rr", "ndcg")}
        assert list(report[name]) == ["mean_hits", "mean_mrr", "mean_ndcg"]
        assert list(report[name].values()) == pytest.approx(list(means.values()))


TESTED = {
    test_measures_on_random_rankings: ("hits_at_k", "rr_at_k", "ndcg_at_k"),
    test_the_commands_write_the_report: ("RRF",),
}
