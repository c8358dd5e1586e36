"""The words of this extension's facts (`bakeoff.report.words`)."""

from __future__ import annotations

from collections.abc import Sequence

from bakeoff.report.words import Words


def _snapshot(snapshot: str, items: int, weights_from: str | None, similarity: float, keywords: float) -> str:
    return (
        f"Snapshot {snapshot}: {items} items. Weights from {weights_from or 'the task file'}: "
        f"similarity {similarity:g}, keywords {keywords:g}."
    )


def _say_violation(label: str, profile: str, item: str, reasons: Sequence[str]) -> str:
    return f"{label}: {profile} got {item}, though {', '.join(reasons)}"


def _say_nothing_eligible(profiles: Sequence[str]) -> str:
    return f"Nothing is eligible for {', '.join(profiles)}: the list is empty."


def _say_without_label(profiles: Sequence[str]) -> str:
    return f"no label, so left out of all means: {', '.join(profiles)}"


def _say_left_out(profiles: Sequence[str]) -> str:
    return f"the matrix omits {', '.join(profiles)}: some rows have no label for them"


def _say_order_changed(labels: Sequence[str]) -> str:
    return f"{', '.join(labels)}: the ranking changed between two rounds on the same snapshot"


def _by_profile_meaning(k: int, mode: str) -> str:
    return f"{WORDS['not_labelled']}: no item is labelled. NDCG@{k} is by {mode} labels."


def _cluster(name: str) -> str:
    return name.capitalize()


def _explain_ordered_lists(length: int) -> str:
    return (
        f"Hits@K is the share of the list's {length} items among the first K. The item at rank p has grade "
        f"{length + 1} − p and gain 2^grade − 1. Candidates are all other items. Random is the exact expectation. The "
        "matrix above judges every row by the overall lists; fusions are judged by these only."
    )


def _explain_gain(binary: bool) -> str:
    if binary:
        return "NDCG weights all true neighbours equally."
    return "NDCG grades true neighbours by rank: k for the first, 1 for the last."


def _random_and_majority(classes: int, mrr: float, trained: bool) -> str:
    source = "training" if trained else "the samples themselves, which overstates it"
    return (
        f"random: exact expectation over {classes} classes, MRR = H_n / n = {mrr:.4f}. "
        f"majority: classes by their frequency in {source}."
    )


WORDS: Words = {
    "items": "items",
    "k": "k",
    # ordered
    "by_k": "Spaces against their own lists",
    "space": "Space",
    "list": "list",
    "any_list": "any",
    "upper_k": "K",
    "hits_at_k": "Hits@K",
    "mrr_at_k": "MRR@K",
    "ndcg_at_k": "NDCG@K (exponential gain)",
    "ordered_lists": _explain_ordered_lists,
    "by_facet": "{measure} against every list",
    "by_cluster": "{measure} by {cluster}, against the overall lists",
    "cluster": _cluster,
    # single
    "one_right_answer": "One right answer",
    "model": "Model",
    "accuracy": "Acc@{k} %",
    "weighted_f1": "weighted F1",
    "seeds": "seeds",
    "pessimistic_ties": (
        "Ties are pessimistic: items with the right answer's score rank above it. With several seeds: "
        "mean ± standard deviation (n − 1) over them."
    ),
    "random_and_majority": _random_and_majority,
    "seed_tests": "Paired t-test over seeds ({measure})",
    "against": "against",
    "mean_difference": "mean difference",
    "seed_p": (
        "Not corrected for the number of pairs, unlike the verdict above, which tests over samples. If every seed has "
        "the same difference, p is that of a sign test, which needs six seeds to be below 0.05."
    ),
    # reference
    "neighbours": "Neighbours of {reference} reproduced",
    "neighbours_meaning": (
        "Mean ± standard deviation (n − 1) over {queries} sampled items (seed {seed}). At each k the truth is the "
        "exact top k of {reference} without the item, so recall is overlap / k. MAP divides by the true neighbours "
        "that were found, or by all k of them."
    ),
    "gain": _explain_gain,
    "improvement": "Relative improvement over {base}",
    "relative": "A mean divided by that of the base, minus 1.",
    "base_did_not_run": "{base} did not run.",
    "similarities": "Similarities against {reference}'s",
    "similarities_meaning": "Cosine of the same sampled pairs of documents under both models.",
    "spearman": "Spearman ρ",
    "mae": "MAE",
    "pairs": "pairs",
    "validation": "Validation pairs",
    "validation_meaning": "Cosine of each given pair against its target.",
    "validation_failed": "{label}: {reason}",
    # profiles
    "profiles": "Recommendations",
    "rule_violations": "rule violations",
    "coverage": "Coverage@{k}",
    "coverage_share": "of all items",
    "amount_mean": "amount mean",
    "amount_median": "median",
    "amount_max": "max",
    "stable": "stable",
    "same_order": "yes",
    "other_order": "NO",
    "one_round": "one round only",
    "eligibility": (
        "Eligibility precision {precision:.3f}: the share of the items that a profile is eligible for, mean over "
        "{profiles} profiles."
    ),
    "snapshot": _snapshot,
    "items_without_key": "{count} of {items} items have no {key}; vectors are looked up by text.",
    "foreign_keys": "The {key} of {count} of {items} items is not Bakeoff's; vectors are looked up by text.",
    "no_weights": "There is no {file}; the weights are those of the task file.",
    "violation": _say_violation,
    "label_modes": "NDCG@{k} by label mode, over profiles with a label",
    "change": "change",
    "calibrated": "calibrated threshold",
    "proxy_labels": (
        "Proxy labels share features with the ranker (keywords, and in hybrid mode the similarity itself), so a high "
        "NDCG shows agreement with them, not with people."
    ),
    "moved": "Between the two label modes NDCG@{k} differs by up to {most:.3f}.",
    "thresholds": (
        "Calibrated thresholds are shown, never applied: the median over profiles of the similarity that leaves the "
        "top 25% of the items without a common keyword (--set calibrate_thresholds=true)."
    ),
    "shut_out": "Why items were excluded",
    "reason": "Reason",
    "profile_items": "profile × item",
    "eligible": "Eligible items per profile: {least} to {most}.",
    "nothing_eligible": _say_nothing_eligible,
    "by_profile": "Profile by profile",
    "profile": "Profile",
    "eligible_items": "eligible",
    "eligibility_precision": "eligibility precision",
    "ndcg_of": "NDCG@{k} {label}",
    "mean": "mean",
    "by_profile_meaning": _by_profile_meaning,
    "not_labelled": "N/A",
    "without_label": _say_without_label,
    "left_out": _say_left_out,
    "order_changed": _say_order_changed,
}
