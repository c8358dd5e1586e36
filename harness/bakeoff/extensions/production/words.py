"""The words of this extension's facts (`bakeoff.report.words`)."""

from __future__ import annotations

from collections.abc import Sequence

from bakeoff.core.printable import pluralise
from bakeoff.report.words import WEIGHTED, Words

MEANINGS = {
    "same": "The difference is within the noise.",
    "other dimension": "The dimension changed. Stored vectors can't be searched with the new ones.",
    "other norm": "Norms changed, directions did not. Cosine similarity is unaffected, inner products are not.",
    "rotated": "Vectors were rotated; angles between texts are unchanged. Embed stored texts again.",
    "noisier": "Mean vectors are unchanged, but calls differ more from each other.",
    "quantised": "Vectors now have few distinct values, as quantised ones do.",
    "nearly the same": "Vectors moved a little. Possible causes: a quantised or converted model, truncated long texts.",
    "far apart": "Embed stored texts again. Possible causes: another model, another prompt, truncated texts.",
}


def _interval(low: float | None, high: float | None, text: str) -> str:
    """Empty without an interval, as for a single query."""
    return "" if low is None or high is None else text.format(low=low, high=high)


def _canary_change(way: str, changed: bool, texts: int, size: float | None, limit: float | None) -> str:
    finding = f"Changed ({way})" if changed else "Unchanged"
    if size is None or limit is None or way == "other dimension":
        return f"{finding}."
    return (
        f"{finding}: mean vectors of {texts} texts differ by {size:.3g} noise floors; noise alone exceeds {limit:.3g} "
        "once in 200 checks."
    )


def _canary_noise(noise: float, recorded: int, now: int, ratio: float, cosine: float, worst: float) -> str:
    return (
        f"Noise floor {noise:.2g} of a vector's norm; {now} calls now are {ratio:.2g} times as noisy as the {recorded} "
        f"recorded; cosine {cosine:.6f}, worst {worst:.6f}."
    )


def _canary_meaning(way: str) -> str:
    return MEANINGS.get(way, way)


def _canary_effect(
    task: str, k: int, overlap: float, measure: str, before: float, after: float, low: float | None,
    high: float | None, weighting: str | None,
) -> str:  # fmt: skip
    change = _interval(low, high, " (95% interval of the change {low:+.4f} to {high:+.4f})")
    return (
        f"{task}, with today's queries over the recorded documents: top-{k} overlap {overlap:.3f}, {measure} "
        f"{before:.4f} → {after:.4f}{change}{f' ({WEIGHTED})' if weighting else ''}."
    )


def _canary_recorded(texts: int, calls: int, documents: int, task: str | None, file: str) -> str:
    of_task = f", and {documents} documents of {task}" if task else ""
    return f"Recorded {texts} texts in {calls} calls{of_task}; written to {file}."


def _probe_recall(k: int, recall: float, low: float | None, high: float | None, lost_half: int) -> str:
    interval = _interval(low, high, " (95% interval {low:.4f} to {high:.4f})")
    return f"Recall@{k} against exact search: {recall:.4f}{interval}; below 0.5 for {pluralise(lost_half, 'query')}."


def _probe_times(p50: float | None, p95: float | None) -> str:
    known = [f"{name} {value:.2f} ms" for name, value in (("p50", p50), ("p95", p95)) if value is not None]
    return f"Search latency: {', '.join(known)}."


def _probe_limit(worse: bool, limit: float) -> str:
    return f"Recall is {'below' if worse else 'not below'} the limit of {limit:g}."


def _log_rows(rows: int, users: int, queries: int, once: int) -> str:
    by = f" by {users} users" if users else ""
    return f"{rows} searches{by}, {queries} distinct queries; {once} of these occur once."


def _log_dropped(rows: int, kind: str, example: str) -> str:
    return f"Dropped {pluralise(rows, 'row')}: {kind}{f' (such as {example!r})' if example else ''}."


def _clicks(lists: int, pairs: int, model: str) -> str:
    how = "position-based click model" if model == "position" else "click-through rate, not corrected for position bias"
    return f"{lists} lists, {pairs} pairs of query and document; {how}."


def _examination(by_rank: Sequence[float]) -> str:
    return f"Examination by rank, relative to the first: {', '.join(f'{value:.2f}' for value in by_rank)}."


def _click_grades(judged: int, sure: float, by_grade: Sequence[int], unjudged: int, between: int) -> str:
    grades = ", ".join(f"grade {grade}: {pairs}" for grade, pairs in enumerate(by_grade))
    return (
        f"{judged} pairs have a grade with a probability of at least {sure:.0%} ({grades}); {unjudged} stay unjudged, "
        f"{between} of them between two grades."
    )


