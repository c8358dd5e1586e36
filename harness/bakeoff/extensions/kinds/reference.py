"""Reference tasks: how well contenders reproduce a reference model's nearest neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Role, Vectors
from bakeoff_providers.errors import BakeoffError, InputError, Unavailable
from bakeoff_providers.options import convert
from bakeoff_providers.registry import missing_modules
from bakeoff_providers.secrets import without_secrets
from bakeoff_providers.shared_options import SEED
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.drawing import DrawingFailed, draw
from bakeoff.core.facts import Fact, Section, TableCell, TableColumn, column, fact
from bakeoff.core.figures import OwnColumn
from bakeoff.core.task import Document, Query, Task
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.extensions.kinds.items import read_documents
from bakeoff.lineup.checks import short_names
from bakeoff.search.exact_search import ExactSearch
from bakeoff.search.hits import SIMILARITY_DIGITS
from bakeoff.search.index import Index
from bakeoff.systems.base import CorpusVectors, System
from bakeoff.systems.dense import Dense
from bakeoff.systems.embedding import EmbeddingRow, resolve_paths
from bakeoff.tasks.formats.cells import id_of
from bakeoff.tasks.formats.tables import read_table
from bakeoff.tasks.kinds.base import Extras, FinishedRun, ScoredContender, TaskKind

PAIR_BLOCK = 2048  # pairs of vectors in memory at once


@dataclass(frozen=True, slots=True)
class TargetPairs:
    """Pairs with target similarities. `first` and `second` index `names`, which are document ids or texts."""

    names: list[str]
    by_id: bool
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    targets: Values


def read_target_pairs(file: Path, documents: Container[str]) -> TargetPairs:
    """Read a table whose first three columns are the pair and its target."""
    table, names, places = read_table(file), dict[str, int](), list[str]()
    pairs: list[tuple[int, int]] = []
    targets: list[float] = []
    for place, row in table.rows:
        columns = list(row)
        if len(columns) < 3 or _number(columns[2]) is not None:
            raise InputError(
                "there are fewer than three columns" if len(columns) < 3 else "the columns have no names",
                file=file,
                place=place if len(columns) < 3 else "line 1",
                remedy="name three columns, for example a, b, target",
            )
        target = _number(row[columns[2]])
        if target is None:
            raise InputError(f"the target {row[columns[2]]!r} is not a number", file=file, place=place)
        pair = [id_of(row, column, table, place) for column in columns[:2]]
        for name in pair:
            if name not in names:
                names[name] = len(names)
                places.append(place)
        pairs.append((names[pair[0]], names[pair[1]]))
        targets.append(target)
    if len(pairs) < 2:
        raise InputError("has fewer than two pairs", file=file, remedy="a correlation needs at least two")
    unknown = [name for name in names if name not in documents]
    if unknown and len(unknown) < len(names):
        raise InputError(
            f"{unknown[0]!r} is not a document, though others are",
            file=file,
            place=places[names[unknown[0]]],
            remedy="give ids of documents throughout, or texts throughout",
        )
    first, second = np.array(pairs, dtype=np.int64).T
    return TargetPairs(list(names), not unknown, first, second, np.array(targets))


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None


def sample_pairs(n: int, pairs: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of different rows: all if there are few, else drawn with replacement."""
    if n * (n - 1) // 2 <= pairs:
        first, second = np.triu_indices(n, 1)
        return first.astype(np.int64), second.astype(np.int64)
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, size=pairs)
    return first, (first + rng.integers(1, n, size=pairs)) % n


def pair_similarities(vectors: Vectors | VectorRows, first: NDArray[np.int64], second: NDArray[np.int64]) -> Values:
    """Inner products of these pairs, computed in blocks to save memory."""
    similarities = np.empty(len(first))
    for start in range(0, len(first), PAIR_BLOCK):
        rows = slice(start, start + PAIR_BLOCK)
        similarities[rows] = np.einsum("ij,ij->i", vectors[first[rows]], vectors[second[rows]])
    return np.round(similarities, SIMILARITY_DIGITS)


