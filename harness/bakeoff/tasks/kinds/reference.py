"""The nearest neighbours of a reference model are the truth: how well do candidates reproduce them?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role, Vectors
from bakeoff_providers.errors import BakeoffError, InputError, Unavailable
from bakeoff_providers.shapes import converted
from bakeoff_providers.shared_options import SEED
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.figures import Section
from bakeoff.core.task import Query, Task
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.lineup.contender import Contender, resolve_paths
from bakeoff.search.brute_force import nearest
from bakeoff.search.hits import SIMILARITY_DIGITS, Hits
from bakeoff.search.index import Index
from bakeoff.tasks.formats.items import read_documents
from bakeoff.tasks.kinds.base import CorpusVectors, Extras, FinishedRun, ScoredContender, TaskKind
from bakeoff.tasks.kinds.curves import Curve, curves_png

Gain = Literal["binary", "rank"]
PAIR_BLOCK = 2048  # pairs whose vectors are held at once
COLUMNS = {
    "recall": "Recall",
    "ndcg": "NDCG",
    "mrr": "MRR",
    "map": "MAP (over relevant)",
    "map(over=found)": "MAP (over found)",
}


class ReferenceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model whose neighbours are the truth: a contender without a store, since its search is exact."""

    provider: Annotated[str, "the provider: a contender without a store"]
    model: Annotated[str, "which of its models"] = ""
    field: Annotated[str, "the text field that it embeds"] = ""
    options: Annotated[dict[str, Any], "the provider's options"] = {}


