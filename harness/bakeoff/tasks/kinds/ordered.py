"""Each item has ordered lists of its most similar items, one a facet: item → item, in several spaces, fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_json
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.metrics import Scores, evaluate, join, random_expectation
from bakeoff.results.schema import Section
from bakeoff.run.prepare import Entrant
from bakeoff.run.runner import Outcome
from bakeoff.tasks.formats.items import read_documents
from bakeoff.tasks.kinds.base import Extras, Kind

Lists = dict[str, list[str]]  # item → its most similar items, best first


class Ordered(Kind):
    """Every row is judged by the overall lists; a space over a facet's text is also judged by that facet's own."""

    name = "ordered"
    whole = True

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        items: str,
        truth: str,
        facets: Mapping[str, str],
        overall: str = "overall",
        id_key: str = "id",
        length: int = 5,
        cluster: str = "",
        k: Sequence[int] = (1, 2, 3, 5, 10),
        texts: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, base, targets)
        try:
            self.facets = msgspec.convert(facets, dict[str, str])
            self.length, cuts = msgspec.convert((length, list(k)), tuple[int, list[int]])
            self.texts = msgspec.convert(list(texts) if texts is not None else list(self.facets), list[str])
        except msgspec.ValidationError as error:
            raise InputError(str(error)) from None
        if self.length < 1 or not cuts or min(cuts) < 1:
            raise InputError("length and k must be at least 1", place="k")
        if overall not in self.facets:
            raise InputError(f"the overall facet {overall!r} is not among the facets", place="overall")
        self.items, self.truth, self.overall = items, base / truth, overall
        self.id_key, self.cluster, self.cuts = id_key, cluster, sorted(set(cuts))
        self.lists: dict[str, Lists] = {}

    def task(self) -> Task:
        """Items and lists, all of the lists' rules checked."""
        documents = read_documents(self.base / self.items, id_key=self.id_key, fields=self.texts)
        self.lists = read_lists(self.truth, self.id_key, self.facets, self.length, {d.id for d in documents})
        asked = self.lists[self.overall]
        return Task(
            name=self.task_name,
            kind=self.name,
            documents=documents,
            queries=[self._query(document) for document in documents if document.id in asked],
            judgments=graded(asked, self.length),
            targets=self.targets,
        )

    def _query(self, document: Document) -> Query:
        cluster = str(document.metadata.get(self.cluster) or "") if self.cluster else ""
        return Query(id=document.id, text=document.whole(), category=cluster, item=document.id)

    def facet(self, entrant: Entrant) -> str:
        """The list that a row has to reproduce: that of its text; overall for everything else, fusions included."""
        field = entrant.contender.field
        return field if field in self.facets else self.overall

    def extras(self, outcome: Outcome) -> Extras:
        """Every space at every K against its own list, every list, every cluster, and the report files."""
        figures = {entrant.contender.label: self._figures(entrant, outcome.task) for entrant in outcome.ran}
        extras = Extras(figures={"spaces": figures})
        extras.sections = [self._by_k(outcome, figures), self._by_facet(outcome)]
        if outcome.task.categories:
            extras.sections.append(self._by_cluster(outcome))
        fusions = [entrant for entrant in outcome.ran if entrant.contender.fusion]
        for number, fusion in enumerate(fusions or [None]):
            for k in self.cuts:
                suffix = f"_{fusion.contender.label}" if fusion and number else ""
                report = self._report(outcome, fusion, k)
                extras.files[f"ordered_report{suffix}_k{k}.json"] = (
                    msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
                )
        return extras

    def _scores(self, entrant: Entrant, task: Task, facet: str, cuts: Sequence[int]) -> Scores:
        """The engine's own measures, against one facet's lists."""
        measures = [measure for k in cuts for measure in _measures(k)]
        ids = [query.id for query in task.queries]
        return evaluate(join(entrant.rounds[0], graded(self.lists[facet], self.length), ids), measures)

    def _figures(self, entrant: Entrant, task: Task) -> dict[str, Any]:
        scores = self._scores(entrant, task, self.facet(entrant), self.cuts)
        return {"list": self.facet(entrant), "at": {str(k): _means(scores, k) for k in self.cuts}}

    def _by_k(self, outcome: Outcome, figures: Mapping[str, Any]) -> Section:
        task = outcome.task
        rows = [
            [label, figure["list"], str(k), *(f"{value:.3f}" for value in figure["at"][str(k)].values())]
            for label, figure in figures.items()
            for k in self.cuts
        ]
        measures = [measure for k in self.cuts for measure in _measures(k)]
        ids = [query.id for query in task.queries]
        chance = random_expectation(task.judgments, ids, task.candidates, measures)
        rows += [["random", "any", str(k), *(f"{v:.3f}" for v in _means(chance, k).values())] for k in self.cuts]
        return Section(
            title="Spaces against their own lists",
            head=["Space", "list", "K", "Hits@K", "MRR@K", "nDCG@K"],
            rows=rows,
            notes=[
                f"Hits@K counts the list's {self.length} items among the first K. The item at place p has grade "
                f"{self.length + 1} − p and gain 2^grade − 1. Candidates are all other items. Random is the exact "
                "expectation. The matrix above judges every row by the overall lists; fusions are judged by these only."
            ],
        )

    def _by_facet(self, outcome: Outcome) -> Section:
        k = self.length
        rows = []
        for entrant in outcome.ran:
            cells = []
            for facet in self.facets:
                own = facet == self.overall or not entrant.contender.fusion
                scores = self._scores(entrant, outcome.task, facet, [k])
                cells.append(f"{_means(scores, k)['mean_ndcg']:.3f}" if own else "–")
            rows.append([entrant.contender.label, *cells])
        return Section(title=f"nDCG@{k} against every list", head=["Row", *self.facets], rows=rows)

    def _by_cluster(self, outcome: Outcome) -> Section:
        k, task, ran = self.length, outcome.task, outcome.ran
        ndcg = Measure.parse(f"ndcg(gain=exp)@{k}")
        values = [self._scores(entrant, task, self.overall, [k])[ndcg] for entrant in ran]
        rows = []
        for cluster in task.categories:
            inside = [place for place, query in enumerate(task.queries) if query.category == cluster]
            rows.append([cluster, str(len(inside)), *(f"{column[inside].mean():.3f}" for column in values)])
        return Section(
            title=f"nDCG@{k} by {self.cluster}, against the overall lists",
            head=[self.cluster.capitalize(), "items", *(entrant.contender.label for entrant in ran)],
            rows=rows,
        )

    def _report(self, outcome: Outcome, fused: Entrant | None, k: int) -> dict[str, Any]:
        """One K: the spaces that are fused (all rows where nothing is), their fusion, and every query."""
        fusion = fused.contender.fusion if fused else None
        spaces = [e for e in outcome.ran if not e.contender.fusion and (not fusion or e.contender.label in fusion.of)]
        names = _names(spaces)
        columns = {names[space.contender.label]: (space, self.facet(space)) for space in spaces}
        if fused is not None:
            columns["combined_weighted_rrf"] = (fused, self.overall)
        scores = {name: self._scores(entrant, outcome.task, facet, [k]) for name, (entrant, facet) in columns.items()}
        return {
            "K": k,
            "weights": dict(zip((names[label] for label in fusion.of), fusion.weights, strict=True)) if fusion else {},
            "c": fusion.c if fusion else None,
            **{name: _means(found, k) for name, found in scores.items()},
            **({} if fused else {"combined_weighted_rrf": None}),
            "per_query": {
                query.id: {
                    name: _one(scores[name], place, k, entrant.rounds[0][query.id].ids)
                    for name, (entrant, _) in columns.items()
                }
                for place, query in enumerate(outcome.task.queries)
            },
        }


