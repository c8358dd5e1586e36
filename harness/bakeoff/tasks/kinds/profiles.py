"""Golden profiles against a snapshot: rules decide who is eligible, a score and a rerank order, proxies label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_json
from bakeoff.core.ranking import Ranking, ordered
from bakeoff.core.task import Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.metrics import Scores, evaluate, join, random_expectation
from bakeoff.run.prepare import Entrant
from bakeoff.run.runner import Outcome
from bakeoff.tasks.formats.snapshot import columns_of, newest, read_snapshot
from bakeoff.tasks.kinds.base import Extras, Kind
from bakeoff.tasks.kinds.eligibility import Rule, matches, overlap, reasons
from bakeoff.tasks.kinds.profiles_report import NOT_THERE, artifact, report, sections

LabelMode = Literal["hybrid", "no_similarity"]
SCORE_DIGITS = 9
TOP_SHARE = 0.25  # of the items without a common keyword: what calibration would let through
Labels = dict[str, dict[str, int]]


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much similarity and common keywords count in the second stage."""

    similarity: float = 0.7
    keywords: float = 0.3


class Rerank(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The third stage: rules that hold lift an item by their boost, within the first `depth` places."""

    depth: int = 30
    boosts: list[Rule] = []


class LabelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which labels judge the matrix, which attributes must match for a 2, and from which similarity on a 1 is given."""

    mode: LabelMode = "no_similarity"
    match: tuple[str, ...] = ("major", "state", "education_level")
    needs: Literal["all", "any"] = "all"
    # by provider; `embeddings` stands for all that have none of their own
    thresholds: dict[str, float] = msgspec.field(default_factory=lambda: {"tfidf": 0.12, "embeddings": 0.30})


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the task file that have a shape of their own."""

    rules: list[Rule]
    weights: Weights = Weights()
    rerank: Rerank = Rerank()
    labels: LabelSettings = LabelSettings()
    k: int = 10


class Profiles(Kind):
    """Queries are profiles, documents the items of the snapshot. Every stage is said in the task file."""

    name = "profiles"
    whole = True
    measures = ("ndcg@10",)
    paths = ("weights_file",)

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        snapshot: str,
        profiles: str,
        profile_text: str,
        rules: Sequence[Mapping[str, Any]],
        id_key: str = "id",
        title_key: str = "title",
        text_key: str = "description",
        profile_key: str = "profile_id",
        keywords: str = "keywords",
        amount: str = "amount",
        best_weights: str = "",
        weights_file: str = "",
        use_best_weights: bool = True,
        calibrate_thresholds: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(name, base, targets)
        try:
            self.settings = msgspec.convert({"rules": list(rules), **settings}, Settings)
        except msgspec.ValidationError as error:
            problem, _, place = str(error).partition(" - at ")
            raise InputError(problem, place=place.strip("`"), remedy="see docs/profiles.md") from None
        if self.settings.k < 1 or not all(rule.reason for rule in self.settings.rules):
            raise InputError("k is at least 1 and every rule has a reason code", place="rules")
        self.snapshot, self.profiles_file, self.profile_text = newest(base / snapshot), base / profiles, profile_text
        self.keys = {"id_key": id_key, "title_key": title_key, "text_key_": text_key}
        self.profile_key, self.keywords, self.amount = profile_key, keywords, amount
        self.calibrate = calibrate_thresholds
        best = base / best_weights if best_weights and use_best_weights else None
        self.weights_from = base / weights_file if weights_file else best
        self.weights = read_json(self.weights_from, Weights) if self.weights_from else self.settings.weights
        self.profiles: dict[str, dict[str, Any]] = {}
        self.items: dict[str, dict[str, Any]] = {}
        self.eligible: dict[str, list[str]] = {}
        self.shut_out: Counter[str] = Counter()
        self._overlap: dict[str, dict[str, float]] = {}

    def task(self) -> Task:
        """The snapshot's items, a query a profile, and the labels that need no vectors."""
        documents = read_snapshot(self.snapshot, **self.keys)
        self.items = {document.id: dict(document.metadata) for document in documents}
        self._check_rules(columns_of(documents))
        for place, profile in enumerate(read_json(self.profiles_file, list[dict[str, Any]])):
            name = str(profile.get(self.profile_key) or "")
            if not name or name in self.profiles:
                problem = f"{name!r} appears twice" if name else f"a profile without {self.profile_key!r}"
                raise InputError(problem, file=self.profiles_file, place=f"$[{place}]")
            self.profiles[name] = profile
        for name, profile in self.profiles.items():
            against = {item: reasons(self.settings.rules, profile, about) for item, about in self.items.items()}
            self.eligible[name] = [item for item, codes in against.items() if not codes]
            self.shut_out.update(code for codes in against.values() for code in codes)
            mine = profile.get(self.keywords) or []
            self._overlap[name] = {i: overlap(mine, a.get(self.keywords) or []) for i, a in self.items.items()}
        return Task(
            name=self.task_name,
            kind=self.name,
            documents=documents,
            queries=[Query(id=name, text=self._text(profile)) for name, profile in self.profiles.items()],
            judgments=self.labels("no_similarity"),
            targets=self.targets,
        )

    def _text(self, profile: Mapping[str, Any]) -> str:
        shown = {key: ", ".join(value) if isinstance(value, list) else value for key, value in profile.items()}
        try:
            return self.profile_text.format(**shown)
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(f"a profile has no {error}", place="profile_text", file=self.profiles_file) from None

    def _check_rules(self, columns: set[str]) -> None:
        for rule in [*self.settings.rules, *self.settings.rerank.boosts]:
            if rule.item not in columns:
                raise InputError(f"no column {rule.item!r} for a rule", file=self.snapshot, place="rules")

    def refine(self, query: Query, ranking: Ranking) -> Ranking:
        """Stage 1: only the eligible. Stage 2: similarity and keywords, weighted. Stage 3: boosts, and the first k."""
        found = dict(zip(ranking.ids, ranking.scores, strict=True))
        top = max(1.0, max(found.values(), default=1.0))  # words are scored beyond 1, cosines are not
        weights, common = self.weights, self._overlap[query.id]
        scored = ordered(
            (item, weights.similarity * found.get(item, 0.0) / top + weights.keywords * common[item])
            for item in self.eligible[query.id]
        )
        rerank, profile = self.settings.rerank, self.profiles[query.id]
        lifted = []
        for place, (item, score) in enumerate(zip(scored.ids, scored.scores, strict=True)):
            fits = matches(rerank.boosts, profile, self.items[item]) if place < rerank.depth else []
            boost = sum(rule.boost for rule, fit in zip(rerank.boosts, fits, strict=False) if fit)
            lifted.append((item, round(score + boost, SCORE_DIGITS)))
        return ordered(lifted, self.settings.k)

    def labels(self, mode: LabelMode, entrant: Entrant | None = None) -> Labels:
        """The proxies. `hybrid` also asks the contender's own similarity, so each contender has labels of its own."""
        return {name: self._labels_of(name, mode, entrant) for name in self.profiles}

    def _labels_of(self, name: str, mode: LabelMode, entrant: Entrant | None) -> dict[str, int]:
        asked = [rule for rule in self.settings.rules if rule.profile in self.settings.labels.match]
        enough = all if self.settings.labels.needs == "all" else any
        similar = self._similar(name, entrant) if mode == "hybrid" and entrant is not None else set()
        found = {}
        for item in self.eligible[name]:
            common = self._overlap[name][item] > 0
            fits = matches(asked, self.profiles[name], self.items[item])
            found[item] = 2 if common and fits and enough(fits) else 1 if common or item in similar else 0
        return found

    def _similar(self, name: str, entrant: Entrant) -> set[str]:
        """Items at or above the threshold; only cosines can be held against one."""
        if entrant.contender.kind != "dense":
            return set()
        thresholds = self.settings.labels.thresholds
        bar = thresholds.get(entrant.contender.provider, thresholds.get("embeddings", 0.30))
        found = entrant.found[name]
        return {item for item, score in zip(found.ids, found.scores, strict=True) if score >= bar}

    def score(
        self, entrant: Entrant, answered: Mapping[str, Ranking], task: Task, measures: Sequence[Measure]
    ) -> Scores:
        """By the labels of the task file's mode."""
        mode = self.settings.labels.mode
        labels = task.judgments if mode == "no_similarity" else self.labels(mode, entrant)
        return evaluate(join(answered, labels, list(self.profiles)), measures, task.rel)

    def baselines(self, task: Task, measures: Sequence[Measure]) -> dict[str, Scores]:
        """Random among the eligible of each profile, not among all: rules alone are worth nothing to a ranker."""
        parts = [
            random_expectation(task.judgments, [name], max(1, len(self.eligible[name])), measures, task.rel)
            for name in self.profiles
        ]
        return {"random": {measure: np.concatenate([part[measure] for part in parts]) for measure in measures}}

    def extras(self, outcome: Outcome) -> Extras:
        """What the profiles got, under both label modes, for people and for machines."""
        figures: dict[str, Any] = {
            "snapshot": self.snapshot.name,
            "weights": msgspec.to_builtins(self.weights),
            "weights_from": self.weights_from.name if self.weights_from else "the task file",
            "label_mode": self.settings.labels.mode,
            "items": len(self.items),
            "shut_out": dict(self.shut_out.most_common()),
            "eligible": {name: len(items) for name, items in self.eligible.items()},
            "contenders": {entrant.contender.label: self._figures(entrant) for entrant in outcome.ran},
        }
        tables = sections(figures, self.settings.k)
        stamp = f"{outcome.started:%Y%m%d-%H%M%S}"
        extras = Extras(figures=figures, sections=tables)
        extras.files[f"profiles_report_{stamp}.md"] = report(outcome.task.name, stamp, tables)
        extras.files[f"profiles_artifact_{stamp}.json"] = artifact(outcome.task.name, stamp, figures)
        if self.settings.labels.mode == "hybrid":
            extras.warnings.append("hybrid labels: each row is judged by its own similarities; don't compare rows")
        return extras

    def _figures(self, entrant: Entrant) -> dict[str, Any]:
        answered, rules = entrant.rounds[0], self.settings.rules
        pairs = [(name, item) for name in self.profiles for item in answered.get(name, Ranking((), ())).ids]
        wrong = {
            pair: codes for pair in pairs if (codes := reasons(rules, self.profiles[pair[0]], self.items[pair[1]]))
        }
        amounts = [float(paid) for _, item in pairs if (paid := self.items[item].get(self.amount)) is not None]
        modes: dict[str, dict[str, float | None]] = {
            mode: self._ndcg(answered, self.labels(mode, entrant)) for mode in ("no_similarity", "hybrid")
        }
        unique = len({item for _, item in pairs})
        return {
            "eligibility_precision": 1 - len(wrong) / len(pairs) if pairs else None,
            "violations": [{"profile": p, "item": i, "reasons": codes} for (p, i), codes in wrong.items()],
            "coverage": unique,
            "coverage_share": unique / len(self.items),
            "amounts": _distribution(amounts),
            "stable": entrant.stable,
            "ndcg": {mode: _mean(values) for mode, values in modes.items()},
            "calibrated_threshold": self._calibrated(entrant) if self.calibrate else None,
            "profiles": {
                name: {
                    "items": list(answered[name].ids) if name in answered else [],
                    "ndcg": {mode: _or_not(values[name]) for mode, values in modes.items()},
                }
                for name in self.profiles
            },
        }

    def _ndcg(self, answered: Mapping[str, Ranking], labels: Labels) -> dict[str, float | None]:
        """NDCG@K of each profile; nothing where no item is labelled."""
        measure, names = Measure.parse(f"ndcg@{self.settings.k}"), list(self.profiles)
        values = evaluate(join(answered, labels, names), [measure])[measure]
        return {name: float(v) if any(labels[name].values()) else None for name, v in zip(names, values, strict=True)}

    def _calibrated(self, entrant: Entrant) -> float | None:
        """The median over profiles of the cut that leaves the top quarter of the items without a common keyword."""
        if entrant.contender.kind != "dense":
            return None
        cuts = []
        for name, items in self.eligible.items():
            found = dict(zip(entrant.found[name].ids, entrant.found[name].scores, strict=True))
            apart = [found[item] for item in items if self._overlap[name][item] == 0 and item in found]
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
