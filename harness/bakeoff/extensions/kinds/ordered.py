"""Ordered lists: each item has a list of its most similar items per facet."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import InFiles, Role
from bakeoff_providers.errors import EmbeddingFailed, InputError, Unavailable

from bakeoff.core.facts import Section, TableCell, TableColumn, column, fact
from bakeoff.core.figures import OwnColumn
from bakeoff.core.files import read_json
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores, join, random_expectation, score_queries
from bakeoff.extensions.kinds.items import read_documents
from bakeoff.lineup.checks import short_names
from bakeoff.search.fusion import Fusion
from bakeoff.systems.base import FieldRow, System
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.systems.fused import Fused
from bakeoff.systems.lexical import Lexical
from bakeoff.tasks.kinds.base import Extras, FinishedRun, ScoredContender, TaskKind

NOTHING = Ranking((), ())
COMBINED = "combined_weighted_rrf"  # the report's key for the means of a fusion

Lists = dict[str, list[str]]  # item → its most similar items, best first


class Ordered(TaskKind):
    """Every row is judged by the overall lists. A row over a facet's text is also judged by that facet's lists."""

    name = "ordered"
    needs_full_ranking = True
    item = "item"
    measure_names: ClassVar = {"recall": "Hits"}  # the share of the list among the first K

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        items: Annotated[str, "file of items: a list of objects (.json or .jsonl)"],
        truth: Annotated[str, "file with the ordered lists of every item"],
        facets: Annotated[Mapping[str, str], "item text field → key of its list in the truth"],
        overall: Annotated[str, "facet that judges every row of the matrix"] = "overall",
        id_key: Annotated[str, "key of an item's id"] = "id",
        length: Annotated[int, "items in every list of the truth"] = 5,
        cluster: Annotated[str, "metadata key to break the matrix down by"] = "",
        k: Annotated[Sequence[int], "cut-offs of the table of facets"] = (1, 2, 3, 5, 10),
        texts: Annotated[Sequence[str] | None, "facets with texts in the items; default: all"] = None,
    ) -> None:
        super().__init__(name, base, targets)
        self.facets, self.length, self.texts = dict(facets), length, list(facets if texts is None else texts)
        if not k:
            raise InputError("names no cut-off", place="k")
        if overall not in self.facets:
            raise InputError(f"the overall facet {overall!r} is not among the facets", place="overall")
        self.items, self.truth, self.overall = items, base / truth, overall
        self.id_key, self.cluster, self.cuts = id_key, cluster, sorted(set(k))

    @cached_property
    def documents(self) -> list[Document]:
        """The items."""
        return read_documents(self.base / self.items, id_key=self.id_key, fields=self.texts)

    @cached_property
    def lists(self) -> dict[str, Lists]:
        """By facet: every item's list."""
        known = {document.id for document in self.documents}
        return read_lists(self.truth, self.id_key, self.facets, self.length, known)

    def task(self) -> Task:
        """Load items and lists, and check every rule of the lists."""
        documents, asked = self.documents, self.lists[self.overall]
        return Task(
            name=self.task_name,
            kind=self.name,
            documents=documents,
            queries=[self._query(document) for document in documents if document.id in asked],
            judgments=grade_lists(asked, self.length),
            targets=self.targets,
        )

    def check_contenders(self, task: Task, contenders: Sequence[System], folder: Path) -> None:
        """Check that precomputed vectors cover every item, since gaps would also spoil fusions."""
        ids = [document.id for document in task.documents]
        for contender in contenders:
            if not isinstance(contender, EmbeddingRow) or not PROVIDERS.get(contender.provider).by_id:
                continue
            provider = contender.create(folder)
            try:
                if isinstance(provider, InFiles):
                    provider.rows_of(ids, Role.DOCUMENT)
            except Unavailable:  # a missing library is reported by the row
                continue
            except EmbeddingFailed as error:
                remedy = "give every item a vector in every space"
                raise InputError(str(error), place=contender.label, remedy=remedy) from None
            finally:
                provider.close()

    def _query(self, document: Document) -> Query:
        cluster = str(document.metadata.get(self.cluster) or "") if self.cluster else ""
        return Query(id=document.id, text=document.whole(), category=cluster, item=document.id)

    def facet(self, scored: ScoredContender) -> str:
        """The list that a row must reproduce: its text's facet, otherwise overall."""
        row = scored.contender
        field = row.field if isinstance(row, FieldRow) and not row.made_of else ""
        return field if field in self.facets else self.overall

    def extras(self, run: FinishedRun) -> Extras:
        """Tables by K, facet and cluster, and the report files."""
        figures = {scored.contender.label: self._figures(scored, run.task) for scored in run.contenders}
        facets = self._by_facet(run)
        sections = [self._by_k(run, figures), self._facet_section(facets)]
        if run.task.categories:
            sections.append(self._by_cluster(run))
        fusions = [scored for scored in run.contenders if isinstance(scored.contender, Fused)]
        files: dict[str, str | bytes] = {}
        for number, fusion in enumerate(fusions or [None]):
            for k in self.cuts:
                suffix = f"_{fusion.contender.label}" if fusion and number else ""
                report = msgspec.json.encode(self._report(run, fusion, k))
                files[f"ordered_report{suffix}_k{k}.json"] = msgspec.json.format(report, indent=2) + b"\n"
        columns = [OwnColumn(head=facet, values=values) for facet, values in facets.items() if facet != self.overall]
        return Extras({"spaces": figures}, sections, files, columns=columns)

    def _scores(self, scored: ScoredContender, task: Task, facet: str, cuts: Sequence[int]) -> Scores:
        """Bakeoff's measures against one facet's lists."""
        measures = [measure for k in cuts for measure in _measures(k)]
        ids = [query.id for query in task.queries]
        return score_queries(join(scored.rankings, grade_lists(self.lists[facet], self.length), ids), measures)

    def _figures(self, scored: ScoredContender, task: Task) -> dict[str, Any]:
        scores = self._scores(scored, task, self.facet(scored), self.cuts)
        return {"list": self.facet(scored), "at": {str(k): _means(scores, k) for k in self.cuts}}

    def _by_k(self, run: FinishedRun, figures: Mapping[str, Any]) -> Section:
        task = run.task
        rows: list[list[TableCell]] = [
            [label, figure["list"], k, *figure["at"][str(k)].values()]
            for label, figure in figures.items()
            for k in self.cuts
        ]
        measures = [measure for k in self.cuts for measure in _measures(k)]
        ids = [query.id for query in task.queries]
        chance = random_expectation(task.judgments, ids, task.candidates, measures)
        rows += [["random", fact("kinds.any_list"), k, *_means(chance, k).values()] for k in self.cuts]
        return Section(
            title=fact("kinds.by_k"),
            head=[
                column("kinds.space"),
                column("kinds.list"),
                column("kinds.upper_k", "count"),
                column("kinds.hits_at_k", "fixed"),
                column("kinds.mrr_at_k", "fixed"),
                column("kinds.ndcg_at_k", "fixed"),
            ],
            rows=rows,
            notes=[fact("kinds.ordered_lists", length=self.length)],
        )

    def _by_facet(self, run: FinishedRun) -> dict[str, dict[str, float | None]]:
        """NDCG by facet and row. Fusions, which combine several texts, have only the overall lists."""
        k = self.length
        return {
            facet: {
                scored.contender.label: _means(self._scores(scored, run.task, facet, [k]), k)["mean_ndcg"]
                if facet == self.overall or not isinstance(scored.contender, Fused)
                else None
                for scored in run.contenders
            }
            for facet in self.facets
        }

    def _facet_section(self, facets: Mapping[str, Mapping[str, float | None]]) -> Section:
        return Section(
            title=fact("kinds.by_facet", measure=_ndcg(self.length).label),
            head=[column("row"), *(TableColumn(head=facet, form="fixed") for facet in facets)],
            rows=[[label, *(values[label] for values in facets.values())] for label in facets[self.overall]],
        )

    def _by_cluster(self, run: FinishedRun) -> Section:
        k, task = self.length, run.task
        ndcg = _ndcg(k)
        values = [self._scores(scored, task, self.overall, [k])[ndcg] for scored in run.contenders]
        rows: list[list[TableCell]] = []
        for cluster in task.categories:
            inside = [place for place, query in enumerate(task.queries) if query.category == cluster]
            rows.append([cluster, len(inside), *(float(scores[inside].mean()) for scores in values)])
        labels = [scored.contender.label for scored in run.contenders]
        return Section(
            title=fact("kinds.by_cluster", measure=ndcg.label, cluster=self.cluster),
            head=[
                TableColumn(head=fact("kinds.cluster", name=self.cluster)),
                column("kinds.items", "count"),
                *(TableColumn(head=label, form="fixed") for label in labels),
            ],
            rows=rows,
        )

    def _report(self, run: FinishedRun, fused: ScoredContender | None, k: int) -> dict[str, Any]:
        """One K: the fused rows (all rows if nothing is fused), their fusion, and every query."""
        fusion = fused.contender.fusion if fused and isinstance(fused.contender, Fused) else None
        alone = [scored for scored in run.contenders if not isinstance(scored.contender, Fused)]
        spaces = [scored for scored in alone if not fusion or scored.contender.label in fusion.of]
        names = short_names([space.contender for space in spaces])
        columns = {names[space.contender.label]: (space, self.facet(space)) for space in spaces}
        means = {name: self._scores(scored, run.task, facet, [k]) for name, (scored, facet) in columns.items()}
        per_query = {name: (scored, means[name]) for name, (scored, _) in columns.items()}
        if fused is not None:
            means[COMBINED] = self._scores(fused, run.task, self.overall, [k])
            per_query["combined"] = (fused, means[COMBINED])
        return {
            "K": k,
            "timestamp": run.started.isoformat(timespec="seconds"),
            "models": {names[space.contender.label]: _model(space.contender, run) for space in spaces},
            "weights": _weights(fusion, names) if fusion else {},
            "c": fusion.c if fusion else None,
            "top_n": fusion.top_n if fusion else None,
            **{name: _means(scores, k) for name, scores in means.items()},
            **({} if fused else {COMBINED: None}),
            "per_query": {
                query.id: {
                    name: _one(scores, place, k, scored.rankings.get(query.id, NOTHING).ids)
                    for name, (scored, scores) in per_query.items()
                }
                for place, query in enumerate(run.task.queries)
            },
        }


