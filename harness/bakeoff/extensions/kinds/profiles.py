"""Golden profiles against a snapshot: eligibility rules, scoring, boosts and proxy labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import convert
from bakeoff_providers.registry import nearest

from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import OwnColumn
from bakeoff.core.files import read_json
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Query, Task
from bakeoff.embedding.given_vectors import GivenVectors
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores, join, random_expectation, score_queries
from bakeoff.extensions.kinds.profiles_report import NOT_THERE, artifact, report, sections
from bakeoff.extensions.kinds.snapshot import KEY, Snapshot, columns_of, newest, read_snapshot
from bakeoff.systems.dense import Dense
from bakeoff.tasks.kinds.base import Answers, Extras, FinishedRun, ScoredContender, TaskKind


def _same(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def _among(value: Any, values: Any) -> bool:
    listed = values if isinstance(values, list | tuple) else [values]
    return _same(value) in {_same(one) for one in listed}


# The profile's value comes first, the item's second.
OPERATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "at_least": lambda mine, asked: bool(mine >= asked),
    "at_most": lambda mine, asked: bool(mine <= asked),
    "equals": lambda mine, asked: bool(_same(mine) == _same(asked)),
    "one_of": _among,
    "includes": lambda mine, asked: _among(asked, mine),
}


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`profile` op `item`, both attribute names. `boost` is for rules that promote instead of excluding."""

    profile: Annotated[str, "attribute of the profile"]
    op: Annotated[str, "at_least, at_most, equals, one_of or includes"]
    item: Annotated[str, "attribute of the item"]
    reason: Annotated[str, "reason code for excluding an item"] = ""
    boost: Annotated[float, "amount added to the score, for boosts"] = 0.0

    def __post_init__(self) -> None:
        if self.op not in OPERATIONS:
            raise ValueError(f"unknown operation {self.op!r}; {nearest(self.op, list(OPERATIONS))}")

    def holds(self, profile: Mapping[str, Any], item: Mapping[str, Any]) -> bool | None:
        """None if the item has no requirement. A missing profile attribute fails the rule."""
        asked, mine = item.get(self.item), profile.get(self.profile)
        if asked is None or asked == "" or (isinstance(asked, list) and not asked):
            return None
        if mine is None or mine == "":
            return False
        try:
            return OPERATIONS[self.op](mine, asked)
        except TypeError:
            raise InputError(
                f"{self.profile} = {mine!r} can't be compared to {self.item} = {asked!r} by {self.op}", place="rules"
            ) from None


def reasons(rules: Sequence[Rule], profile: Mapping[str, Any], item: Mapping[str, Any]) -> list[str]:
    """Codes of all rules that exclude this profile from this item; empty if eligible."""
    return [rule.reason for rule in rules if rule.holds(profile, item) is False]


def matches(rules: Sequence[Rule], profile: Mapping[str, Any], item: Mapping[str, Any]) -> list[bool]:
    """Rules that the item requires and the profile satisfies. An item without a requirement is no match."""
    return [rule.holds(profile, item) is True for rule in rules]


def overlap(mine: Sequence[str], theirs: Sequence[str]) -> float:
    """The share of the profile's keywords that the item has."""
    for words in (mine, theirs):
        if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
            problem = f"keywords must be a list of strings, not {str(words)[:80]}"
            raise InputError(problem, place="keywords", remedy='write them as ["one", "two"]')
    wanted = {_same(word) for word in mine}
    return len(wanted & {_same(word) for word in theirs}) / len(wanted) if wanted else 0.0


LabelMode = Literal["hybrid", "no_similarity"]
THRESHOLDS = {"tfidf": 0.12, "embeddings": 0.30}


class StageWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of similarity and shared keywords in the second stage."""

    similarity: Annotated[float, "weight of the similarity"] = 0.7
    keywords: Annotated[float, "weight of the keyword overlap"] = 0.3


class BoostStage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The third stage: matching rules add their boost within the first `depth` ranks."""

    depth: Annotated[int, "ranks that boosts may change"] = 30
    boosts: Annotated[list[Rule], "rules that add a boost to matching items"] = []


class LabelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which labels judge the matrix, which matches give a 2, and which similarity gives a 1."""

    mode: Annotated[LabelMode, "which labels judge the matrix"] = "no_similarity"
    match: Annotated[tuple[str, ...], "attributes that must match by name for a label of 2"] = (
        "major",
        "state",
        "education_level",
    )
    needs: Annotated[Literal["all", "any"], "how many of them must match"] = "all"
    thresholds: Annotated[
        dict[str, float],
        "a similarity above it makes a label of 1 in hybrid mode, by provider; embeddings: all others",
    ] = msgspec.field(default_factory=lambda: dict(THRESHOLDS))

    @property
    def all_thresholds(self) -> dict[str, float]:
        """The thresholds, with defaults for those not set."""
        return {**THRESHOLDS, **self.thresholds}


class ProfileSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The structured settings of the task file."""

    rules: Annotated[list[Rule], "eligibility rules, each with a reason code"]
    weights: Annotated[StageWeights, "weights of similarity and shared keywords"] = StageWeights()
    rerank: Annotated[BoostStage, "rules that promote items at the end"] = BoostStage()
    labels: Annotated[LabelSettings, "how items are labelled automatically"] = LabelSettings()
    k: Annotated[int, "number of items per profile"] = 10


VECTORS = "vectors"


