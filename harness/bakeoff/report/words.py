"""The text of facts: one template or function per id.

A template is filled with the fact's arguments; a function gets them by name. Extensions define their own (`WORDS` in
`__init__`: name → place).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from bakeoff_providers.errors import Missing, place_words
from bakeoff_providers.prices import Price

from bakeoff.core.extensions import collect_entries, load_place
from bakeoff.core.facts import Fact, Failure
from bakeoff.core.printable import join_names, pluralise

Words = Mapping[str, str | Callable[..., str]]

WEIGHTED = "queries weighted by traffic"

PARTS = {
    "kind_tables": "the tables of this kind of task",
    "second_stages": "the table of second stages",
    "tuned_weights": "the table of tuned weights",
    "task_warnings": "the warnings about this task",
    "possible_winners": "the pairs that may turn the verdict",
    "unjudged": "the table of unjudged documents",
    "breakdowns": "the tables by language and length",
    "trec_commands": "the commands for trec_eval",
    "baselines": "the rows `oracle` and `random`",
    "verdict": "the verdict",
    "figures": "the figures",
    "titles": "the titles of documents",
    "details": "the details of queries",
    "all_scores": "the scores of all queries",
    "index_loss": "the comparison with exact search",
    "looks": "the search for earlier looks",
}


def words(fact: Fact) -> str:
    """A fact as text; the id and arguments if no text is defined."""
    extension, _, name = fact.id.rpartition(".")
    known = (_words_of(extension) if extension else WORDS).get(name)
    try:
        if known is not None:
            return known.format(**fact.arguments) if isinstance(known, str) else known(**fact.arguments)
    except (KeyError, TypeError, ValueError):  # a fact of another version has other arguments
        pass
    return _plainly(fact)


def failure_words(failure: Failure) -> str:
    """Why a contender has no figures, on one line. A library's error starts with its type."""
    if failure.lacks:
        return "; ".join(dict.fromkeys(map(_lack_words, failure.lacks)))
    raised = failure.error if failure.kind == "raised" else ""
    said = ": ".join(part for part in (failure.file, place_words(failure.place), raised, failure.text) if part)
    return f"{said} ({failure.remedy})" if failure.remedy else said


def _lack_words(fact: Fact) -> str:
    named = {
        name: value if isinstance(value, str) else [str(one) for one in value]
        for name, value in fact.arguments.items()
        if isinstance(value, str | Sequence)
    }
    try:
        return Missing(fact.id, named).text
    except KeyError:  # of another version
        return _plainly(fact)


def price_words(price: Price | None) -> str:
    """A list price and its date."""
    return f"${price.usd_per_million_tokens:g} a million tokens, seen {price.seen}" if price else ""


@cache
def _words_of(extension: str) -> Words:
    place = collect_entries("WORDS").get(extension)
    words_of_it: Words = load_place(place) if place else {}
    return words_of_it


def _plainly(fact: Fact) -> str:
    arguments = ", ".join(f"{name} = {value}" for name, value in fact.arguments.items())
    return f"{fact.id} ({arguments})" if arguments else fact.id


def some_of(names: Sequence[str], count: int) -> str:
    """The listed names and the number of others."""
    return ", ".join(names) + (f" and {count - len(names)} more" if count > len(names) else "")


def _no_prompts(model: str, document_prompt: str, query_prompt: str) -> str:
    prompts = f"{{ document_prompt = {document_prompt!r}, query_prompt = {query_prompt!r} }}"
    return f"{model} was trained with prompts but has none here; set options = {prompts}"


def _too_long(model: str, long: int, texts: int, estimated: bool, tokens: int, chunk_size: int, chunk_unit: str) -> str:
    chunking = f'chunking = {{ strategy = "recursive", size = {chunk_size}, unit = "{chunk_unit}" }}'
    return (
        f"{'about ' if estimated else ''}{long} of {texts} texts are longer than the {tokens} tokens that {model} "
        f"reads, and are truncated; an extra [[contender]] with {chunking} shows whether chunks do better"
    )


def _weights_as_given(labels: Sequence[str]) -> str:
    flatters = "if they were tuned on these queries, the scores are too high"
    return f"the fusion weights of {join_names(labels)} come from the line-up; {flatters}"


def _token_vectors(vectors: int, texts: int, size: int, size_of_one_each: int) -> str:
    return (
        f"{vectors / texts:,.0f} vectors per text: {vectors:,} vectors, {size:,} bytes as float32, compared with "
        f"{size_of_one_each:,} for one vector per text"
    )


def _unmatched(queries: int) -> str:
    return f"{pluralise(queries, 'query')} matched no document"


def _unanswered(count: int, queries: int, seconds: float) -> str:
    return f"gave no answer to {count:,} of {pluralise(queries, 'query')} within {seconds:g} s; they score 0"