def _model(contender: System, run: FinishedRun) -> str:
    """The model's name, or another name of the ranker."""
    if isinstance(contender, EmbeddingRow):
        return run.vectors.embedder(contender).provider.model
    return contender.ranker if isinstance(contender, Lexical) else contender.label


def _weights(fusion: Fusion, names: Mapping[str, str]) -> dict[str, float]:
    return {names.get(label, label): weight for label, weight in zip(fusion.of, fusion.weights, strict=True)}


def read_lists(file: Path, id_key: str, facets: Mapping[str, str], length: int, items: set[str]) -> dict[str, Lists]:
    """Read a JSON array of items with one ordered list per facet. A violation raises an error with its place."""
    entries = read_json(file, list[dict[str, Any]])
    if not entries:
        raise InputError("there is no entry", file=file, remedy="give at least one item its lists")
    listed: dict[str, int] = {}
    for place, entry in enumerate(entries):
        where = f"$[{place}]"
        item = entry.get(id_key)
        if not isinstance(item, str | int) or not str(item):
            raise InputError(f"an entry without {id_key!r}", file=file, place=where, remedy=f"give it a {id_key}")
        item = str(item)
        if item not in items:
            raise InputError(f"unknown item {item!r}", file=file, place=where, remedy="add it to the items")
        if item in listed:
            raise InputError(f"{item!r} has two entries", file=file, place=where, remedy="keep one of them")
        listed[item] = place
    return {
        facet: {
            item: _list(entries[place].get(key), item, length, listed.keys(), file, f"$[{place}].{key}")
            for item, place in listed.items()
        }
        for facet, key in facets.items()
    }