def _weighted_mean(label: str, mean: float, low: float | None, high: float | None, unweighted: float) -> str:
    interval = _interval(low, high, " ({low:.4f} to {high:.4f})")
    return f"{label}: {mean:.4f}{interval}; unweighted {unweighted:.4f}."


def _weighted_pair(
    a: str, b: str, significant: bool, p_holm: float, difference: float, low: float | None, high: float | None,
    logarithms: bool,
) -> str:  # fmt: skip
    verdict = "differ" if significant else "do not differ significantly"
    return f"{a} and {b} {verdict}: {_difference(difference, low, high, logarithms)}, p (Holm) = {p_holm:.2g}."


def _difference(difference: float, low: float | None, high: float | None, logarithms: bool) -> str:
    interval = _interval(low, high, " [{low:+.4f}, {high:+.4f}]")
    return f"{difference:+.4f}{interval}{' in logarithms' if logarithms else ''}"


def _migration(old: str, new: str, measure: str, queries: int, weighted: bool, documents: int) -> str:
    over = f"{measure} over {queries} queries{f' ({WEIGHTED})' if weighted else ''}"
    return f"{old} → {new}: {over}; costs are for {documents} documents."


def _about(way: str, share: float = 0.0, queries: str = "", pairs: int = 0) -> str:
    """A way to migrate."""
    return {
        "old": "current index",
        "new": "embed everything again, then switch",
        "mixed": f"one index, {share:.0%} new vectors, {queries} queries",
        "parts": f"{share:.0%} in a second index, each searched with its own model, fused by rank",
        "mapped": f"new queries on the old index, mapped from {pairs} pairs",
        "both": "both indexes, two searches, fused by rank",
    }.get(way, way)


def _way(
    way: str, mean: float, tokens: float, dollars: float | None, hours: float | None, bytes: float, share: float = 0.0,
    queries: str = "", pairs: int = 0, difference: float | None = None, low: float | None = None,
    high: float | None = None, logarithms: bool = False, p: float = 1.0, holm: bool = False,
) -> str:  # fmt: skip
    about, gap = _about(way, share, queries, pairs), ""
    if difference is not None:
        name = "p (Holm)" if holm else "p"
        gap = f" ({_difference(difference, low, high, logarithms)}, {name} = {p:.2g})"
    costs = []
    if tokens:
        costs = [f"{tokens:,.0f} tokens", "price unknown" if dollars is None else f"${dollars:,.2f}"]
        costs += [f"{hours:,.1f} hours at the rate limit"] if hours is not None else []
        costs += [f"{_size(bytes)} in addition to the old index"] if bytes else []
    return f"{about}: {mean:.4f}{gap}{'; ' if costs else ''}{', '.join(costs)}."


def _better_way(
    way: str, difference: float, p_holm: float, share: float = 0.0, queries: str = "", pairs: int = 0
) -> str:
    return (
        f"Better than the old index: {_about(way, share, queries, pairs)} ({difference:+.4f}, p (Holm) = {p_holm:.2g})."
    )


def _queries_needed(gap: float, least: int, most: int, unit: str) -> str:
    return (
        f"To detect a gap of {gap:g} takes {f'{least:,} to {most:,}' if least < most else f'about {least:,}'} {unit}."
    )


def _mixed_index(way: str, share: float, queries: str, mean: float) -> str:
    return (
        f"Do not mix both models' vectors in one index: the score falls to {mean:.4f} ({_about(way, share, queries)})."
    )


def _in_parts(way: str, share: float, mean: float) -> str:
    return f"To migrate in steps, search both parts: the lowest score is {mean:.4f} ({_about(way, share)})."


def _map(way: str, pairs: int, gain: float, worth: bool) -> str:
    verdict = "useful while the new index is being built" if worth else "no significant gain, so not worth it"
    return f"Interim map ({_about(way, pairs=pairs)}): {gain:+.4f} compared with the old index, {verdict}."


def _both_indexes(better: bool, gap: float, bytes: float) -> str:
    if better:
        return f"Both indexes fused are better still ({gap:+.4f}), for two searches and {_size(bytes)} more."
    return f"Keeping both indexes shows no gain over the new one alone ({gap:+.4f})."