def _censored_times(seconds: float, percentiles: Sequence[str]) -> str:
    names = join_names(percentiles)
    return f"{names} may be higher; the wait for answers ended after {seconds:g} s"


def _duplicates(count: int, documents: Sequence[str], originals: Sequence[str]) -> str:
    pairs = [f"{document} = {original}" for document, original in zip(documents, originals, strict=True)]
    return f"{count} duplicate documents ({some_of(pairs, count)}): keep one of each, or grade both alike"


def _index_lacks(count: int, documents: int, named: Sequence[str]) -> str:
    return f"the index lacks {count} of the task's {documents} documents: {some_of(named, count)}"


def _refused_metadata(store: str, count: int, fields: Sequence[str]) -> str:
    return f"{store} refuses some metadata, which was left out: {some_of([repr(name) for name in fields], count)}"


def _k_beyond_corpus(measures: Sequence[str], documents: int) -> str:
    return f"{', '.join(measures)}: k is larger than the corpus ({documents} documents)"


def _k_beyond_depth(measures: Sequence[str], depth: int | None) -> str:
    return f"{', '.join(measures)}: k is larger than depth = {depth}: raise depth"


def _dated_measures(measures: Sequence[str], dated: int, queries: int) -> str:
    return f"{', '.join(measures)}: computed over the {dated} of {queries} queries with an as_of date"


def _without_relevant(queries: Sequence[str]) -> str:
    return f"no document is relevant for {', '.join(queries)}: every contender scores 0 there"


def _unknown_key(file: str, key: str, entries: str, count: int) -> str:
    kept = f" in {pluralise(count, 'entry')} of {entries}, kept as metadata" if entries else ""
    return f"{file}: unknown key {key!r}{kept}"


def _wrong_counts(file: str, count: int, categories: Sequence[str], given: Sequence[int], found: Sequence[int]) -> str:
    wrong = [
        f"{name} {said} ({pluralise(there, 'query')})"
        for name, said, there in zip(categories, given, found, strict=True)
    ]
    return f"{file}: wrong counts in categories: {some_of(wrong, count)}"


def _unknown_graded(file: str, count: int, queries: Sequence[str], documents: Sequence[str]) -> str:
    return f"{file}: {pluralise(count, 'id')} without an article, left out: {_pairs(count, queries, documents)}"


def _expected_below(file: str, rel: int, count: int, queries: Sequence[str], documents: Sequence[str]) -> str:
    return f"{file}: expected, but graded below {rel}; the grade counts: {_pairs(count, queries, documents)}"


def _pairs(count: int, queries: Sequence[str], documents: Sequence[str]) -> str:
    return some_of([f"{query} {document}" for query, document in zip(queries, documents, strict=True)], count)


def _not_made(part: str, reason: str) -> str:
    return f"{PARTS.get(part, part)} could not be made ({reason})"


def _unpinned(datasets: Sequence[str]) -> str:
    return f"{', '.join(datasets)}: no revision is given, so the data may change; set revision in the task"


def _resumed(draft: str, whole: bool) -> str:
    if whole:
        return f"an earlier run measured everything; making the result from {draft} without new requests"
    return f"resuming from {draft}: finished rankings are reused, and all rows are timed again"


def _words_band(low: int, high: int | None, queries: int) -> str:
    return f"{low}–{high} words ({queries})" if high else f"{low} words or more ({queries})"


def _judged_share(share: str, places: int) -> str:
    first = "place" if places == 1 else f"{places} places"
    return f"{share}: the graded share of the matching documents in the first {first}."


def _unjudged_scores(measure: str, condensed: bool) -> str:
    head = (_SCORE_CONDENSED if condensed else _SCORE_IF_IRRELEVANT).format(measure=measure)
    counted_as = "removes the others from the rankings" if condensed else "counts the others as irrelevant"
    return (
        f"{head}: the score of the matrix, which {counted_as}. "
        "if relevant: the score if every one of them had the highest grade that was given."
    )


def _short_lists(queries: int) -> str:
    return f"{pluralise(queries, 'query')} returned fewer results than there are documents"


def _ranks_unlike(label: str, query: str, place: int, expected: str, got: str) -> str:
    """Two exact rows with the same vectors that rank differently."""
    return (
        f"ranks differently from {label}, which also searches these vectors exactly: query {query}, place {place} has "
        f"{got or 'nothing'} instead of {expected or 'nothing'}"
    )


def _other_model(asked: str, answered: Sequence[str]) -> str:
    return f"{asked} was requested, but the service reports {join_names(answered)}"


def _nothing_relevant(count: int, queries: Sequence[str]) -> str:
    return (
        f"no document is relevant for {pluralise(count, 'query')} ({some_of(queries, count)}), where every score is 0"
    )