class Reference(TaskKind):
    """Queries are sampled items of the corpus; at each k the truth is the reference's own top k, self excluded."""

    name = "reference"
    measures = ("map(over=found)@10",)

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        corpus: Annotated[str, "articles, items (.json, .jsonl), or ids alone (.txt)"],
        reference: Annotated[Mapping[str, Any], "the model whose neighbours are the truth", ReferenceEntry],
        n: Annotated[int, "items that ask, drawn with the seed; all of them where there are fewer"] = 500,
        seed: Annotated[int, "seed of the draw", SEED] = 42,
        k: Annotated[Sequence[int], "sizes of the neighbourhoods that are compared"] = (1, 3, 5, 10),
        pairs: Annotated[int, "pairs of documents whose similarities are compared"] = 10_000,
        gain: Annotated[Gain, "what a true neighbour counts in NDCG: all alike, or the nearer the more"] = "binary",
        category: Annotated[str, "part of the metadata to break the matrix down by"] = "",
    ) -> None:
        super().__init__(name, base, targets)
        entry = converted("reference", reference, ReferenceEntry)
        self.cuts, self.n, self.seed, self.pairs = sorted(set(k)), n, seed, pairs
        if not self.cuts:
            raise InputError("names no cut-off", place="k")
        PROVIDERS.check_options(entry.provider, entry.options)
        self.reference = Contender(
            label=entry.model or entry.provider,
            provider=entry.provider,
            model=entry.model,
            field=entry.field,
            options=resolve_paths(entry.provider, entry.options, base),
        )
        self.corpus, self.category, self.gain = corpus, category, gain

    @property
    def models(self) -> tuple[Contender, ...]:
        """The reference itself."""
        return (self.reference,)

    def task(self) -> Task:
        """The corpus and the sampled items; the judgments follow when the reference has embedded them."""
        documents = read_documents(self.base / self.corpus)
        if len(documents) <= self.cuts[-1]:
            raise InputError(
                f"the top {self.cuts[-1]} of others needs more than {len(documents)} documents",
                place="k",
                remedy="give a smaller k or a larger corpus",
            )
        ids = sorted(document.id for document in documents)
        drawn = set(random.Random(self.seed).sample(ids, min(self.n, len(ids))))
        return Task(
            name=self.task_name,
            kind=self.name,
            documents=documents,
            queries=[
                Query(
                    id=document.id,
                    text=document.whole(),
                    category=str(document.metadata.get(self.category) or "") if self.category else "",
                    item=document.id,
                )
                for document in documents
                if document.id in drawn
            ],
            judgments={},
            targets=self.targets,
        )

    def judged(self, task: Task, vectors: CorpusVectors) -> Task:
        """The reference's exact top k, best first. Without the reference there is no truth, so nothing can run."""
        try:
            embedder, corpus = vectors.of(self.reference)
        except Unavailable as error:
            raise BakeoffError(f"the reference {self.reference.label} can't run: {error}") from None
        index = vectors.index(self.reference)
        rows = {chunk: row for row, chunk in enumerate(index.ids)}
        cut = [query.item for query in task.queries if query.item not in rows]
        whole = embedder.embed([index.texts[item] for item in cut], Role.DOCUMENT) if cut else ()
        others = dict(zip(cut, whole, strict=True))
        asked = np.stack([corpus[rows[q.item]] if q.item in rows else others[q.item] for q in task.queries])
        top = _neighbours(task.queries, asked, corpus, Index(index.chunks, self.cuts[-1]))
        return msgspec.structs.replace(task, judgments=self.graded(top, self.cuts[-1]))

    def graded(self, neighbours: Mapping[str, Iterable[str]], k: int) -> dict[str, dict[str, int]]:
        """The judgments at one k: the reference's first k neighbours, all alike or graded by their place."""
        return {
            query: {item: 1 if self.gain == "binary" else k - place for place, item in enumerate(islice(nearest, k))}
            for query, nearest in neighbours.items()
        }

    def extras(self, run: FinishedRun) -> Extras:
        """Every measure at every k, the similarities, and a CSV for each contender."""
        rows: list[list[str]] = []
        files: dict[str, str | bytes] = {}
        figures: dict[str, Any] = {}
        for scored in run.contenders:
            label = scored.contender.label
            by_k = {k: self._at(k, scored, run.task) for k in self.cuts}
            stats = {k: {name: (_mean(v), _std(v)) for name, v in values.items()} for k, values in by_k.items()}
            rows += [[label, str(k), *(f"{m:.3f}±{s:.3f}" for m, s in stats[k].values())] for k in self.cuts]
            files[f"{label}_results.csv"] = _csv(stats, len(run.task.queries))
            figures[label] = {
                "at": {str(k): {n: {"mean": m, "std": s} for n, (m, s) in stats[k].items()} for k in self.cuts},
                "similarity": self._similarity(scored.contender, run.vectors, run.seed),
            }
        sections = [self._table(rows, len(run.task.queries)), self._similarities(figures)]
        return Extras(figures, sections, files)

    @classmethod
    def pictures(cls, figures: Mapping[str, Any]) -> dict[str, Callable[[], bytes]]:
        """Every measure against k, a line for each contender."""
        curves = [
            Curve(label, COLUMNS[name], int(k), value["mean"], value["std"])
            for label, figure in figures.items()
            for k, values in figure.get("at", {}).items()
            for name, value in values.items()
        ]
        return {"metrics_vs_k.png": partial(curves_png, curves)} if curves else {}

    def _at(self, k: int, scored: ScoredContender, task: Task) -> dict[str, Values]:
        """All measures at one k, by the engine's own metrics: with k true neighbours, recall@k is overlap / k.

        The task's judgments are in the reference's order, so the top of a smaller k is their beginning.
        """
        measures = {name: Measure.parse(f"{name}@{k}") for name in COLUMNS}
        ids = [query.id for query in task.queries]
        scores = score_queries(join(scored.rankings, self.graded(task.judgments, k), ids, k), list(measures.values()))
        return {name: scores[measure] for name, measure in measures.items()}

    def _similarity(self, contender: Contender, embeddings: CorpusVectors, seed: int) -> dict[str, float | None] | None:
        """Spearman's ρ and the mean absolute error of cosines over the same sampled pairs of chunks."""
        if not contender.provider:
            return None
        mine, theirs = embeddings.index(contender).ids, embeddings.index(self.reference).ids
        if mine != theirs:
            return None
        first, second = sampled_pairs(len(mine), self.pairs, seed)
        a = pair_similarities(embeddings.of(contender).vectors, first, second)
        b = pair_similarities(embeddings.of(self.reference).vectors, first, second)
        return {"spearman": spearman(a, b), "mae": float(np.abs(a - b).mean()), "pairs": len(a)}

    def _table(self, rows: list[list[str]], queries: int) -> Section:
        return Section(
            title=f"Neighbours of {self.reference.label} reproduced",
            head=["Contender", "k", *COLUMNS.values()],
            rows=rows,
            notes=[
                f"Mean ± standard deviation (n − 1) over {queries} sampled items (seed {self.seed}). At each k the "
                f"truth is the exact top k of {self.reference.label} without the item, so recall is overlap / k. "
                "MAP divides by all k true neighbours, or by those that were found.",
                "NDCG counts all true neighbours alike."
                if self.gain == "binary"
                else "NDCG grades true neighbours by their place: k for the first, 1 for the last.",
            ],
        )

    def _similarities(self, figures: Mapping[str, Any]) -> Section:
        rows = []
        for label, figure in figures.items():
            similarity = figure["similarity"]
            if similarity is None:
                rows.append([label, "–", "–", "–"])
                continue
            rho = "–" if similarity["spearman"] is None else f"{similarity['spearman']:.3f}"
            rows.append([label, rho, f"{similarity['mae']:.3f}", f"{similarity['pairs']:,}"])
        return Section(
            title=f"Similarities against {self.reference.label}'s",
            head=["Contender", "Spearman ρ", "MAE", "pairs"],
            rows=rows,
            notes=["Cosine of the same sampled pairs of documents under both models."],
        )