def read_sidecar(folder: Path, model: str, snapshot: Snapshot) -> GivenVectors | None:
    """This model's vectors of the snapshot's items; None if there is no file."""
    names = [re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_") for name in (model, model.rpartition("/")[2])]
    files = [folder / "embeddings" / name / "embeddings.npz" for name in names if name]
    file = next((file for file in files if file.is_file()), None)
    if file is None or not snapshot.keys:
        return None
    try:
        with np.load(file, allow_pickle=False) as arrays:
            keys, vectors = arrays[KEY].tolist(), arrays[VECTORS]
    except Exception as error:  # a damaged archive raises anything
        remedy = f"expected arrays `{KEY}` and `{VECTORS}`; or remove the file"
        raise InputError(f"unreadable: {error}", file=file, remedy=remedy) from None
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(keys) != len(vectors):
        problem = f"{len(keys)} keys for vectors of shape {vectors.shape} and type {vectors.dtype}"
        raise InputError(problem, file=file, remedy=f"expected one row of floats for each {KEY}")
    rows = {str(key): row for row, key in enumerate(keys)}
    of_text = {item.whole(): snapshot.keys.get(item.id, "") for item in snapshot.documents}
    return GivenVectors(file, {text: rows[key] for text, key in of_text.items() if key in rows}, vectors)


SCORE_DIGITS = 9
TOP_SHARE = 0.25  # share of items without a shared keyword that calibration lets through
Labels = dict[str, dict[str, int]]


class Profiles(TaskKind):
    """Queries are profiles, documents are the snapshot's items. The task file defines every stage."""

    name = "profiles"
    refines = True
    scores_itself = True
    needs_full_ranking = True
    measures = ("ndcg@10",)
    unit, item = "profile", "item"
    paths = ("snapshot", "profiles", "best_weights", "weights_file", "reports")

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        snapshot: Annotated[str, "the snapshot file, or a folder (its newest is used)"],
        profiles: Annotated[str, "file of profiles: a JSON list"],
        profile_text: Annotated[str, "query text of a profile, with {placeholders} for attributes"],
        rules: Annotated[Sequence[Mapping[str, Any]], "eligibility rules, each with a reason code", Rule],
        id_key: Annotated[str, "key of an item's id"] = "id",
        title_key: Annotated[str, "key of an item's title"] = "title",
        text_key: Annotated[str, "key of an item's text"] = "description",
        profile_key: Annotated[str, "key of a profile's id"] = "profile_id",
        keywords: Annotated[str, "key of the keywords of profiles and items"] = "keywords",
        amount: Annotated[str, "key of an item's amount, for its distribution"] = "amount",
        best_weights: Annotated[str, "file with tuned weights; falls back to [weights]"] = "",
        weights_file: Annotated[str, "file with weights; overrides best_weights and [weights]"] = "",
        reports: Annotated[str, "folder for a copy of the golden_eval files"] = "",
        use_best_weights: Annotated[bool, "whether best_weights is read"] = True,
        calibrate_thresholds: Annotated[bool, "report calibrated thresholds without applying them"] = False,
        **settings: Annotated[Any, ProfileSettings],
    ) -> None:
        super().__init__(name, base, targets)
        self.settings = convert("$", {"rules": list(rules), **settings}, ProfileSettings)
        if not all(rule.reason for rule in self.settings.rules):
            raise InputError("every rule has a reason code", place="rules")
        self.snapshot_file, self.profiles_file = newest(base / snapshot), base / profiles
        self.profile_text = profile_text
        self.keys = {"id_key": id_key, "title_key": title_key, "text_key_": text_key}
        self.profile_key, self.keywords, self.amount = profile_key, keywords, amount
        self.calibrate = calibrate_thresholds
        best = base / best_weights if best_weights and use_best_weights and not weights_file else None
        self.absent = best if best and not best.exists() else None
        self.weights_from = base / weights_file if weights_file else None if self.absent else best
        self.weights = read_json(self.weights_from, StageWeights) if self.weights_from else self.settings.weights
        self.reports = base / reports if reports else None
        if self.reports and self.reports.exists() and not self.reports.is_dir():
            raise InputError("is a file; reports go into a folder", file=self.reports, place="reports")

    @cached_property
    def snapshot(self) -> Snapshot:
        """The items, checked against the rules."""
        snapshot = read_snapshot(self.snapshot_file, **self.keys)
        columns = columns_of(snapshot.documents)
        for rule in [*self.settings.rules, *self.settings.rerank.boosts]:
            if rule.item not in columns:
                raise InputError(f"no column {rule.item!r} for a rule", file=self.snapshot_file, place="rules")
        return snapshot

    def vectors_of(self, model: str) -> GivenVectors | None:
        """Vectors from the sidecar of the snapshot."""
        return read_sidecar(self.snapshot_file.parent, model, self.snapshot)

    @property
    def no_verdict(self) -> str:
        """In hybrid mode a row's labels depend on its own similarities."""
        if self.settings.labels.mode == "no_similarity":
            return ""
        return "labels by row"

    @cached_property
    def items(self) -> dict[str, dict[str, Any]]:
        """Each item's attributes, by id."""
        return {document.id: dict(document.metadata) for document in self.snapshot.documents}

    @cached_property
    def profiles(self) -> dict[str, dict[str, Any]]:
        """The profiles by id."""
        profiles: dict[str, dict[str, Any]] = {}
        for place, profile in enumerate(read_json(self.profiles_file, list[dict[str, Any]])):
            name = str(profile.get(self.profile_key) or "")
            if not name or name in profiles:
                problem = f"{name!r} appears twice" if name else f"a profile without {self.profile_key!r}"
                raise InputError(problem, file=self.profiles_file, place=f"$[{place}]")
            profiles[name] = profile
        return profiles

    @cached_property
    def shut_out(self) -> dict[str, dict[str, list[str]]]:
        """Reason codes by profile and item; empty if eligible."""
        rules = self.settings.rules
        return {
            name: {item: reasons(rules, profile, about) for item, about in self.items.items()}
            for name, profile in self.profiles.items()
        }

    @cached_property
    def eligible(self) -> dict[str, list[str]]:
        """The eligible items of each profile."""
        return {name: [item for item, codes in items.items() if not codes] for name, items in self.shut_out.items()}

    @cached_property
    def common_keywords(self) -> dict[str, dict[str, float]]:
        """The share of the profile's keywords that each item has."""
        return {
            name: {
                item: overlap(profile.get(self.keywords) or [], about.get(self.keywords) or [])
                for item, about in self.items.items()
            }
            for name, profile in self.profiles.items()
        }

    def task(self) -> Task:
        """The snapshot's items, one query per profile, and labels that need no vectors."""
        return Task(
            name=self.task_name,
            kind=self.name,
            documents=self.snapshot.documents,
            queries=[Query(id=name, text=self._text(profile)) for name, profile in self.profiles.items()],
            judgments=self.labels("no_similarity"),
            targets=self.targets,
        )

    def _text(self, profile: Mapping[str, Any]) -> str:
        shown = {
            key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in profile.items()
        }
        try:
            return self.profile_text.format(**shown)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"a profile has no {error}", place="profile_text", file=self.profiles_file) from None

    def refine(self, query: Query, ranking: Ranking) -> Ranking:
        """Stage 1: only the eligible. Stage 2: similarity and keywords, weighted. Stage 3: boosts, and the first k."""
        similarity = dict(zip(ranking.ids, ranking.scores, strict=True))
        top = max(1.0, max(similarity.values(), default=1.0))  # word scores may exceed 1, cosines may not
        weights, common = self.weights, self.common_keywords[query.id]
        scored = make_ranking(
            (item, weights.similarity * similarity.get(item, 0.0) / top + weights.keywords * common[item])
            for item in self.eligible[query.id]
        )
        rerank, profile = self.settings.rerank, self.profiles[query.id]
        lifted = []
        for place, (item, score) in enumerate(zip(scored.ids, scored.scores, strict=True)):
            fits = matches(rerank.boosts, profile, self.items[item]) if place < rerank.depth else []
            boost = sum(rule.boost for rule, fit in zip(rerank.boosts, fits, strict=False) if fit)
            lifted.append((item, round(score + boost, SCORE_DIGITS)))
        return make_ranking(lifted, self.settings.k)

    def labels(self, mode: LabelMode, answers: Answers | ScoredContender | None = None) -> Labels:
        """Proxy labels. `hybrid` also uses the contender's own similarity, so labels differ by contender."""
        return {name: self._labels_of(name, mode, answers) for name in self.profiles}

    def _labels_of(self, name: str, mode: LabelMode, answers: Answers | ScoredContender | None) -> dict[str, int]:
        asked = [rule for rule in self.settings.rules if rule.profile in self.settings.labels.match]
        enough = all if self.settings.labels.needs == "all" else any
        similar = self._similar(name, answers) if mode == "hybrid" and answers is not None else set()
        labels = {}
        for item in self.eligible[name]:
            common = self.common_keywords[name][item] > 0
            fits = matches(asked, self.profiles[name], self.items[item])
            labels[item] = 2 if common and fits and enough(fits) else 1 if common or item in similar else 0
        return labels

    def _similar(self, name: str, answers: Answers | ScoredContender) -> set[str]:
        """Items above the threshold, which applies to cosines only."""
        if not isinstance(answers.contender, Dense):
            return set()
        thresholds = self.settings.labels.all_thresholds
        bar = thresholds.get(answers.contender.provider, thresholds["embeddings"])
        retrieved = answers.retrieved[name]
        return {item for item, score in zip(retrieved.ids, retrieved.scores, strict=True) if score > bar}

    def score(self, task: Task, answers: Answers, measures: Sequence[Measure]) -> Scores:
        """Score by the labels of the task file's mode."""
        mode = self.settings.labels.mode
        labels = task.judgments if mode == "no_similarity" else self.labels(mode, answers)
        return score_queries(join(answers.rankings, labels, list(self.profiles)), measures, task.rel)

    def find_unlabelled(self, ran: Sequence[ScoredContender]) -> set[str]:
        """Profiles without a label above 0; in hybrid mode, in at least one row."""
        return set().union(*self._without_label(ran))

    def _without_label(self, ran: Sequence[ScoredContender]) -> list[set[str]]:
        """Per row in hybrid mode, otherwise once, since all rows share their labels."""
        mode = self.settings.labels.mode
        every = [self.labels(mode, row) for row in ran] if mode == "hybrid" else [self.labels(mode)]
        return [{name for name in self.profiles if not any(labels[name].values())} for labels in every]

    def baselines(self, task: Task, measures: Sequence[Measure], depth: int) -> dict[str, Scores]:
        """Random order of each profile's eligible items, so that a ranker gets no credit for the rules."""
        parts = [
            random_expectation(task.judgments, [name], max(1, len(self.eligible[name])), measures, task.rel, depth)
            for name in self.profiles
        ]
        return {"random": {measure: np.concatenate([part[measure] for part in parts]) for measure in measures}}

    def extras(self, run: FinishedRun) -> Extras:
        """The report under both label modes."""
        eligibility = {name: self._eligibility(name) for name in self.profiles}
        codes = sum((Counter(one["reasons"]) for one in eligibility.values()), Counter[str]())
        no_weights = [fact("kinds.no_weights", file=self.absent.name)] if self.absent else []
        notes = [*self.snapshot.notes, *no_weights]
        figures: dict[str, Any] = {
            "snapshot": self.snapshot_file.name,
            "notes": msgspec.to_builtins(notes),
            "weights": msgspec.to_builtins(self.weights),
            "weights_from": self.weights_from.name if self.weights_from else None,
            "label_mode": self.settings.labels.mode,
            "thresholds": self.settings.labels.all_thresholds,
            "items": len(self.items),
            "eligibility_precision": float(np.mean([one["eligibility_precision"] for one in eligibility.values()])),
            "eligibility": eligibility,
            "shut_out": dict(codes.most_common()),
            "contenders": {scored.contender.label: self._figures(scored) for scored in run.contenders},
        }
        tables = sections(figures, self.settings.k, notes)
        stamp = f"{run.started:%Y%m%d_%H%M%S}"
        files: dict[str, str | bytes] = {
            f"golden_eval_{stamp}.md": report(run.task.name, stamp, tables),
            f"artifacts/golden_eval_{stamp}.json": artifact(run.task.name, stamp, figures),
        }
        changed = [scored.contender.label for scored in run.contenders if scored.stable is False]
        failures = [fact("kinds.order_changed", labels=changed)]
        return Extras(
            figures,
            tables,
            files,
            self._note_uncounted(run.contenders),
            failures if changed else [],
            self.reports,
            self._columns(figures),
        )

    def _columns(self, figures: Mapping[str, Any]) -> list[OwnColumn]:
        rows, items = figures["contenders"], len(self.items)
        coverage: dict[str, float | None] = {label: float(figure["coverage"]) for label, figure in rows.items()}
        precision = dict.fromkeys(rows, figures["eligibility_precision"])
        return [
            OwnColumn(head=fact("kinds.eligibility_precision"), values=precision),
            OwnColumn(head=fact("kinds.coverage", k=self.settings.k), values=coverage, quantity="count", of=items),
        ]

    def _note_uncounted(self, ran: Sequence[ScoredContender]) -> list[Fact]:
        """Facts on the profiles that the means leave out."""
        every = self._without_label(ran)
        nowhere = set.intersection(*every)
        said = [fact("kinds.without_label", profiles=sorted(nowhere))] if nowhere else []
        if partly := sorted(self.find_unlabelled(ran) - nowhere):
            said.append(fact("kinds.left_out", profiles=partly))
        return said

    def _eligibility(self, name: str) -> dict[str, Any]:
        """How many items are eligible for a profile, and why others are excluded."""
        eligible, total = len(self.eligible[name]), len(self.items)
        codes = Counter(code for codes in self.shut_out[name].values() for code in codes)
        return {
            "eligible_count": eligible,
            "total_count": total,
            "eligibility_precision": eligible / total,
            "reasons": dict(codes.most_common()),
        }

    def _figures(self, scored: ScoredContender) -> dict[str, Any]:
        answered, rules = scored.rankings, self.settings.rules
        pairs = [(name, item) for name in self.profiles for item in answered.get(name, Ranking((), ())).ids]
        wrong = {
            pair: codes for pair in pairs if (codes := reasons(rules, self.profiles[pair[0]], self.items[pair[1]]))
        }
        amounts = [float(paid) for _, item in pairs if (paid := self.items[item].get(self.amount)) is not None]
        modes: dict[str, dict[str, float | None]] = {
            mode: self._ndcg(answered, self.labels(mode, scored)) for mode in ("no_similarity", "hybrid")
        }
        unique = len({item for _, item in pairs})
        return {
            "rule_violations": [{"profile": p, "item": i, "reasons": codes} for (p, i), codes in wrong.items()],
            "coverage": unique,
            "coverage_share": unique / len(self.items),
            "amounts": _distribution(amounts),
            "stable": scored.stable,
            "ndcg": {mode: _mean(values) for mode, values in modes.items()},
            "calibrated_threshold": self._calibrate(scored) if self.calibrate else None,
            "profiles": {
                name: {
                    "items": list(answered[name].ids) if name in answered else [],
                    "ndcg": {mode: _or_not(values[name]) for mode, values in modes.items()},
                }
                for name in self.profiles
            },
        }

    def _ndcg(self, answered: Mapping[str, Ranking], labels: Labels) -> dict[str, float | None]:
        """NDCG@K of each profile; None if no item is labelled."""
        measure, names = Measure.parse(f"ndcg@{self.settings.k}"), list(self.profiles)
        values = score_queries(join(answered, labels, names), [measure])[measure]
        return {name: float(v) if any(labels[name].values()) else None for name, v in zip(names, values, strict=True)}

    def _calibrate(self, scored: ScoredContender) -> float | None:
        """The median over profiles of the similarity that cuts off the top quarter of items without shared keywords."""
        if not isinstance(scored.contender, Dense):
            return None
        cuts = []
        for name, items in self.eligible.items():
            retrieved = scored.retrieved[name]
            similarity = dict(zip(retrieved.ids, retrieved.scores, strict=True))
            apart = [similarity[i] for i in items if self.common_keywords[name][i] == 0 and i in similarity]
            if apart:
                cuts.append(float(np.quantile(apart, 1 - TOP_SHARE)))
        return float(np.median(cuts)) if cuts else None


def _mean(values: Mapping[str, float | None]) -> float | None:
    known = [value for value in values.values() if value is not None]
    return float(np.mean(known)) if known else None


def _or_not(value: float | None) -> float | str:
    return NOT_THERE if value is None else value


def _distribution(amounts: Sequence[float]) -> dict[str, float] | None:
    if not amounts:
        return None
    return {"mean": float(np.mean(amounts)), "median": float(np.median(amounts)), "max": max(amounts)}