def _run_lacks(run: str, count: int, named: Sequence[str], of: int) -> str:
    return (
        f"{run} lacks {count} of {pluralise(of, 'query')} ({some_of(named, count)}), which score 0; --answered leaves "
        "them out, as trec_eval does"
    )


def _run_unjudged(run: str, count: int, named: Sequence[str]) -> str:
    are = "is" if count == 1 else "are"
    return f"{run} has {pluralise(count, 'query')} without judgments ({some_of(named, count)}), which {are} not scored"


def _other_texts_or_categories(tasks: Sequence[str]) -> str:
    return f"different texts or categories: the tasks are {' and '.join(tasks)}"


def _no_scores(file: str, problem: str, remedy: str) -> str:
    said = f"{file}: {problem}" if file else problem
    return (
        f"{said} ({remedy})" if remedy else said
    ) + "; use --contender NAME to check one contender, or --contender NEW=OLD if it was renamed"


def _history_results(count: int, first: str, last: str) -> str:
    if first == last:
        return f"{pluralise(count, 'result')} of {last[:10]}, {last[11:19]}."
    if first[:10] == last[:10]:
        return f"{pluralise(count, 'result')} of {last[:10]}, from {first[11:19]} to {last[11:19]}."
    return f"{pluralise(count, 'result')} from {first[:10]} to {last[:10]}."


def _history_change(then: str, now: str, change: float) -> str:
    since = then[11:19] if then[:10] == now[:10] else then[:10]
    moved = "is unchanged" if abs(change) < 5e-4 else f"changed by {change:+.3f}".replace("-", "−")
    return f"It {moved} since {since}, the last result on the same task."


def _changed_between(when: str, changes: Sequence[str]) -> str:
    return f"{when}: {'; '.join(changes)}."


def _not_compared(labels: Sequence[str], result: str) -> str:
    return f"Not compared: {join_names(labels)}, only in {result}."


_SCORE_CONDENSED, _SCORE_IF_IRRELEVANT = "{measure} without them", "{measure} if irrelevant"