def read_lists(file: Path, id_key: str, facets: Mapping[str, str], length: int, known: set[str]) -> dict[str, Lists]:
    """A JSON array of items with one ordered list a facet; every rule is checked, each break named with its place."""
    entries = read_json(file, list[dict[str, Any]])
    found: dict[str, Lists] = {facet: {} for facet in facets}
    for place, entry in enumerate(entries):
        where = f"$[{place}]"
        item = entry.get(id_key)
        if not isinstance(item, str | int) or not str(item):
            raise InputError(f"an entry without {id_key!r}", file=file, place=where, remedy=f"give it a {id_key}")
        item = str(item)
        if item not in known:
            raise InputError(f"unknown item {item!r}", file=file, place=where, remedy="add it to the items")
        if any(item in lists for lists in found.values()):
            raise InputError(f"{item!r} has two entries", file=file, place=where, remedy="keep one of them")
        for facet, key in facets.items():
            found[facet][item] = _list(entry.get(key), item, length, known, file, f"{where}.{key}")
    if not entries:
        raise InputError("there is no entry", file=file, remedy="give at least one item its lists")
    return found


def _list(value: Any, item: str, length: int, known: set[str], file: Path, where: str) -> list[str]:
    if not isinstance(value, list) or len(value) != length:
        count = f"has {len(value)} items" if isinstance(value, list) else "is missing"
        raise InputError(f"the list of {item!r} {count}", file=file, place=where, remedy=f"give exactly {length}")
    similar = [str(other) for other in value]
    if item in similar:
        raise InputError(
            f"{item!r} stands in its own list", file=file, place=where, remedy="an item is not a candidate"
        )
    if len(set(similar)) < length:
        twice = next(other for other in similar if similar.count(other) > 1)
        raise InputError(f"{twice!r} appears twice in the list of {item!r}", file=file, place=where)
    if unknown := [other for other in similar if other not in known]:
        raise InputError(f"unknown item {unknown[0]!r} in the list of {item!r}", file=file, place=where)
    return similar


def graded(lists: Lists, length: int) -> dict[str, dict[str, int]]:
    """The first of a list has grade `length`, the last 1: six minus the position, for five."""
    return {item: {other: length - at for at, other in enumerate(similar)} for item, similar in lists.items()}


def _measures(k: int) -> list[Measure]:
    return [Measure.parse(f"p@{k}"), Measure.parse(f"mrr@{k}"), Measure.parse(f"ndcg(gain=exp)@{k}")]


def _means(scores: Scores, k: int) -> dict[str, float]:
    hits, rr, ndcg = (float(scores[measure].mean()) for measure in _measures(k))
    return {"mean_hits": round(hits * k, 12), "mean_mrr": rr, "mean_ndcg": ndcg}


def _one(scores: Scores, place: int, k: int, ids: Sequence[str]) -> dict[str, Any]:
    hits, rr, ndcg = (float(scores[measure][place]) for measure in _measures(k))
    return {"hits": round(hits * k), "rr": rr, "ndcg": ndcg, "topK": list(ids[:k])}


def _names(entrants: Sequence[Entrant]) -> dict[str, str]:
    """Spaces by their names without the store, where these are unique."""
    short = [entrant.contender.name for entrant in entrants]
    return {
        entrant.contender.label: name if short.count(name) == 1 else entrant.contender.label
        for entrant, name in zip(entrants, short, strict=True)
    }