def _size(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def _arm_difference(
    control: str, treatment: str, difference: float, low: float, high: float, alpha: float, p: float, sequential: bool
) -> str:
    valid = "valid at every look" if sequential else "valid for one planned look"
    return (
        f"{treatment} minus {control}: {difference:+.4f} ({100 * (1 - alpha):g}% interval {low:+.4f} to {high:+.4f}, "
        f"clustered by user, {valid}; p = {p:.2g})."
    )


def _treatment(treatment: str, better: bool) -> str:
    return f"{treatment} is {'better' if better else 'worse'}."


def _votes(users_for_b: int, users_for_a: int, users_even: int, p: float, once: bool) -> str:
    test = "exact sign test, for one look" if once else "valid at every look"
    return (
        f"b won more queries for {pluralise(users_for_b, 'user')}, a for {users_for_a}; {users_even} are even "
        f"(p = {p:.2g}, {test})."
    )


def _preference(preference: float, low: float, high: float, alpha: float) -> str:
    return (
        f"Preference for b: {preference:+.4f} ({100 * (1 - alpha):g}% interval {low:+.4f} to {high:+.4f}), the share "
        "of users for b minus the share for a, without even ones."
    )


def _no_preference(planned: float, more_users: int | None, more_queries: int | None) -> str:
    if more_users is None:
        return "No significant preference yet."
    if more_users == 0:
        return f"No significant preference. One of {planned:g} would show in 4 of 5 such logs."
    needed = f"about {more_users:,} more users ({more_queries:,} queries)"
    return f"No significant preference yet. To see one of {planned:g} takes {needed}."


WORDS: Words = {
    "dry_run": "Dry run; no request was sent.",
    # canary
    "canary_recording": "{provider} {model}, recorded {recorded}.",
    "canary_change": _canary_change,
    "canary_noise": _canary_noise,
    "canary_meaning": _canary_meaning,
    "canary_effect": _canary_effect,
    "canary_recorded": _canary_recorded,
    # probe
    "probe_index": (
        "{store} {index}: {entries} entries, {dimensions} dimensions, metric {metric}; {queries} queries from {source}."
    ),
    "probe_recall": _probe_recall,
    "probe_times": _probe_times,
    "probe_limit": _probe_limit,
    "probe_remedy": "Rebuild the index, or raise ef_search or probes; `bakeoff sweep` shows what that costs.",
    "probe_stored_queries": (
        "Stored vectors usually overestimate recall. Use real queries with --log, --task or --vectors."
    ),
    # log
    "log_rows": _log_rows,
    "log_days": "From {first} to {last}.",
    "log_dropped": _log_dropped,
    "clicks": _clicks,
    "examination": _examination,
    "click_grades": _click_grades,
    "replay": (
        "{queries} queries: overlap@{k} {overlap:.3f}, RBO {rbo:.3f}; {same:.0%} of traffic gets the same documents."
    ),
    "changed_most": "Changed most: {query!r} (overlap {overlap:.2f}, RBO {rbo:.2f}).",
    "pairs_to_grade": "{pairs} pairs are in only one list and worth grading; written to {file}.",
    "sample": "{rows} searches, {queries} distinct queries; {drawn} drawn with seed {seed}.",
    "stratum": "{name}: {queries} queries make {traffic:.0%} of the traffic; {drawn} drawn.",
    "grade_sample": "Grade these queries and run the task; its means are weighted by traffic.",
    "weighted_means": "Traffic-weighted {measure}, estimated from {queries} sampled queries:",
    "weighted_mean": _weighted_mean,
    "weighted_pair": _weighted_pair,
    # migrate
    "migration": _migration,
    "way": _way,
    "better_way": _better_way,
    "switch": "Switch to {new}: build its index alongside the old one, then switch queries and index together.",
    "switch_unproven": "Do not switch to {new} alone: this task does not show whether it is better or worse.",
    "switch_worse": "Do not switch to {new} alone: it is worse on this task.",
    "queries_needed": _queries_needed,
    "mixed_index": _mixed_index,
    "dimensions_differ": "The dimensions differ, so the two models' vectors can't share an index.",
    "in_parts": _in_parts,
    "map": _map,
    "both_indexes": _both_indexes,
    # ab
    "arm": "{arm}: {metric} {mean:.4f} over {sessions} sessions of {users} users.",
    "users_in_both_arms": "Excluded {users} users who saw both arms: check how users are assigned.",
    "split_mismatch": (
        "Users did not arrive in the planned proportions (p = {p:.1g}). Some were lost or counted twice, so the "
        "difference below is unreliable."
    ),
    "heavy_user": (
        "{arm}: one user has {share:.0%} of the sessions, so {users} users count as {effective:.0f}. Is it a bot or a "
        "shared account?"
    ),
    "too_few_users": "Too early to look: each arm needs at least {needed} users.",
    "no_spread_yet": "Too early to look: all users of an arm are alike.",
    "arm_difference": _arm_difference,
    "treatment": _treatment,
    "stopped_early": "An experiment that stops at its first significant result overstates the difference.",
    "no_difference_no_spread": "No significant difference: all users of an arm are alike.",
    "no_difference": (
        "No significant difference. A log like this detects one of {detectable:.4f} {power:.0%} of the time."
    ),
    # interleave
    "interleaved": "{queries} queries from {users} users: b won {wins}, {ties} tied, a won {losses}.",
    "votes": _votes,
    "preference": _preference,
    "preferred": "Users prefer {better}.",
    "no_preference": _no_preference,
}