WORDS: Words = {
    "quote": "{text}",
    "written": "Written to {file}.",
    # of timings
    "busy": "the machine was busy (load {load:.1f} on {cores} cores); rerun when it is idle",
    "few_samples": "too few samples for p95 ({samples}, {needed} needed); raise --rounds",
    "scattered_times": "{stage} times are noisy (p95 > {times} × p50); close other programs or raise --rounds",
    "censored_times": _censored_times,
    "untimed_second_stage": (
        "the second stage was not timed, because its scores were cached; --no-cache times it and pays again"
    ),
    "untimed_parts": "embedding was not timed, because the row's parts already had the query vectors",
    "untimed_embedding": (
        "embedding was not timed, because the query vectors were cached; --time-hosted 20 times it and pays again"
    ),
    # of pairs
    "few_differ": (
        "only {differing} of {queries} queries differ from the most frequent difference; interval and p may be "
        "too optimistic"
    ),
    "skewed": "the differences are strongly skewed ({skew:+.1f}) for {queries} queries; p may be too small",
    # of rows
    "no_revision": "{model}: its code has no revision, so its vectors are not cached; give it one",
    "no_prompts": _no_prompts,
    "too_long": _too_long,
    "changed_vectors": "the server's vectors differ from the cached ones (cosine below 0.99); run with --no-cache",
    "other_model": _other_model,
    "sent_errors": "the service sent an error with complete data; the data was used",
    "vector_lengths": (
        "vectors arrive with lengths from {shortest:.2f} to {longest:.2f} and are normalised here; in production, "
        "a store that uses inner product needs normalised vectors too"
    ),
    "given_vectors": "{count} of {documents} item vectors come from {file}",
    "token_vectors": _token_vectors,
    "unanswered": _unanswered,
    "truncated": "{texts} texts exceeded the model's context and were truncated",
    "unmatched": _unmatched,
    "unstable": "ranked differently between rounds; its scores are means over the rounds",
    "no_such_precision": "{store} has no {precision} vectors; size and speed are those of float32",
    "keeps_originals": "{store} keeps the float32 vectors as well as their {precision} codes; its size includes both",
    "refused_metadata": _refused_metadata,
    "short_lists": _short_lists,
    "ranks_unlike": _ranks_unlike,
    "index_lacks": _index_lacks,
    "index_has_more": "the index has {documents} documents that are not in the task; they are ignored",
    # of tasks and results
    "unknown_key": _unknown_key,
    "wrong_counts": _wrong_counts,
    "unknown_graded": _unknown_graded,
    "expected_below": _expected_below,
    "duplicates": _duplicates,
    "k_beyond_corpus": _k_beyond_corpus,
    "k_beyond_depth": _k_beyond_depth,
    "sampled_documents": (
        "a sample of {documents:,} of {drawn_from:,} documents (seed {seed}) with every graded one; scores are higher "
        "than on the whole corpus (bakeoff corpus-size estimates by how much)"
    ),
    "weights_as_given": _weights_as_given,
    "graded_by_model": (
        "only a model gave {by_model} of {grades} grades, which may bias the scores; bakeoff grade corrected "
        "adjusts them by people's grades of a sample"
    ),
    "identical_ids": (
        "{queries} queries have the id of a document, which their rankings leave out, as in BEIR (ignore_identical_ids)"
    ),
    "dated_measures": _dated_measures,
    "without_relevant": _without_relevant,
    "detailed_in_part": (
        "detailed_results.json holds the first {detailed:,} of {queries:,} queries; the scores of all are in "
        "all_scores/, their rankings in runs/"
    ),
    "not_made": _not_made,
    "nothing_relevant": _nothing_relevant,
    # of a dry run
    "local": "runs here",
    "local_timed": "runs here; time estimated from a few texts",
    "local_token_vectors": "one vector per token; runs here, not timed",
    "local_untimed": "runs here, not timed",
    "upper_bound": "upper bound: cached pairs are not subtracted",
    # of runs that are scored
    "left_out": "{queries} of {judged} judged queries are left out (--answered)",
    "run_lacks": _run_lacks,
    "run_unjudged": _run_unjudged,
    # of results that are compared
    "other_documents": "different documents: {count} are in only one of the two, such as {example!r}",
    "other_number_of_documents": "different documents: {first} and {second}",
    "other_queries": "different queries: {count} are in only one of the two, such as {example!r}",
    "other_query_texts": "different queries: {count} have a different text, such as {example!r}",
    "other_grades": "different judgments: {count} queries have different grades, such as {example!r}",
    "other_threshold": "different thresholds: rel = {first} and {second}",
    "other_texts_or_categories": _other_texts_or_categories,
    "no_contender_ran": "no contender of the baseline ran",
    "no_scores": _no_scores,
    "not_compared": _not_compared,
    # of the history
    "no_results": "There are no results here yet; bakeoff run makes one.",
    "history_results": _history_results,
    "history_leader": "Latest result: {label} has the highest {measure}, {score:.3f}.",
    "history_change": _history_change,
    "history_tasks": "They cover {tasks} different tasks; scores from different tasks are not comparable.",
    "changed_between": _changed_between,
    "index_not_compared": "the run was interrupted before the index was compared with exact search",
    "resumed": _resumed,
    "unpinned": _unpinned,
    "waits_for": "process {process} on {host} is requesting the same texts; waiting for it, at most {limit:.0f} s",
    # heads of tables
    "contender": "Contender",
    "row": "Row",
    "p": "p",
    # by language and length
    "by_language": "{measure} by language",
    "by_length": "{measure} by length of the query",
    "language": "{name} ({queries})",
    "words": _words_band,
    "fewest_of_a_group": "In brackets: number of queries. Groups with fewer than {queries} are left out.",
    # unjudged documents
    "unjudged": "Unjudged documents",
    "score_condensed": _SCORE_CONDENSED,
    "score_if_irrelevant": _SCORE_IF_IRRELEVANT,
    "score_if_relevant": "if relevant",
    "judged_share": _judged_share,
    "unjudged_scores": _unjudged_scores,
    "bounds": "Whatever grades they get, the score stays between the two.",
    "no_bounds_condensed": (
        "{measure} moves up what is below an unjudged document. So the two are not bounds: a document with a low grade "
        "may lower the score."
    ),
    "no_bounds_normalised": (
        "{measure} is divided by the ideal score, which rises with each relevant document. So the two are not bounds: "
        "a score may even fall when more documents are relevant."
    ),
    # second stages
    "second_stage": "Gain of the second stage ({measure})",
    "first_stage": "first stage",
    "reranked": "reranked",
    "gain": "gain",
    "stage_p50": "stage p50",
    "gain_per_ms": "gain per ms",
    "uncorrected_p": "p is from the paired test of the two rows, not corrected for the other rows of the matrix.",
    # tuned weights
    "tuned_weights": "Tuned weights ({measure})",
    "fusion": "Fusion",
    "weights_given": "weights given",
    "score": "score",
    "weights_tuned": "weights tuned",
    "out_of_fold": "out-of-fold score",
    "in_sample": "(in sample)",
    "cross_validation": (
        "{folds}-fold cross-validation over queries, weights in steps of {step:g}, seed {seed}. Only the out-of-fold "
        "score may be quoted for tuned weights: each query has weights chosen without it."
    ),
}