def _neighbours(
    queries: Sequence[Query], asked: Vectors, vectors: Vectors | VectorRows, index: Index
) -> dict[str, tuple[str, ...]]:
    """Ranked by the one rule, ties and chunks included; a block of queries at a time."""
    size = index.fetch_size(excluding="any")
    places, scores = nearest(asked, vectors, size)

    def hits(row: int, k: int) -> Hits:
        if k <= size:
            return Hits([index.ids[place] for place in places[row]], scores[row].tolist())
        wider, similarity = nearest(asked[row : row + 1], vectors, k)
        return Hits([index.ids[place] for place in wider[0]], similarity[0].tolist())

    return {
        query.id: index.ranking(hits(row, size), lambda k, row=row: hits(row, k), query.item).ids  # type: ignore[misc]
        for row, query in enumerate(queries)
    }


def sampled_pairs(n: int, pairs: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of different rows: all of them if they are few, else drawn with replacement."""
    if n * (n - 1) // 2 <= pairs:
        first, second = np.triu_indices(n, 1)
        return first.astype(np.int64), second.astype(np.int64)
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, size=pairs)
    return first, (first + rng.integers(1, n, size=pairs)) % n


def pair_similarities(vectors: Vectors | VectorRows, first: NDArray[np.int64], second: NDArray[np.int64]) -> Values:
    """The inner products of these rows, a block of pairs at a time: never a matrix of all against all."""
    similarities = np.empty(len(first))
    for start in range(0, len(first), PAIR_BLOCK):
        rows = slice(start, start + PAIR_BLOCK)
        similarities[rows] = np.einsum("ij,ij->i", vectors[first[rows]], vectors[second[rows]])
    return np.round(similarities, SIMILARITY_DIGITS)


def spearman(a: Values, b: Values) -> float | None:
    """Rank correlation with ties at their mean rank; unknown where one side is all ties."""
    from scipy.stats import rankdata

    x, y = rankdata(a), rankdata(b)
    x, y = x - x.mean(), y - y.mean()
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / norm if norm else None


def _mean(values: Values) -> float:
    return float(values.mean())


def _std(values: Values) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _csv(stats: Mapping[int, Mapping[str, tuple[float, float]]], queries: int) -> str:
    names = {name: name.replace("(over=found)", "_over_found") for name in COLUMNS}
    head = ["k", *(f"{column}_{part}" for column in names.values() for part in ("mean", "std")), "queries"]
    lines = [",".join(head)]
    for k, values in stats.items():
        figures = [repr(round(figure, 12)) for name in names for figure in values[name]]
        lines.append(",".join([str(k), *figures, str(queries)]))
    return "\n".join(lines) + "\n"
