"""Results made by hand, one for each situation that a verdict may be in: what screens are looked at with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bakeoff.core.facts import Argument, Failure, fact
from bakeoff.core.figures import OwnColumn, PairedDifference, Percentiles
from bakeoff.core.machine import Machine
from bakeoff.results.schema import (
    Against,
    Bounds,
    Cost,
    Latency,
    Outlook,
    Pick,
    PossibleWinner,
    Row,
    Standing,
    Summary,
    TaskInfo,
    Value,
    Verdict,
)
from msgspec.structs import replace

MEASURES = ("p@5", "recall@10", "f1@5", "mrr", "ndcg@10")
LABELS = {"p@5": "Precision@5", "recall@10": "Recall@10", "f1@5": "F1@5", "mrr": "MRR", "ndcg@10": "NDCG@10"}
MACHINE = Machine(
    cpu="a processor", cores=2, memory_gb=8, system="Linux", python="3.11", versions={}, threads={}, load_before=0.4,
    load_after=0.5,
)  # fmt: skip


def percentiles(p50: float | None) -> Percentiles:
    return Percentiles(60, p50, None if p50 is None else 1.6 * p50)


def latency(search: float | None, embed: float | None = None, *, doubts: Sequence[Any] = ()) -> Latency:
    total = None if search is None else search + (embed or 0)
    return Latency(embed=percentiles(embed), search=percentiles(search), total=percentiles(total), doubts=list(doubts))


def row(label: str, mean: float, search: float | None = 0.05, embed: float | None = None, **more: Any) -> Row:
    """A contender that ran: its mean on every measure, spread by as much as is easy to read."""
    name, _, store = label.partition("+")
    spread = {"p@5": -0.2, "recall@10": 0.1, "f1@5": -0.15, "mrr": 0.04, "ndcg@10": 0.0}
    values = {
        measure: Value(min(1, mean + by), max(0, mean + by - 0.09), min(1, mean + by + 0.07))
        for measure, by in spread.items()
    }
    free = Cost(usd=0, usd_per_million_documents=0, usd_per_thousand_queries=0)
    return Row(
        **{
            "label": label,
            "row_type": "dense" if store else "lexical",
            "provider": name.partition("@")[0] if store else "",
            "model": name.partition("@")[0],
            "store": store,
            "local": True,
            "measures": values,
            "latency": None if search is None else latency(search, embed),
            "cost": free,
            "index_bytes": 38_445,
            **more,
        }
    )


def baseline(label: str, mean: float) -> Row:
    return Row(label=label, row_type="baseline", measures={measure: Value(mean) for measure in MEASURES})


def lacking(id_: str, **arguments: Argument) -> Failure:
    return Failure(kind="unavailable", error="Unavailable", lacks=[fact(id_, **arguments)])


def lost(label: str, failure: Failure) -> Row:
    name, _, store = label.partition("+")
    return Row(label=label, row_type="dense", provider=name, store=store, not_run=failure)


def in_two_stores(name: str, mean: float, embed: float, faiss: float = 0.04, chroma: float = 0.9) -> list[Row]:
    return [row(f"{name}+faiss", mean, faiss, embed), row(f"{name}+chroma", mean, chroma, embed)]


def models() -> list[Row]:
    """Seven models, six of them in two stores: the line-up that runs by default."""
    return [
        *in_two_stores("minilm", 0.798, 3.6),
        *in_two_stores("granite", 0.830, 3.8),
        *in_two_stores("use", 0.762, 1.7),
        *in_two_stores("wordllama", 0.706, 0.06),
        *in_two_stores("tfidf", 0.647, 0.02),
        *in_two_stores("fake", 0.613, 0.02),
        row("bm25", 0.708, 0.072),
    ]


def standings(rows: Sequence[Row], best: Sequence[str] = (), leader: str = "", **more: Any) -> dict[str, Standing]:
    """Of all rows: those in `best` may be the best; rows of one mean and name score alike."""
    made: dict[str, Standing] = {}
    first: dict[tuple[str, float], str] = {}
    highest = max(one.measures["ndcg@10"].mean for one in rows)
    for one in rows:
        mean = one.measures["ndcg@10"].mean
        key = (one.label.partition("+")[0], mean)
        gap = highest - mean
        mark: Any = "leads" if one.label == leader else "may be best" if one.label in best else "worse"
        made[one.label] = Standing(
            mark=mark,
            p=0.3 if one.label in best else 0.01,
            behind_least=0.0 if one.label in best else max(0.0, gap - 0.08),
            behind_most=0.15 if one.label == leader else gap + 0.118,
            beats_random=True,
            alike=first.get(key, ""),
            **more,
        )
        first.setdefault(key, one.label)
    return made


def pick(
    use: Any, label: str, p50: float | None, times: float | None, least: float, most: float | None, **more: Any
) -> Pick:
    return Pick(
        **{
            "use": use,
            "label": label,
            "p50_ms": p50,
            "times_faster": times,
            "usd_per_million_documents": 0,
            "usd_per_thousand_queries": 0,
            "less_least": least,
            "less_most": most,
            "local": True,
            **more,
        }
    )


OUTLOOK = Outlook(rival="minilm+faiss", differing=19, unnoticed_below=0.1, gap=0.05, queries_for_gap=(45, 58))
PICKS = [
    pick("best", "granite+faiss", 3.84, None, 0, 0.15),
    pick("faster", "use+faiss", 1.74, 2.2, 0, 0.242),
    pick("fastest", "bm25", 0.072, 53.3, 0.001, 0.327),
]
BEST = ("granite+faiss", "granite+chroma", "minilm+faiss", "minilm+chroma", "use+faiss", "use+chroma")


def task(**more: Any) -> TaskInfo:
    return TaskInfo(
        **{
            "name": "wikipedia", "kind": "graded", "fingerprint": "0123456789abcdef", "documents": 25, "chunks": 25,
            "queries": 20, "rel": 2,
            "categories": ["geographic", "historical", "landmark", "administrative", "semantic"], **more,
        }
    )  # fmt: skip


def summary(rows: Sequence[Row], verdict: Verdict, **more: Any) -> Summary:
    floor = [baseline("oracle", 1.0), baseline("random", 0.27)]
    return Summary(
        **{
            "name": "wikipedia",
            "started": "2026-11-18T00:57:12+00:00",
            "seconds": 5.2,
            "lineup": {"task": "wikipedia", "depth": 100, "rounds": 3},
            "task": task(),
            "machine": MACHINE,
            "matrix_measures": list(MEASURES),
            "labels": LABELS,
            "rows": [*rows, *floor],
            "verdict": verdict,
            **more,
        }
    )


def verdict(rows: Sequence[Row], situation: Any, action: Any, take: str | None, **more: Any) -> Verdict:
    ran = [one for one in rows if one.ran]
    leader = max(ran, key=lambda one: one.measures["ndcg@10"].mean).label if ran else None
    best = more.pop("best_set", [leader] if leader else [])
    return Verdict(
        **{
            "measure": "ndcg@10",
            "leader": leader,
            "best_set": list(best),
            "situation": situation,
            "action": action,
            "take": take,
            "standings": standings(ran, best, leader or "") if ran else {},
            "outlook": OUTLOOK,
            **more,
        }
    )


KEYS = [
    lost(f"openai+{store}", lacking("key_unset", variables=["OPENAI_API_KEY"])) for store in ("faiss", "chroma", "x")
]
SERVERS = [
    lost(f"nomic+{store}", lacking("server_stopped", url="http://127.0.0.1:11434", command="ollama serve"))
    for store in ("faiss", "chroma")
]


def pair(a: str, b: str, difference: float, low: float, high: float) -> PairedDifference:
    return PairedDifference(
        a=a, b=b, difference=difference, low=low, high=high, p=0.01, p_holm=0.02, t_p=0.01, wilcoxon_p=0.01,
        effect=0.5, wins=12, ties=2, losses=6,
    )  # fmt: skip


def _against(rows: Sequence[Row], incumbent: str, low: Mapping[str, float]) -> dict[str, Standing]:
    by = {one.label: one for one in rows}
    base = by[incumbent].measures["ndcg@10"].mean
    made = {}
    for label, standing in standings(rows).items():
        gap = by[label].measures["ndcg@10"].mean - base
        name = label.partition("+")[0]
        relation: Any = "better" if name in low else "worse" if gap < -0.05 else "undecided"
        against = Against(
            difference=gap, low=low.get(name, gap - 0.1), high=gap + 0.06, p_better=0.1, p_worse=0.2, relation=relation
        )
        made[label] = replace(standing, against=None if label == incumbent else against)
    return made


def situations() -> dict[str, Summary]:
    """One result for each situation, by its name."""
    rows, many = models(), many_rows()
    times = {"hnswlib": 0.08, "faiss": 0.1, "faiss-sq8": 0.099, "chroma": 0.9, "duckdb_vss": 1.2}
    stores = [row(f"minilm+{name}", 0.798, search, 5) for name, search in times.items()]
    alike = {label: replace(s, alike="" if label == "minilm+hnswlib" else "minilm+hnswlib", mark="leads")
             for label, s in standings(stores).items()}  # fmt: skip
    parted = [replace(one, measures=one.measures | {"ndcg@10": Value(0.799, 0.7, 0.9)})
              if one.label == "minilm+faiss-sq8" else one for one in stores]  # fmt: skip
    loss = {label: replace(s, alike="" if label == "minilm+faiss-sq8" else s.alike) for label, s in alike.items()}
    lead = pair("granite+faiss", "minilm+faiss", 0.032, 0.011, 0.054)
    clear = verdict(rows, "clear", "take and stop", "granite+faiss", best_set=["granite+faiss", "granite+chroma"],
                    pairs=[lead], picks=PICKS)  # fmt: skip
    unsettled = verdict(rows, "not settled", "take for now", "granite+faiss", best_set=BEST, picks=PICKS)
    half = {label: replace(s, open=label.startswith(("minilm", "use", "tfidf", "fake", "wordllama")))
            for label, s in standings(rows, ["bm25"], "granite+faiss").items()}  # fmt: skip
    graded = [replace(one, bounds={"ndcg@10": Bounds(judged=0.49 + 0.01 * at, irrelevant=0.5, relevant=0.9)})
              for at, one in enumerate(rows)]  # fmt: skip
    beaten = verdict(rows, "incumbent beaten", "switch", "granite+faiss", baseline="bm25", picks=PICKS[:1],
                     standings=_against(rows, "bm25", {"granite": 0.012}))  # fmt: skip
    kept = verdict(rows, "incumbent kept", "keep", "minilm+faiss", baseline="minilm+faiss",
                   standings=_against(rows, "minilm+faiss", {}))  # fmt: skip
    low = [row("bm25", 0.318), row("tfidf+faiss", 0.301), row("fake+faiss", 0.28)]
    floor = {label: replace(s, beats_random=False) for label, s in standings(low).items()}
    hashed = [row("fake+faiss", 0.613), row("tfidf+faiss", 0.58), row("bm25", 0.55)]
    within = {label: replace(s, behind_most=0.028) for label, s in standings(rows, BEST, "granite+faiss").items()}
    near = [row("wordllama+faiss", 0.622, 0.016), row("tfidf+faiss", 0.496, 0.024)]
    near_task = task(name="neighbours", kind="reference", documents=54, queries=54, reference="minilm", categories=[])
    rho = OwnColumn(head="Spearman ρ", values={"wordllama+faiss": 0.687, "tfidf+faiss": 0.526})
    nearest = verdict(near, "clear", "take and stop", "wordllama+faiss",
                      pairs=[pair("tfidf+faiss", "wordllama+faiss", -0.126, -0.164, -0.092)])  # fmt: skip
    few = [row("minilm+faiss", 0.983, 0.1, 5.3), row("tfidf+faiss", 0.975, 0.071), row("wordllama+faiss", 0.969, 0.14)]
    few_verdict = verdict(
        few, "too few differ", "take for now", "minilm+faiss", best_set=[one.label for one in few],
        outlook=Outlook(rival="tfidf+faiss", differing=4, unnoticed_below=None, gap=0.05, queries_for_gap=None),
    )  # fmt: skip
    coverage = OwnColumn(
        head="Coverage@10",
        quantity="count",
        of=60,
        values={"minilm+faiss": 31, "tfidf+faiss": 30, "wordllama+faiss": 31},
    )
    precise = OwnColumn(head="eligibility precision", values=dict.fromkeys([one.label for one in few], 1 / 9))
    profiles = task(
        name="scholarships", kind="profiles", documents=60, queries=10, unit="profile", item="item", categories=[]
    )
    return {
        "not-settled": summary([*rows, *KEYS, *SERVERS], unsettled),
        "clear": summary(rows, clear),
        "within-margin": summary(rows, verdict(rows, "within margin", "take and stop", "granite+faiss", best_set=BEST,
                                               standings=within, picks=PICKS), task=task(queries=300)),
        "open-until-graded": summary(graded, verdict(graded, "open until graded", "take for now", "granite+faiss",
                                     best_set=["granite+faiss", "bm25"], standings=half, picks=PICKS[:1],
                                     turning=[PossibleWinner(challenger="minilm+faiss", documents=8)])),
        "incumbent-beaten": summary(rows, beaten),
        "incumbent-kept": summary(rows, kept),
        "incumbent-lost": summary(rows, verdict(rows, "incumbent did not run", "do not choose", None,
                                                baseline="openai+faiss", best_set=BEST)),
        "below-random": summary(low, verdict(low, "nothing beats random", "do not choose", None, standings=floor)),
        "only-a-baseline": summary(hashed, verdict(hashed, "only a baseline leads", "do not choose", None,
                                                  outlook=None)),
        "all-alike": summary(stores, verdict(stores, "all alike", "choose by speed", None, standings=alike)),
        "one-store-differs": summary(parted, verdict(parted, "too few differ", "take for now", "minilm+faiss-sq8",
                                                     best_set=[one.label for one in parted], standings=loss)),
        "one-row": summary(rows[2:3], verdict(rows[2:3], "one row", "none", "granite+faiss")),
        "nothing-ran": summary(KEYS, verdict(KEYS, "nothing ran", "none", None)),
        "too-few-differ": summary(few, few_verdict, name="scholarships", task=profiles,
                                  own_columns=[coverage, precise]),
        "reference": summary(near, nearest, name="neighbours", task=near_task, own_columns=[rho],
                             labels=LABELS | {"ndcg@10": "fidelity@10"}),
        "many-rows": summary(many, many_verdict(many), name="many-rows", seconds=14),
    }  # fmt: skip


LONG = "a-very-long-label-of-a-fusion-of-several-dense-models-and-bm25-rrf"


def many_rows() -> list[Row]:
    """A long label, three models at several dimensions and precisions, each in two stores."""
    sizes = [f"{size}{kind}" for size in (64, 128, 256, 384) for kind in ("", "-int8", "-binary")]
    names = [f"{model}@{size}" for model in ("minilm", "wordllama", "fake") for size in sizes]
    rows = [row(LONG, 0.803, 4.2)]
    for at, name in enumerate(names[:33]):
        rows += in_two_stores(name, round(0.79 - 0.013 * at, 3), 3.6 if name.startswith("minilm") else 0.06)
    return [*rows, row("bm25", 0.61, 0.073)]


def many_verdict(rows: Sequence[Row]) -> Verdict:
    best = [one.label for one in rows[:25]]
    made = standings(rows, best, LONG)
    made |= {
        label: replace(s, alike="minilm@64+faiss") for label, s in made.items() if label.startswith("minilm@64-int8")
    }
    made |= {label: replace(s, beats_random=False) for label, s in made.items() if label.startswith("fake@64")}
    picks = [pick("best", LONG, 4.2, None, 0, 0.21), pick("faster", "wordllama@64+faiss", 0.1, 41.2, 0, 0.297)]
    return verdict(rows, "not settled", "take for now", LONG, best_set=best, standings=made, picks=picks)