def _list(value: Any, item: str, length: int, entries: Container[str], file: Path, where: str) -> list[str]:
    if not isinstance(value, list) or len(value) != length:
        count = f"has {len(value)} items" if isinstance(value, list) else "is missing"
        raise InputError(f"the list of {item!r} {count}", file=file, place=where, remedy=f"give exactly {length}")
    similar = [str(other) for other in value]
    if item in similar:
        raise InputError(f"{item!r} is in its own list", file=file, place=where, remedy="an item is not a candidate")
    if len(set(similar)) < length:
        twice = next(other for other in similar if similar.count(other) > 1)
        raise InputError(f"{twice!r} appears twice in the list of {item!r}", file=file, place=where)
    if unknown := [other for other in similar if other not in entries]:
        raise InputError(
            f"{unknown[0]!r} in the list of {item!r} has no entry",
            file=file,
            place=where,
            remedy="lists may hold only items with an entry: add one, or list another item",
        )
    return similar


def grade_lists(lists: Lists, length: int) -> dict[str, dict[str, int]]:
    """The first of a list has grade `length`, the last 1: six minus the position, for five."""
    return {item: {other: length - at for at, other in enumerate(similar)} for item, similar in lists.items()}


def _measures(k: int) -> list[Measure]:
    """Hits@K is recall: the share of the list that is among the first K."""
    return [Measure.parse(f"recall@{k}"), Measure.parse(f"mrr@{k}"), _ndcg(k)]


def _ndcg(k: int) -> Measure:
    return Measure.parse(f"ndcg(gain=exp)@{k}")


def _means(scores: Scores, k: int) -> dict[str, float]:
    hits, rr, ndcg = (float(scores[measure].mean()) for measure in _measures(k))
    return {"mean_hits": hits, "mean_mrr": rr, "mean_ndcg": ndcg}


def _one(scores: Scores, place: int, k: int, ids: Sequence[str]) -> dict[str, Any]:
    hits, rr, ndcg = (float(scores[measure][place]) for measure in _measures(k))
    return {"hits": hits, "rr": rr, "ndcg": ndcg, "topK": list(ids[:k])}