def spearman(a: Values, b: Values) -> float | None:
    """Rank correlation with mean ranks for ties; None if one side is constant."""
    from scipy.stats import rankdata

    x, y = rankdata(a), rankdata(b)
    x, y = x - x.mean(), y - y.mean()
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / norm if norm else None


def correlation(pairs: TargetPairs, contender: System, vectors: CorpusVectors) -> float | str | None:
    """Spearman's ρ, or the reason that there is none."""
    if not isinstance(contender, EmbeddingRow):
        return "has no vectors"
    if not pairs.by_id:
        if PROVIDERS.get(contender.provider).by_id:
            return "its vectors are known by id, and the pairs are texts"
        embedded = vectors.embedder(contender).embed(pairs.names, Role.DOCUMENT)
        return spearman(pair_similarities(embedded, pairs.first, pairs.second), pairs.targets)
    index = vectors.index(contender)
    rows = [index.row_of(name) for name in pairs.names]
    if None in rows:
        return "its documents are split into chunks, so they have no single vector"
    places = np.array(rows, dtype=np.int64)
    similarities = pair_similarities(vectors.of(contender).vectors, places[pairs.first], places[pairs.second])
    return spearman(similarities, pairs.targets)


@dataclass(frozen=True, slots=True)
class Curve:
    """One point of one line."""

    contender: str
    measure: str
    k: int
    mean: float
    std: float


def curves_png(points: Sequence[Curve]) -> bytes:
    """One panel per measure. Needs the charts extra but no browser."""
    if missing := missing_modules(("altair", "vl_convert"), "charts"):
        raise Unavailable(missing)
    import altair

    values = [
        {**asdict(point), "low": max(0.0, point.mean - point.std), "high": min(1.0, point.mean + point.std)}
        for point in points
    ]
    k = altair.X("k:Q", title="k", axis=altair.Axis(values=sorted({point.k for point in points}), format="d"))
    colour = altair.Color("contender:N", title=None, legend=altair.Legend(orient="bottom", columns=3))
    scale = altair.Scale(domain=[0, 1])
    base = altair.Chart().encode(x=k, color=colour)
    band = base.mark_area(opacity=0.15).encode(y=altair.Y("low:Q", scale=scale), y2="high:Q")
    line = base.mark_line(point=True).encode(y=altair.Y("mean:Q", title="mean ± 1 sd", scale=scale))
    measures = list(dict.fromkeys(point.measure for point in points))
    chart: Any = (
        altair.layer(band, line, data=altair.InlineData(values=values))
        .properties(width=230, height=190)
        .facet(facet=altair.Facet("measure:N", title=None, sort=measures), columns=3)
    )
    (drawn,) = draw([chart.to_dict()])
    if isinstance(drawn, DrawingFailed):
        raise drawn
    return drawn.png


Gain = Literal["binary", "rank"]
COLUMNS = {
    "recall": "Recall",
    "ndcg": "NDCG",
    "mrr": "MRR",
    "map(over=found)": "MAP (over found)",
    "map": "MAP (over relevant)",
}
CSV_NAMES = {"map(over=found)": "map", "map": "map_over_relevant"}  # the mean of the precisions at hits is `map` there


class ReferenceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reference model. It needs no store, since its search is exact."""

    provider: Annotated[str, "the provider: a contender without a store"]
    model: Annotated[str, "which of its models"] = ""
    field: Annotated[str, "the text field that it embeds"] = ""
    options: Annotated[dict[str, Any], "the provider's options"] = {}


class Reference(TaskKind):
    """Queries are sampled items. At each k the truth is the reference's top k, without the item itself."""

    name = "reference"
    measures = ("map(over=found)@10",)
    measure_names: ClassVar = {"recall": "fidelity"}  # similarity to the reference is not quality
    paths = ("validation",)

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        corpus: Annotated[str, "articles, items (.json, .jsonl), ids (.txt), or a file of vectors (.npy)"],
        reference: Annotated[Mapping[str, Any], "the reference model, whose neighbours are the truth", ReferenceEntry],
        n: Annotated[int, "number of items sampled as queries; all if there are fewer"] = 500,
        seed: Annotated[int, "seed of the sample", SEED] = 42,
        k: Annotated[Sequence[int], "neighbourhood sizes to compare"] = (1, 3, 5, 10),
        pairs: Annotated[int, "number of document pairs for comparing similarities"] = 10_000,
        gain: Annotated[Gain, "gain of a true neighbour in NDCG: equal, or by rank"] = "binary",
        category: Annotated[str, "metadata key to break the matrix down by"] = "",
        validation: Annotated[str, "table of pairs with target similarities: a, b (ids or texts), target"] = "",
        improvement_over: Annotated[str, "baseline contender for relative improvements"] = "",
    ) -> None:
        super().__init__(name, base, targets)
        entry = convert("reference", reference, ReferenceEntry)
        self.cuts, self.n, self.seed, self.pairs = sorted(set(k)), n, seed, pairs
        if not self.cuts:
            raise InputError("names no cut-off", place="k")
        PROVIDERS.check_options(entry.provider, entry.options)
        self.reference = Dense(
            label=entry.model or entry.provider,
            provider=entry.provider,
            model=entry.model,
            field=entry.field,
            options=resolve_paths(entry.provider, entry.options, base),
        )
        self.corpus, self.category, self.gain = corpus, category, gain
        self.validation, self.improvement_over = base / validation if validation else None, improvement_over

    @property
    def models(self) -> tuple[EmbeddingRow, ...]:
        """The reference itself."""
        return (self.reference,)

    @cached_property
    def documents(self) -> list[Document]:
        """The corpus."""
        return read_documents(self.base / self.corpus)

    @cached_property
    def target_pairs(self) -> TargetPairs | None:
        """The validation pairs, if there are any."""
        if self.validation is None:
            return None
        return read_target_pairs(self.validation, {document.id for document in self.documents})

    @property
    def further_texts(self) -> Sequence[str]:
        """Texts of the validation pairs. Pairs of document ids need none."""
        return () if self.target_pairs is None or self.target_pairs.by_id else self.target_pairs.names

    def check_contenders(self, task: Task, contenders: Sequence[System], folder: Path) -> None:  # noqa: ARG002
        """Check that `improvement_over` names one contender."""
        if self.improvement_over and contenders:
            self._find_compared(contenders)

    def _find_compared(self, contenders: Sequence[System]) -> System:
        found = [contender for contender in contenders if self.improvement_over in contender.names]
        if len(found) == 1:
            return found[0]
        labels = [contender.label for contender in found or contenders]
        raise InputError(
            f"{self.improvement_over!r} names {len(found) or 'none'} of the contenders",
            place="improvement_over",
            remedy=f"give one of: {', '.join(labels)}",
        )

    def task(self) -> Task:
        """The corpus and the sampled items. Judgments follow once the reference has embedded them.

        Rows are drawn in file order from NumPy's frozen legacy generator, so that others can reproduce them.
        """
        documents, _ = self.documents, self.target_pairs
        if len(documents) <= self.cuts[-1]:
            raise InputError(
                f"the top {self.cuts[-1]} of others needs more than {len(documents)} documents",
                place="k",
                remedy="give a smaller k or a larger corpus",
            )
        size = min(self.n, len(documents))
        drawn = np.random.RandomState(self.seed).choice(len(documents), size, replace=False)
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
                for document in (documents[row] for row in np.sort(drawn))
            ],
            judgments={},
            targets=self.targets,
        )

    def judge(self, task: Task, vectors: CorpusVectors) -> Task:
        """The reference's exact top k, best first. If the reference fails, nothing can run."""
        try:
            embedder, corpus = vectors.of(self.reference)
        except Unavailable as error:
            raise BakeoffError(f"the reference {self.reference.label} can't run: {error}") from None
        index = vectors.index(self.reference)
        rows = {query.item: index.row_of(query.item) for query in task.queries}
        cut = [item for item, row in rows.items() if row is None]
        whole = embedder.embed([index.texts[item] for item in cut], Role.DOCUMENT) if cut else ()
        others = dict(zip(cut, whole, strict=True))
        asked = [others[item] if row is None else corpus[row] for item, row in rows.items()]
        by_item = dict(zip(rows, asked, strict=True))
        by_query = {query.id: by_item[query.item] for query in task.queries}
        exact = ExactSearch(Index(index.chunks, self.cuts[-1]), by_query, corpus).rankings(task.queries)
        top = {query.id: exact[query.id].ids for query in task.queries}
        return msgspec.structs.replace(task, judgments=self.grade_neighbours(top, self.cuts[-1]))

    def grade_neighbours(self, neighbours: Mapping[str, Iterable[str]], k: int) -> dict[str, dict[str, int]]:
        """Judgments at one k: the reference's first k neighbours, with equal grades or graded by rank."""
        return {
            query: {item: 1 if self.gain == "binary" else k - place for place, item in enumerate(islice(nearest, k))}
            for query, nearest in neighbours.items()
        }

    def extras(self, run: FinishedRun) -> Extras:
        """Every measure at every k, the similarities, and one CSV per contender."""
        rows: list[list[TableCell]] = []
        files: dict[str, str | bytes] = {}
        figures: dict[str, Any] = {}
        names = short_names([scored.contender for scored in run.contenders])
        for scored in run.contenders:
            label = scored.contender.label
            by_k = {k: self._at(k, scored, run.task) for k in self.cuts}
            stats = {k: {name: (_mean(v), _std(v)) for name, v in values.items()} for k, values in by_k.items()}
            rows += [[label, k, *stats[k].values()] for k in self.cuts]
            files[f"{names[label]}_results.csv"] = _csv(stats, len(run.task.queries))
            figures[label] = {
                "at": {str(k): {n: {"mean": m, "std": s} for n, (m, s) in stats[k].items()} for k in self.cuts},
                "similarity": self._similarity(scored.contender, run.vectors, run.seed),
            }
        sections = [self._table(rows, len(run.task.queries))]
        if self.improvement_over:
            sections.append(self._improvements(figures, [scored.contender for scored in run.contenders]))
        sections.append(self._similarities(figures))
        if self.target_pairs:
            sections.append(self._validations(self.target_pairs, figures, run))
        similarities = {label: figure["similarity"] or {} for label, figure in figures.items()}
        spearmans = {label: similarity.get("spearman") for label, similarity in similarities.items()}
        column = OwnColumn(head=fact("kinds.spearman"), values=spearmans)
        return Extras(figures, sections, files, columns=[column], reference=self.reference.label)

    @classmethod
    def pictures(cls, figures: Mapping[str, Any]) -> dict[str, Callable[[], bytes]]:
        """Every measure against k, one line per contender."""
        curves = [
            Curve(label, COLUMNS[name], int(k), value["mean"], value["std"])
            for label, figure in figures.items()
            for k, values in figure.get("at", {}).items()
            for name, value in values.items()
        ]
        return {"metrics_vs_k.png": partial(curves_png, curves)} if curves else {}

    def _at(self, k: int, scored: ScoredContender, task: Task) -> dict[str, Values]:
        """All measures at one k, by the engine's own metrics: with k true neighbours, recall@k is overlap / k.

        Judgments are in the reference's order, so a smaller k takes a prefix.
        """
        measures = {name: Measure.parse(f"{name}@{k}") for name in COLUMNS}
        ids = [query.id for query in task.queries]
        scores = score_queries(
            join(scored.rankings, self.grade_neighbours(task.judgments, k), ids, k), list(measures.values())
        )
        return {name: scores[measure] for name, measure in measures.items()}

    def _similarity(self, contender: System, embeddings: CorpusVectors, seed: int) -> dict[str, float | None] | None:
        """Spearman's ρ and mean absolute error of cosines over the sampled pairs of chunks."""
        if not isinstance(contender, EmbeddingRow):
            return None
        mine, theirs = embeddings.index(contender).ids, embeddings.index(self.reference).ids
        if mine != theirs:
            return None
        first, second = sample_pairs(len(mine), self.pairs, seed)
        a = pair_similarities(embeddings.of(contender).vectors, first, second)
        b = pair_similarities(embeddings.of(self.reference).vectors, first, second)
        return {"spearman": spearman(a, b), "mae": float(np.abs(a - b).mean()), "pairs": len(a)}

    def _improvements(self, figures: dict[str, Any], contenders: Sequence[System]) -> Section:
        """Relative difference of every mean from the named contender's; None if that is 0 or did not run."""
        ran = [contender.label for contender in contenders if self.improvement_over in contender.names]
        base = figures[ran[0]]["at"] if ran else {}
        rows: list[list[TableCell]] = []
        for label, figure in figures.items():
            if not ran or label == ran[0]:
                continue
            figure["improvement"] = {
                k: {name: _relative(value["mean"], base[k][name]["mean"]) for name, value in values.items()}
                for k, values in figure["at"].items()
            }
            rows += [[label, int(k), *values.values()] for k, values in figure["improvement"].items()]
        base = self.improvement_over
        measures = [TableColumn(head=name, form="percent", digits=1, signed=True) for name in COLUMNS.values()]
        return Section(
            title=fact("kinds.improvement", base=base),
            head=[column("contender"), column("kinds.k", "count"), *measures],
            rows=rows,
            notes=[fact("kinds.relative") if ran else fact("kinds.base_did_not_run", base=base)],
        )

    def _validations(self, pairs: TargetPairs, figures: dict[str, Any], run: FinishedRun) -> Section:
        """Spearman's ρ of each contender's cosines with the targets. A failure affects only its own cell."""
        rows, known = list[list[TableCell]](), dict[Hashable, float | str | None]()
        notes: list[Fact] = [fact("kinds.validation_meaning")]
        for contender in (scored.contender for scored in run.contenders):
            key = contender.shares
            if key not in known:
                try:
                    known[key] = correlation(pairs, contender, run.vectors)
                except Exception as error:  # a provider may raise anything
                    known[key] = without_secrets(str(error))
            rho = known[key]
            if isinstance(rho, str):
                notes.append(fact("kinds.validation_failed", label=contender.label, reason=rho))
            value = rho if isinstance(rho, float) else None
            figures[contender.label]["validation"] = {"spearman": value, "pairs": len(pairs.targets)}
            rows.append([contender.label, value, len(pairs.targets)])
        return Section(
            title=fact("kinds.validation"),
            head=[column("contender"), column("kinds.spearman", "fixed"), column("kinds.pairs", "count")],
            rows=rows,
            notes=notes,
        )

    def _table(self, rows: list[list[TableCell]], queries: int) -> Section:
        reference, measures = self.reference.label, [TableColumn(head=name, form="spread") for name in COLUMNS.values()]
        return Section(
            title=fact("kinds.neighbours", reference=reference),
            head=[column("contender"), column("kinds.k", "count"), *measures],
            rows=rows,
            notes=[
                fact("kinds.neighbours_meaning", reference=reference, queries=queries, seed=self.seed),
                fact("kinds.gain", binary=self.gain == "binary"),
            ],
        )

    def _similarities(self, figures: Mapping[str, Any]) -> Section:
        unknown = {"spearman": None, "mae": None, "pairs": None}
        known = {label: figure["similarity"] or unknown for label, figure in figures.items()}
        return Section(
            title=fact("kinds.similarities", reference=self.reference.label),
            head=[
                column("contender"),
                column("kinds.spearman", "fixed"),
                column("kinds.mae", "fixed"),
                column("kinds.pairs", "count"),
            ],
            rows=[[label, one["spearman"], one["mae"], one["pairs"]] for label, one in known.items()],
            notes=[fact("kinds.similarities_meaning")],
        )


def _relative(value: float, base: float) -> float | None:
    return value / base - 1 if base else None


def _mean(values: Values) -> float:
    return float(values.mean())


def _std(values: Values) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _csv(stats: Mapping[int, Mapping[str, tuple[float, float]]], queries: int) -> str:
    names = {name: CSV_NAMES.get(name, name) for name in COLUMNS}
    head = ["k", *(f"{column}_{part}" for column in names.values() for part in ("mean", "std")), "queries"]
    lines = [",".join(head)]
    for k, values in stats.items():
        figures = [repr(round(figure, 12)) for name in names for figure in values[name]]
        lines.append(",".join([str(k), *figures, str(queries)]))
    return "\n".join(lines) + "\n"
